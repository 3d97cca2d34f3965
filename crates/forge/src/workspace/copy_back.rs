//! Copies the skill and its test from the build's copy into the project: each file is read once,
//! judged, and written as it was read.
//!
//! How it works: each file is opened beneath the copy's top without following a link and read to its end; its digest has to be the one that
//! the judged changes name. Then both are exchanged in the project in one journalled change, for which every directory on the way is
//! reopened, and which refuses where the project no longer holds what it held when the copy was made.
//!
//! What always holds: after any error and after a kill, once [`recover_copy_back`] was there, the project holds both files or neither.

use std::path::{Path, PathBuf};

use crucible_host::lock::LockError;
use crucible_model::{ByteLimit, Code, Digest, Finding, RepoPath, Verdict};
use crucible_repo::{
    CopyEntry, EditClaim, EditJournal, EditObstacle, EditRecovery, EditedFile, LinkPolicy, NewFile,
    OmitReason, TreeEdit, TreeEditError, WorkspaceChange, edit_tree, pending_tree_edit,
    read_tree_file, recover_tree_edit,
};
use crucible_secrets::Scanner;

use super::SkillWorkspace;
use crate::paths::SkillPaths;
use crate::project::ForgeProject;
use crate::python::MAX_SKILL_BYTES;

/// One of the two files looks as if it held a secret.
pub(crate) const SECRET: Code = Code::new("forge-scope-secret");

/// One of the two files, as it was read from the copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltFile {
    /// Its path.
    pub path: RepoPath,
    /// What it holds.
    pub bytes: Vec<u8>,
    /// The digest of that.
    pub digest: Digest,
    /// What the project held there when the copy was made; nothing where there was nothing.
    pub before: Option<Digest>,
}

