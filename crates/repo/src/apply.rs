//! Applying a judged patch to the user's work tree: the files only, no index and no commit.
//!
//! What is written are the files of the tree that was judged, never what another reading of the patch would give. A file is
//! replaced only where the work tree holds what the commit has there, byte for byte: as the repository keeps it, or as git's
//! attributes check it out. The new content then comes in the same form, so line ends stay what they are in this work
//! tree. What git's index says of a file is asked too, but its word alone is not taken: its flags may hide a change.
//!
//! What always holds: all files or none ([`edit_tree`]); a change of the user's is never written over.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crucible_model::{ByteLimit, Digest, RepoPath};
use crucible_patch::FileMode;

use crate::error::RepoError;
use crate::git::{Call, DirtyEntry, DirtyKind, Git};
use crate::oid::Oid;
use crate::tree::{ChangeStatus, MAX_TOUCHED, ProducedChanges, TemporaryIndex, TreeChange};
use crate::tree_edit::{
    EditClaim, EditJournal, EditNote, EditObstacle, EditRecovery, LinkPolicy, MAX_EDITED_BYTES,
    NewFile, RecoveredEdit, TreeEdit, TreeEditError, edit_tree, read_tree_file, recover_tree_edit,
};

/// A file that now matches the patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedFile {
    /// The file, from the top of the work tree.
    pub path: RepoPath,
    /// What happened to it.
    pub status: ChangeStatus,
    /// The SHA-256 of its current content; `None` if it was removed.
    pub after: Option<Digest>,
    /// What deserves a look.
    pub notes: Vec<EditNote>,
}

/// A patch that was applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedTree {
    /// Its files, sorted.
    pub files: Vec<AppliedFile>,
    /// What a killed process had left of applying the same patch.
    pub recovered: RecoveredEdit,
}

