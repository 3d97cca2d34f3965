//! The journal of a fixup application, with which the next process completes it or rolls it back.
//!
//! It is in Crucible's own directory, not in the project: a project may be untrusted, and the journal
//! changes files without a gate. It is trusted only as far as the spec's receipts confirm it. It must
//! belong to exactly the diff that they name. Each of its files must be in the receipt with the same
//! content before and after, and none may belong to Crucible.

use std::io;
use std::path::PathBuf;

use crucible_host::fs;
use crucible_model::{Code, Digest, Finding, RepoPath};
use crucible_patch::{Proposal, apply};
use crucible_repo::{
    ClaimedEdit, EditClaim, EditJournal, EditRecovery, RecoveredEdit, TreeEditError,
    recover_tree_edit_with,
};

use super::FIXUP_DIFF;
use super::apply::file_system;
use super::places::real_place;
use crate::error::SpecError;
use crate::phase_id::PhaseId;
use crate::project::{SpecProject, is_own};
use crate::receipt::{FixedFile, FixupReceipt};
use crate::store::{SpecLock, SpecStore};

/// The path of a journal, and what is known of the fixup that it may belong to.
pub(super) struct FixupRecord<'a> {
    path: PathBuf,
    purpose: Digest,
    /// The diff itself, if available.
    diff: Option<&'a [u8]>,
    files: &'a [FixedFile],
}

/// Completes or rolls back the fixup application of a killed process, and returns its files. Call it before reading the project's
/// files on behalf of a spec; [`apply_fixup`](super::apply_fixup) calls it itself.
///
/// # Errors
///
/// [`SpecError::LockLost`] if another process took the lock by force; [`SpecError::FixupBrokenOff`] if the journal is invalid or of
/// another fixup than the spec's newest, or if it can be neither completed nor rolled back; file system errors.
pub(crate) fn recover_fixup(
    project: &SpecProject,
    lock: &SpecLock,
) -> Result<RecoveredEdit, SpecError> {
    let store = lock.store();
    let Some(path) = place(project, store)? else {
        return Ok(RecoveredEdit::nothing());
    };
    if path
        .symlink_metadata()
        .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    {
        return Ok(RecoveredEdit::nothing());
    }
    let state = store.state(None)?;
    let success = state
        .phase(PhaseId::Fixup)
        .and_then(|phase| phase.last_success.as_ref());
    let fixup = success.and_then(|receipt| receipt.phase(PhaseId::Fixup.as_str())?.fixups.as_ref());
    let known =
        fixup.and_then(|FixupReceipt { patch, files, .. }| Some((patch.as_ref()?.sha256, files)));
    let (diff, files) = match known {
        Some((diff, files)) => (diff, files.as_slice()),
        // There is no journal of an empty diff.
        None => (Digest::compute(b""), &[][..]),
    };
    // With the diff, deleted temporary files can be recreated.
    let bytes = store
        .read(FIXUP_DIFF)?
        .filter(|bytes| Digest::compute(bytes) == diff);
    let record = FixupRecord {
        path,
        purpose: diff,
        diff: bytes.as_deref(),
        files,
    };
    lock.in_turn(|_| record.recover(project).map_err(file_system))
}

impl<'a> FixupRecord<'a> {
    /// The journal of applying this diff, which changes these files.
    pub(super) fn new(
        project: &SpecProject,
        store: &SpecStore,
        diff: Option<&'a [u8]>,
        files: &'a [FixedFile],
    ) -> Result<Self, SpecError> {
        let Some(path) = place(project, store)? else {
            let why = "nobody said where its record is kept while it is applied".to_owned();
            return Err(SpecError::FixupBlocked { why });
        };
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        let purpose = Digest::compute(diff.unwrap_or_default());
        Ok(Self {
            path,
            purpose,
            diff,
            files,
        })
    }

    /// Completes or rolls back the journal, if there is one.
    pub(super) fn recover(&self, project: &SpecProject) -> Result<RecoveredEdit, TreeEditError> {
        let remade = |claim: &ClaimedEdit, old: Option<&[u8]>| self.regenerate(project, claim, old);
        self.with(project, |journal| {
            recover_tree_edit_with(project.root(), journal, &remade)
        })
    }