/// Why nothing was brought to the project.
#[derive(Debug, thiserror::Error)]
pub enum CopyBackError {
    /// The copy changed after it was judged.
    #[error(
        "{path} changed in the copy while it was judged; build again, and let nothing else write there"
    )]
    ChangedInCopy {
        /// The file.
        path: RepoPath,
    },
    /// It is larger than a skill or a test may be.
    #[error(
        "{path} has more than the 256 KiB that are read of a skill; write less, or move data out of it"
    )]
    TooLarge {
        /// The file.
        path: RepoPath,
    },
    /// The project has something there that the copy did not get, so nobody saw what would be replaced.
    #[error(
        "{path} of the project was left out of the copy, because it {why}; move it away and build again"
    )]
    LeftOut {
        /// The file.
        path: RepoPath,
        /// Why it was left out.
        why: OmitReason,
    },
    /// Another process changed the file in the project meanwhile.
    #[error(
        "{path}: {why} while the skill was built, and stays as it is; keep what is worth it elsewhere and build again"
    )]
    ChangedInProject {
        /// The file.
        path: RepoPath,
        /// What is in the way.
        why: EditObstacle,
    },
    /// The files cannot be read or written.
    #[error(transparent)]
    Edit(#[from] TreeEditError),
    /// Crucible's own directory cannot be used.
    #[error(transparent)]
    Own(#[from] LockError),
}

impl SkillWorkspace {
    /// Reads both files of the skill from the copy, once. `changes` is what was judged.
    ///
    /// # Errors
    ///
    /// [`CopyBackError::ChangedInCopy`] where a file is not the one that was judged, [`CopyBackError::LeftOut`] where the project has a file
    /// that was left out of the copy.
    pub fn built(
        &self,
        paths: &SkillPaths,
        changes: &[WorkspaceChange],
    ) -> Result<Vec<BuiltFile>, CopyBackError> {
        paths
            .files()
            .into_iter()
            .map(|path| self.built_file(path, changes))
            .collect()
    }

    fn built_file(
        &self,
        path: &RepoPath,
        changes: &[WorkspaceChange],
    ) -> Result<BuiltFile, CopyBackError> {
        let omitted = self
            .omitted()
            .iter()
            .find(|omission| Path::new(path.as_str()).starts_with(&omission.path));
        if let Some(omission) = omitted {
            return Err(CopyBackError::LeftOut {
                path: path.clone(),
                why: omission.reason.clone(),
            });
        }
        let before = self.initial_digest(path);
        let judged = match changes
            .iter()
            .find(|change| change.path == Path::new(path.as_str()))
        {
            None => before,
            Some(change) => match &change.now {
                Some(CopyEntry::File { digest, .. }) => *digest,
                _ => None,
            },
        };
        let changed = || CopyBackError::ChangedInCopy { path: path.clone() };
        let limit = ByteLimit(MAX_SKILL_BYTES as u64);
        let read = match read_tree_file(&self.root, path, LinkPolicy::Refuse, limit) {
            Err(TreeEditError::Blocked {
                why: EditObstacle::TooLarge,
                ..
            }) => {
                return Err(CopyBackError::TooLarge { path: path.clone() });
            }
            Err(TreeEditError::Blocked { .. }) => return Err(changed()),
            read => read?.bytes.ok_or_else(changed)?,
        };
        let digest = Digest::compute(&read);
        if judged != Some(digest) {
            return Err(changed());
        }
        Ok(BuiltFile {
            path: path.clone(),
            bytes: read,
            digest,
            before,
        })
    }
}

/// Judges what the two files hold before anything keeps them: what looks like a secret goes nowhere.
#[must_use]
pub(crate) fn check_built(files: &[BuiltFile]) -> Verdict {
    let found = files.iter().filter_map(|file| {
        let rule = Scanner::builtin().first_in_file(&file.bytes)?;
        let hint = format!(
            "This looks like a secret ({rule}). A skill gets its secrets by name, when it runs."
        );
        Some(Finding::error(SECRET, file.path.as_str(), hint))
    });
    Verdict::new(found.collect())
}

/// Puts both files into the project, or neither. `home` is Crucible's own directory. What an earlier build left half done is settled first.
///
/// # Errors
///
/// [`CopyBackError::ChangedInProject`] where the project no longer holds what it held. After any error but
/// [`TreeEditError::NotTakenBack`] the project is as it was.
pub(crate) fn copy_back(
    project: &ForgeProject,
    home: &Path,
    paths: &SkillPaths,
    files: &[BuiltFile],
) -> Result<Vec<EditedFile>, CopyBackError> {
    let edits: Vec<TreeEdit> = files
        .iter()
        .map(|file| TreeEdit {
            path: file.path.clone(),
            before: file.before,
            after: Some(file.bytes.clone()),
            new_file: NewFile::Plain,
        })
        .collect();
    let place = journal_place(project, home, paths)?;
    let ours = |claim: &EditClaim| is_ours(claim, paths);
    let journal = EditJournal {
        path: &place,
        purpose: purpose(paths),
        agrees: &ours,
    };
    edit_tree(project.root(), &edits, &journal).map_err(|error| match error {
        TreeEditError::Blocked { path, why } => CopyBackError::ChangedInProject { path, why },
        error => CopyBackError::Edit(error),
    })
}

/// Finishes, or takes back, what a killed build left half done in the project. Every step of a skill calls it first, under the lock.
///
/// # Errors
///
/// Fails when the record cannot be read, or neither way leads to the end.
pub(crate) fn recover_copy_back(
    project: &ForgeProject,
    home: &Path,
    paths: &SkillPaths,
) -> Result<EditRecovery, CopyBackError> {
    let place = journal_place(project, home, paths)?;
    if pending_tree_edit(&place)?.is_none() {
        return Ok(EditRecovery::Nothing);
    }
    let ours = |claim: &EditClaim| is_ours(claim, paths);
    let journal = EditJournal {
        path: &place,
        purpose: purpose(paths),
        agrees: &ours,
    };
    Ok(recover_tree_edit(project.root(), &journal)?.outcome)
}

fn journal_place(
    project: &ForgeProject,
    home: &Path,
    paths: &SkillPaths,
) -> Result<PathBuf, CopyBackError> {
    // The module is the package and the name: as good as both, and no more than letters, digits, `_` and `.`.
    Ok(project
        .own_directory(home)?
        .join(format!("{}-{}-build.json", project.key(), paths.module)))
}

fn purpose(paths: &SkillPaths) -> Digest {
    Digest::compute(format!("crucible skill build {}", paths.module).as_bytes())
}

/// Whether a record is of these two files alone.
fn is_ours(claim: &EditClaim, paths: &SkillPaths) -> bool {
    claim
        .edits
        .iter()
        .all(|edit| edit.after.is_some() && paths.files().contains(&&edit.path))
}