/// Why a patch was not applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Files are not as the commit has them. Nothing was changed.
    #[error("these files have uncommitted changes: {}", names(files))]
    Dirty {
        /// Which, and how they differ.
        files: Vec<DirtyEntry>,
    },
    /// A file cannot be changed, or the change could not be completed.
    #[error(transparent)]
    Edit(#[from] TreeEditError),
    /// The repository cannot be read.
    #[error(transparent)]
    Repo(#[from] RepoError),
}

/// A file of the change, with every possible form of its content in a work tree.
struct Touched {
    path: RepoPath,
    status: ChangeStatus,
    new_file: NewFile,
    /// As stored in the repository, then as checked out, if different.
    forms: Vec<Form>,
}

struct Form {
    before: Option<Vec<u8>>,
    after: Option<Vec<u8>>,
}

impl Git {
    /// Writes the files that `produced` changes to the work tree, all of them or none. `journal` is a file
    /// outside the work tree that records the change in progress; `purpose` identifies the change. An
    /// interrupted attempt at the same change is first finished or undone.
    ///
    /// # Errors
    ///
    /// [`ApplyError::Dirty`] names every file that is not as the commit has it; [`TreeEditError::Blocked`]
    /// one that is not a plain file or lies behind a link. After any error but [`TreeEditError::NotTakenBack`]
    /// every file is as it was.
    pub async fn apply_to_work_tree(
        &self,
        produced: &ProducedChanges,
        journal: &Path,
        purpose: Digest,
    ) -> Result<AppliedTree, ApplyError> {
        let touched = self.touched(produced).await?;
        let agrees = |claim: &EditClaim| is_of(claim, &touched);
        let place = EditJournal {
            path: journal,
            purpose,
            agrees: &agrees,
        };
        let recovered = recover_tree_edit(self.top(), &place)?;
        if recovered.outcome == EditRecovery::Finished {
            let files = touched
                .iter()
                .map(|file| file.applied(self.top()))
                .collect::<Result<_, _>>()?;
            return Ok(AppliedTree { files, recovered });
        }
        let mut dirty = self.own_changes(&touched).await?;
        let mut edits = Vec::new();
        for file in &touched {
            if dirty
                .iter()
                .any(|entry| entry.path == Path::new(file.path.as_str()))
            {
                continue;
            }
            match file.edit(self.top())? {
                Some(edit) => edits.push(edit),
                None => {
                    dirty.push(DirtyEntry {
                        path: file.path.as_str().into(),
                        kind: DirtyKind::Changed,
                    });
                }
            }
        }
        if !dirty.is_empty() {
            dirty.sort_by(|a, b| a.path.cmp(&b.path));
            return Err(ApplyError::Dirty { files: dirty });
        }
        let edited = edit_tree(self.top(), &edits, &place)?;
        let mut notes: BTreeMap<RepoPath, Vec<EditNote>> = edited
            .into_iter()
            .map(|file| (file.path, file.notes))
            .collect();
        let files = touched.iter().zip(&edits).map(|(file, edit)| AppliedFile {
            path: file.path.clone(),
            status: file.status,
            after: edit.after.as_deref().map(Digest::compute),
            notes: notes.remove(&file.path).unwrap_or_default(),
        });
        Ok(AppliedTree {
            files: files.collect(),
            recovered,
        })
    }

    /// Every file of the change with its forms, before and after.
    async fn touched(&self, produced: &ProducedChanges) -> Result<Vec<Touched>, ApplyError> {
        let old: Vec<Oid> = produced
            .changes
            .iter()
            .filter_map(|change| change.old_oid.clone())
            .collect();
        for change in &produced.changes {
            let modes = [change.old_mode, change.new_mode];
            if modes.contains(&Some(FileMode::Symlink)) || modes.contains(&Some(FileMode::Gitlink))
            {
                return Err(blocked(&path_of(change)?, EditObstacle::NoFile).into());
            }
            if change
                .old_mode
                .zip(change.new_mode)
                .is_some_and(|(old, new)| old != new)
            {
                return Err(blocked(&path_of(change)?, EditObstacle::OtherMode).into());
            }
        }
        let before = self.blobs(&old, MAX_TOUCHED, &[]).await?;
        let checked_out = self.checked_out_before(produced).await?;
        let mut touched = Vec::new();
        for change in &produced.changes {
            let at = |oid: &Option<Oid>, blobs: &BTreeMap<Oid, Vec<u8>>| {
                oid.as_ref().and_then(|oid| blobs.get(oid)).cloned()
            };
            let stored = Form {
                before: at(&change.old_oid, &before),
                after: at(&change.new_oid, &produced.after),
            };
            let out = Form {
                before: checked_out
                    .get(&change.path)
                    .cloned()
                    .or_else(|| stored.before.clone()),
                after: produced
                    .checked_out
                    .contents
                    .get(&change.path)
                    .cloned()
                    .or_else(|| stored.after.clone()),
            };
            // A new file has the form that git gives it.
            let forms = if change.old_oid.is_none() {
                vec![out]
            } else {
                vec![stored, out]
            };
            let is_executable = change.new_mode == Some(FileMode::Executable);
            touched.push(Touched {
                path: path_of(change)?,
                status: change.status,
                new_file: if is_executable {
                    NewFile::Executable
                } else {
                    NewFile::Plain
                },
                forms,
            });
        }
        Ok(touched)
    }

    /// The contents before the change, of the files that git checks out with other bytes than it keeps.
    async fn checked_out_before(
        &self,
        produced: &ProducedChanges,
    ) -> Result<BTreeMap<std::path::PathBuf, Vec<u8>>, RepoError> {
        let back: Vec<TreeChange> = produced.changes.iter().map(reversed).collect();
        if !self.may_convert(&back) {
            return Ok(BTreeMap::new());
        }
        let temporary_index = TemporaryIndex::new(self)?;
        self.run_ok(
            Call::new(["read-tree", produced.base.as_str()]).with_envs(&temporary_index.env),
        )
        .await?;
        let found = self.checked_out(&back, &temporary_index).await?;
        if found.refused.is_empty() {
            return Ok(found.contents);
        }
        Err(RepoError::Rewritten {
            paths: found.refused.into_keys().collect(),
        })
    }

    /// Returns the changed files that git reports as different from the commit.
    async fn own_changes(&self, touched: &[Touched]) -> Result<Vec<DirtyEntry>, RepoError> {
        let mut entries = self.status().await?;
        entries.retain(|entry| {
            touched
                .iter()
                .any(|file| entry.path == Path::new(file.path.as_str()))
        });
        Ok(entries)
    }
}

impl Touched {
    /// Returns the edit for the file in its current state; `None` if its content is not the commit's.
    fn edit(&self, top: &Path) -> Result<Option<TreeEdit>, TreeEditError> {
        // An obstacle at the path of a new file is found when the file is created.
        let is_new = self.status == ChangeStatus::Added;
        let found = if is_new { None } else { self.read(top)? };
        let is_there = |form: &&Form| form.before == found;
        Ok(self.forms.iter().find(is_there).map(|form| TreeEdit {
            path: self.path.clone(),
            before: found.as_deref().map(Digest::compute),
            after: form.after.clone(),
            new_file: self.new_file,
        }))
    }

    /// Describes a file that an earlier process changed.
    fn applied(&self, top: &Path) -> Result<AppliedFile, TreeEditError> {
        let after = self.read(top)?.as_deref().map(Digest::compute);
        Ok(AppliedFile {
            path: self.path.clone(),
            status: self.status,
            after,
            notes: Vec::new(),
        })
    }

    fn read(&self, top: &Path) -> Result<Option<Vec<u8>>, TreeEditError> {
        let limit = ByteLimit(MAX_EDITED_BYTES);
        Ok(read_tree_file(top, &self.path, LinkPolicy::Refuse, limit)?.bytes)
    }
}

/// Returns whether a record names only files of this change with their contents in it.
fn is_of(claim: &EditClaim, touched: &[Touched]) -> bool {
    let digest = |bytes: &Option<Vec<u8>>| bytes.as_deref().map(Digest::compute);
    claim.edits.iter().all(|edit| {
        touched
            .iter()
            .filter(|file| file.path == edit.path)
            .any(|file| {
                let is_form = |form: &Form| {
                    (digest(&form.before), digest(&form.after)) == (edit.before, edit.after)
                };
                file.forms.iter().any(is_form)
            })
    })
}

fn reversed(change: &TreeChange) -> TreeChange {
    let status = match change.status {
        ChangeStatus::Added => ChangeStatus::Deleted,
        ChangeStatus::Deleted => ChangeStatus::Added,
        same @ (ChangeStatus::Modified | ChangeStatus::TypeChanged) => same,
    };
    TreeChange {
        path: change.path.clone(),
        status,
        old_mode: change.new_mode,
        new_mode: change.old_mode,
        old_oid: change.new_oid.clone(),
        new_oid: change.old_oid.clone(),
    }
}

fn path_of(change: &TreeChange) -> Result<RepoPath, RepoError> {
    RepoPath::from_bytes(change.path.as_os_str().as_bytes())
        .map_err(|error| RepoError::io("change", &change.path, std::io::Error::other(error)))
}

fn blocked(path: &RepoPath, why: EditObstacle) -> TreeEditError {
    TreeEditError::Blocked {
        path: path.clone(),
        why,
    }
}

fn names(files: &[DirtyEntry]) -> String {
    files
        .iter()
        .map(|entry| format!("{:?}", entry.path))
        .collect::<Vec<_>>()
        .join(", ")
}