    /// The new content of a file according to the diff.
    fn regenerate(
        &self,
        project: &SpecProject,
        claim: &ClaimedEdit,
        old: Option<&[u8]>,
    ) -> Option<Vec<u8>> {
        let file = self.files.iter().find(|file| is_of(project, file, claim))?;
        let path: RepoPath = file.path.parse().ok()?;
        let before = old
            .map(|old| (path.clone(), old.to_vec()))
            .into_iter()
            .collect();
        // The canonical diff has one part per file, each with this first line.
        let head = b"diff --git ";
        let diff = self.diff?;
        let starts = diff
            .split_inclusive(|byte| *byte == b'\n')
            .scan(0, |at, line| {
                let start = *at;
                *at += line.len();
                Some((start, line.starts_with(head)))
            });
        let starts: Vec<usize> = starts
            .filter_map(|(start, is_head)| is_head.then_some(start))
            .collect();
        let ends = starts.iter().skip(1).copied().chain([diff.len()]);
        let mut parts = starts
            .iter()
            .zip(ends)
            .filter_map(|(start, end)| diff.get(*start..end));
        let is_its = |part: &&[u8]| {
            crucible_patch::parse(part)
                .is_ok_and(|patch| patch.files.iter().any(|file| file.path == path))
        };
        let part = parts.find(is_its)?;
        apply(&Proposal::Diff(part.to_vec()), &before)
            .ok()?
            .remove(&path)
    }

    /// Does something with the journal, which is trusted only where it agrees with the receipt.
    pub(super) fn with<T>(
        &self,
        project: &SpecProject,
        work: impl FnOnce(&EditJournal<'_>) -> T,
    ) -> T {
        let agrees = |claim: &EditClaim| self.agrees(project, claim);
        work(&EditJournal {
            path: &self.path,
            purpose: self.purpose,
            agrees: &agrees,
        })
    }

    fn agrees(&self, project: &SpecProject, claim: &EditClaim) -> bool {
        let is_its = |edit: &ClaimedEdit| self.files.iter().any(|file| is_of(project, file, edit));
        claim
            .edits
            .iter()
            .all(|edit| !is_own(&edit.path) && is_its(edit))
    }
}

/// Whether a journal entry is about this file of the fixup, which may be named through a link inside the
/// project.
fn is_of(project: &SpecProject, file: &FixedFile, edit: &ClaimedEdit) -> bool {
    let leads_there = || {
        let place = file
            .path
            .parse()
            .ok()
            .and_then(|path| real_place(project, &path).ok());
        place.as_ref() == Some(&edit.path)
    };
    (file.before, file.after) == (edit.before, edit.after)
        && (file.path == edit.path.as_str() || leads_there())
}

/// The path of the journal: one file for each spec of each project. None without a configured directory.
pub(super) fn place(
    project: &SpecProject,
    store: &SpecStore,
) -> Result<Option<PathBuf>, SpecError> {
    let Some(records) = store.records() else {
        return Ok(None);
    };
    let project = project.key()?;
    Ok(Some(
        records.join(format!("{project}-{}.json", store.spec())),
    ))
}

/// The findings about files that a killed process left partly changed.
pub(super) fn recovered(recovered: &RecoveredEdit) -> Vec<Finding> {
    let hint = match recovered.outcome {
        EditRecovery::Nothing => return Vec::new(),
        EditRecovery::Finished => {
            "a process was killed while it applied the fixup; the application is now complete"
        }
        EditRecovery::RolledBack => {
            "a process was killed while it applied the fixup; the partial application was rolled back first"
        }
    };
    let finding =
        |path: &RepoPath| Finding::warning(Code::new("fixup-recovered"), path.as_str(), hint);
    let is_so = |path: &&RepoPath| !recovered.edited_since.contains(path);
    recovered
        .files
        .iter()
        .filter(is_so)
        .map(finding)
        .chain(went_on(recovered))
        .collect()
}

/// The findings about those files that were changed afterwards.
pub(super) fn went_on(recovered: &RecoveredEdit) -> impl Iterator<Item = Finding> {
    let hint = "it was changed after a process that applied the fixup was killed; it is left as it is, so check it";
    recovered
        .edited_since
        .iter()
        .map(move |path| Finding::warning(Code::new("fixup-recovered"), path.as_str(), hint))
}
