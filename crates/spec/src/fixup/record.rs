//! The record of a fixup that is being applied, by which the next process finishes it or takes it back.
//!
//! It lies in a directory of Crucible's own and not in the project: a project may come from anybody, and a record says which files change
//! without any gate. And it is believed only as far as the spec's receipts bear it out: it has to be of the very diff that they name, each file of
//! it has to be one of theirs with the same content before and after, and none of them may be Crucible's own.

use std::io;
use std::path::PathBuf;

use crucible_host::fs;
use crucible_model::{ByteLimit, Code, Digest, Finding, RepoPath};
use crucible_repo::{
    EditClaim, EditJournal, EditRecovery, LinkPolicy, MAX_EDITED_BYTES, RecoveredEdit, TreeEditError,
    read_tree_file, recover_tree_edit,
};

use super::apply::file_system;
use crate::error::SpecError;
use crate::phase_id::PhaseId;
use crate::project::{SpecProject, is_own};
use crate::receipt::{FixedFile, FixupReceipt};
use crate::store::{SpecLock, SpecStore};

/// The place of a record, and what is known of the fixup that it may be of.
pub(super) struct FixupRecord<'a> {
    path: PathBuf,
    diff: Digest,
    files: &'a [FixedFile],
}

/// Finishes or takes back what a killed process left of applying a fixup, and tells of which files. Whoever looks at the project's files
/// on behalf of a spec calls this first; [`apply_fixup`](super::apply_fixup) does it itself.
///
/// # Errors
///
/// [`SpecError::LockLost`] when somebody took the lock by force; [`SpecError::FixupBlocked`] when the record is of another fixup than
/// the spec's newest; fails when the record cannot be read or the file system refuses.
pub fn recover_fixup(project: &SpecProject, lock: &SpecLock) -> Result<RecoveredEdit, SpecError> {
    let store = lock.store();
    let Some(path) = place(project, store)? else {
        return Ok(RecoveredEdit::nothing());
    };
    if path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Ok(RecoveredEdit::nothing());
    }
    let state = store.state(None)?;
    let success = state.phase(PhaseId::Fixup).and_then(|phase| phase.last_success.as_ref());
    let fixup = success.and_then(|receipt| receipt.phase(PhaseId::Fixup.as_str())?.fixups.as_ref());
    let known = fixup.and_then(|FixupReceipt { patch, files, .. }| Some((patch.as_ref()?.sha256, files)));
    let (diff, files) = match known {
        Some((diff, files)) => (diff, files.as_slice()),
        // No record is of nothing.
        None => (Digest::of(b""), &[][..]),
    };
    let record = FixupRecord { path, diff, files };
    lock.in_turn(|_| record.recover(project).map_err(file_system))
}

impl<'a> FixupRecord<'a> {
    /// The record of applying this diff, which changes these files.
    pub(super) fn of(
        project: &SpecProject,
        store: &SpecStore,
        diff: Digest,
        files: &'a [FixedFile],
    ) -> Result<Self, SpecError> {
        let Some(path) = place(project, store)? else {
            let why = "nobody said where its record is kept while it is applied".to_owned();
            return Err(SpecError::FixupBlocked { why });
        };
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        Ok(Self { path, diff, files })
    }

    /// Finishes or takes back what the record tells of, if there is one.
    pub(super) fn recover(&self, project: &SpecProject) -> Result<RecoveredEdit, TreeEditError> {
        self.with(project, |journal| recover_tree_edit(project.root(), journal))
    }

    /// Does something with the record, which is believed only where it agrees.
    pub(super) fn with<T>(&self, project: &SpecProject, work: impl FnOnce(&EditJournal<'_>) -> T) -> T {
        let agrees = |claim: &EditClaim| self.agrees(project, claim);
        work(&EditJournal { path: &self.path, purpose: self.diff, agrees: &agrees })
    }

    fn agrees(&self, project: &SpecProject, claim: &EditClaim) -> bool {
        let is_at = |file: &FixedFile, wanted: &RepoPath| {
            file.path == wanted.as_str() || real(project, file).as_ref() == Some(wanted)
        };
        claim.edits.iter().all(|edit| {
            !is_own(&edit.path)
                && self.files.iter().any(|file| {
                    (file.before, file.after) == (edit.before, edit.after) && is_at(file, &edit.path)
                })
        })
    }
}

/// Where a file of the fixup lies that is named through a link inside of the project.
fn real(project: &SpecProject, file: &FixedFile) -> Option<RepoPath> {
    let path = file.path.parse().ok()?;
    let limit = ByteLimit(MAX_EDITED_BYTES);
    read_tree_file(project.root(), &path, LinkPolicy::InsideProject, limit).ok().map(|file| file.real)
}

/// Where the record goes: one file for each spec of each project. Nowhere, where nobody said.
fn place(project: &SpecProject, store: &SpecStore) -> Result<Option<PathBuf>, SpecError> {
    let Some(records) = store.records() else {
        return Ok(None);
    };
    let project = project.key()?;
    Ok(Some(records.join(format!("{project}-{}.json", store.spec()))))
}

/// What is told of files that a killed process left half changed.
pub(super) fn recovered(recovered: &RecoveredEdit) -> Vec<Finding> {
    let hint = match recovered.outcome {
        EditRecovery::Nothing => return Vec::new(),
        EditRecovery::Finished => {
            "a process was killed while it applied the fixup; what it had begun is finished now"
        }
        EditRecovery::TakenBack => {
            "a process was killed while it applied the fixup; what it had begun was taken back first"
        }
    };
    let finding = |path: &RepoPath| Finding::warning(Code::new("fixup-recovered"), path.as_str(), hint);
    recovered.files.iter().map(finding).collect()
}
