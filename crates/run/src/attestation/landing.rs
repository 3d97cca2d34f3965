//! Signs the statements of a landing before its commit is made, and keeps them as the commit's note.

use crucible_attest::{AttestError, MAX_NOTE, NOTES_REF, statements, subject_commit};
use crucible_model::ByteLimit;
use crucible_repo::{CommitReader, Git, Identity, LandRequest, Oid, ReadObject};

use super::Signing;
use super::change::change_statement;
use crate::contract::RunRecord;
use crate::error::RunError;
use crate::event_kind::EventKind;
use crate::journal::Journal;
use crate::landing_evidence::EVIDENCE_KEY;
use crate::layout::{self, RunDir};
use crate::run_context::RunContext;

/// Signs one landing of a run.
pub(crate) struct LandingSigner<'a> {
    pub(crate) world: &'a RunContext<'a>,
    pub(crate) signing: &'a Signing,
    pub(crate) dir: &'a RunDir,
    pub(crate) record: &'a RunRecord,
    pub(crate) git: &'a Git,
}

impl LandingSigner<'_> {
    /// Signs the commit of this request if the user wants that, and records the signature: another one of the same key may
    /// differ, and the commit with it. A landing that was interrupted uses the one that it recorded before.
    pub(crate) async fn sign_commit(
        &self,
        request: &LandRequest<'_>,
        journal: &mut Journal<'_>,
    ) -> Result<Option<String>, RunError> {
        if !journal.has(COMMIT_KEY) {
            // What was recorded of the unsigned commit names it.
            let is_named = journal.has(EVENT_KEY) || journal.has(EVIDENCE_KEY);
            let signs = self.signing.signs_commits && !is_named;
            let Some(signer) = self.signing.signer.as_ref().filter(|_| signs) else {
                return Ok(None);
            };
            let unsigned = self.git.unsigned_commit(request).await?;
            let signature = signer.sign_commit(&unsigned).await;
            let signature = signature.map_err(|error| self.unsigned(&error))?;
            self.dir
                .write_recorded(layout::COMMIT_SIGNATURE, signature.as_bytes())?;
            journal.record_file(
                "crucible",
                EventKind::Attested,
                COMMIT_KEY,
                layout::COMMIT_SIGNATURE,
            )?;
        }
        let recorded = self.dir.read(layout::COMMIT_SIGNATURE)?;
        String::from_utf8(recorded).map(Some).map_err(|_| {
            self.dir
                .malformed(layout::COMMIT_SIGNATURE, "it is not UTF-8")
        })
    }

    /// Signs the statements about the commit that this request will make, and records them. A landing that was
    /// interrupted uses those that it signed before.
    pub(crate) async fn sign_statements(
        &self,
        request: &LandRequest<'_>,
        journal: &mut Journal<'_>,
    ) -> Result<(), RunError> {
        if journal.has(EVENT_KEY) {
            return Ok(());
        }
        let Some(signer) = &self.signing.signer else {
            let world = self.world;
            let reader = CommitReader::open(world.sandbox.clone(), world.env, &self.record.repo)?;
            if reader.resolve(NOTES_REF).await?.is_some() {
                let note = "  warning: the commit has no signed statement: there is no signing key, and other commits of this repository have one";
                journal.observer()?.note(note);
            }
            return Ok(());
        };
        let commit = self.git.commit_before_landing(request).await?;
        let events = journal.events()?;
        let change = change_statement(self.dir, self.record, events, request.message, request.at)?;
        let signed = match statements(&change, commit.as_str(), request.tree.as_str()) {
            Ok(payloads) => signer.sign_all(&payloads).await,
            Err(error) => Err(AttestError::from(error)),
        };
        match signed {
            Ok(note) => {
                self.dir.write_recorded(layout::ATTESTATION, &note)?;
                journal.record_file(
                    "crucible",
                    EventKind::Attested,
                    EVENT_KEY,
                    layout::ATTESTATION,
                )?;
                Ok(())
            }
            Err(error) if self.signing.is_required => Err(self.unsigned(&error)),
            Err(error) => {
                let note = format!("  warning: the commit has no signed statement: {error}");
                journal.observer()?.note(&note);
                Ok(())
            }
        }
    }

    fn unsigned(&self, error: &AttestError) -> RunError {
        RunError::Unsigned {
            id: self.record.run_id.to_string(),
            why: error.to_string(),
        }
    }
}

/// The key of the event with the signed statements.
const EVENT_KEY: &str = "attested";
/// The key of the event with the signature of the commit.
const COMMIT_KEY: &str = "commit_signed";

/// Writes the recorded statements as the note of the commit, unless they are there.
pub(crate) async fn write_note(
    world: &RunContext<'_>,
    dir: &RunDir,
    record: &RunRecord,
    git: &Git,
    commit: &Oid,
) -> Result<(), RunError> {
    let Some(note) = dir.read_if_there(layout::ATTESTATION)? else {
        return Ok(());
    };
    if subject_commit(&note).as_deref() != Some(commit.as_str()) {
        return Err(dir.malformed(
            layout::ATTESTATION,
            "it is about another commit than the one that landed",
        ));
    }
    let reader = CommitReader::open(world.sandbox.clone(), world.env, &record.repo)?;
    let notes = reader.resolve(NOTES_REF).await?;
    let read = reader
        .read_notes(
            notes.as_ref(),
            std::slice::from_ref(commit),
            ByteLimit(MAX_NOTE),
        )
        .await?;
    if read.first() == Some(&ReadObject::Bytes(note.clone())) {
        return Ok(());
    }
    let identity = git.identity().await.unwrap_or_else(|_| note_identity());
    let written = reader
        .write_note(NOTES_REF, commit, &note, &identity, world.clock.now())
        .await;
    written.map_err(|error| RunError::NoteNotWritten {
        commit: commit.to_string(),
        why: error.to_string(),
    })
}

/// Pushes the notes of the repository of a run to a remote.
///
/// # Errors
///
/// Fails if the repository cannot be opened, or if git does not reach the remote or is refused.
pub async fn push_notes(
    world: &RunContext<'_>,
    dir: &RunDir,
    remote: &str,
) -> Result<(), RunError> {
    let record = dir.record()?;
    let git = world.git(&record.repo, &dir.fresh_scratch()?).await?;
    git.push(remote, NOTES_REF).await?;
    Ok(())
}

/// Who writes notes in a repository without an identity.
pub(super) fn note_identity() -> Identity {
    Identity {
        name: "Crucible".to_owned(),
        email: "crucible@localhost".to_owned(),
    }
}
