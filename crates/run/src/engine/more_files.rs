//! Requests of a model for more files before it proposes a change.
//!
//! A request uses an attempt's number and directory, which has the answer, the files as a separate context
//! pack, and the outcome. The run's own pack stays as recorded. The next question is built from the recorded
//! packs, so a replay asks the same and an interrupted run can continue.

use crucible_pack::ContextPack;

use super::Engine;
use super::ask::Answer;
use super::attempts::Attempt;
use crate::analysis::Analysis;
use crate::attempt::{self, AttemptEnd, AttemptOutcome};
use crate::contract::Plan;
use crate::dispatch::role_service;
use crate::error::RunError;
use crate::gatekeeper::holds_secret;
use crate::layout::{self, attempt_file};
use crate::role::chair::{self, OmittedFiles};
use crate::role::librarian::more::{LibrarianContext, has_omitted_files, merge_packs};
use crate::role::patchmaker::FileRequestStatus;
use crate::role::request::MoreFiles;
use crate::rounds::files_requested;
use crate::trial::require_base;

/// Returns the request in an answer, if it is one. An answer that is refused without parsing, or for a
/// secret, is not.
pub(super) fn request_in(answer: &Answer) -> Option<MoreFiles> {
    let is_read = answer.unread.is_none() && !holds_secret(&answer.text);
    is_read
        .then(|| MoreFiles::read(answer.text.as_str()))
        .flatten()
}

impl Engine<'_> {
    /// Returns whether the pack leaves out files that a model could see. The ranking listed them; otherwise
    /// their number decides.
    pub(super) fn has_omitted_files(
        &self,
        analysis: &Analysis,
        pack: &ContextPack,
    ) -> Result<bool, RunError> {
        if !self.dir.has(layout::LEFT_OUT) {
            return Ok(
                has_omitted_files(pack, &[]) || analysis.tracked_files > pack.files.len() as u64
            );
        }
        let listed: OmittedFiles = self.dir.read_document(layout::LEFT_OUT)?;
        let paths: Vec<_> = listed
            .files
            .iter()
            .filter_map(|file| file.path.parse().ok())
            .collect();
        Ok(has_omitted_files(pack, &paths))
    }

    /// Returns what the next question shows: the pack, and the files requested since.
    pub(super) fn pack_with_requests(
        &self,
        pack: &ContextPack,
        ended: &[AttemptOutcome],
    ) -> Result<ContextPack, RunError> {
        let mut context_pack = pack.clone();
        for outcome in ended
            .iter()
            .filter(|outcome| outcome.end == AttemptEnd::FilesRequested)
        {
            let path = attempt_file(outcome.number, attempt::PACK);
            let more = ContextPack::parse(&self.dir.read(&path)?)
                .map_err(|error| self.dir.malformed(&path, &error.to_string()))?;
            context_pack = merge_packs(context_pack, more);
        }
        Ok(context_pack)
    }

    /// Returns what the next question says about requests. A service that reads the repository needs none.
    pub(super) fn requests(
        &self,
        name: &str,
        ended: &[AttemptOutcome],
        leaves_out: bool,
    ) -> FileRequestStatus {
        if role_service(name).reads_repository() {
            return FileRequestStatus::default();
        }
        let requested = ended
            .iter()
            .filter(|outcome| outcome.end == AttemptEnd::FilesRequested);
        let findings = requested.flat_map(|outcome| &outcome.findings);
        let left = self
            .record
            .settings
            .max_file_requests
            .saturating_sub(files_requested(ended));
        FileRequestStatus {
            answered: findings
                .map(|finding| format!("{}: {}", finding.subject, finding.hint))
                .collect(),
            remaining: if leaves_out { left } else { 0 },
        }
    }

    /// Packs what an answer requests; the attempt is over.
    pub(super) async fn answer_request(
        &mut self,
        attempt: &Attempt<'_>,
        plan: &Plan,
        context_pack: &ContextPack,
        request: &MoreFiles,
        answer: &Answer,
    ) -> Result<(), RunError> {
        self.journal
            .working("librarian", "looking up the files the model requests")?;
        let (tracked, _) = chair::candidates(self.git.tracked_files().await?);
        let shelf = LibrarianContext {
            top: &self.record.repo,
            slug: &self.record.repo_slug,
            goal: &self.record.goal,
            settings: &self.record.settings,
            tracked: &tracked,
            shown: context_pack,
            plan,
        };
        let served = shelf.serve(request)?;
        require_base(&self.git, &self.record).await?;
        self.dir.write_recorded(
            &attempt_file(attempt.number, attempt::PACK),
            &served.pack.to_bytes()?,
        )?;
        for finding in &served.findings {
            self.journal.note(&format!(
                "  the model requests {}: {}",
                finding.subject, finding.hint
            ))?;
        }
        let mut outcome = attempt.outcome(AttemptEnd::FilesRequested, answer);
        outcome.findings = served.findings;
        self.dir
            .write_json_recorded(&attempt_file(attempt.number, attempt::OUTCOME), &outcome)?;
        self.record_attempt(&outcome)
    }
}
