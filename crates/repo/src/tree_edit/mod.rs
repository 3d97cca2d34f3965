//! Replacing files below a directory: all of them or none, whatever happens on the way.
//!
//! First every file is looked at: it is still what the change was made for, it is a plain file of this user, and no link stands in its
//! way. Then the new contents are written beside their targets under random names, flushed, and given their final modes. A journal
//! names all of that before it begins. Only then each file changes places with its new content, in one step of the file system
//! that leaves the old content beside it: what was there in that very moment is looked at once more, and put back where it is
//! not what was expected. A failure puts everything back; a killed process leaves its journal, by which
//! [`recover_tree_edit`] finishes the change, or takes it back.
//!
//! What always holds: nothing is written through a link; a file that another process changed in the meantime keeps its content;
//! a file that stays keeps its permission bits and its owner, and gets no bit that gives another user's rights. Extended
//! attributes are not kept.

mod edit_target;
mod guarded_places;
mod journal;
mod recover;
mod stage;
mod swap;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use crucible_host::fs::FsError;
use crucible_host::random;
use crucible_model::{ByteLimit, CanonicalError, Digest, RepoPath};

use crate::beneath::Root;
use crate::error::RepoError;

use edit_target::Target;
use journal::{Journal, JournalStage};

pub use guarded_places::GuardedPlaces;
pub use recover::{
    EditRecovery, RecoveredEdit, RegeneratedContent, pending_tree_edit, recover_tree_edit,
    recover_tree_edit_with,
};

/// The largest file that is replaced, in bytes: 16 MiB.
pub const MAX_EDITED_BYTES: u64 = 16 << 20;

/// What a file is to become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEdit {
    /// The file, from the root on.
    pub path: RepoPath,
    /// The SHA-256 of the required old content; `None` if the file must not exist.
    pub before: Option<Digest>,
    /// The new content, byte for byte; `None` to remove the file.
    pub after: Option<Vec<u8>>,
    /// The kind of a new file; an existing one keeps its permission bits.
    pub new_file: NewFile,
}

/// What a new file is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NewFile {
    /// Read and written.
    #[default]
    Plain,
    /// Executed too.
    Executable,
}

/// How a symbolic link in a file's path is treated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LinkPolicy {
    /// The file is refused.
    #[default]
    Refuse,
    /// It is followed to a file below the same root, outside git's own directory.
    InsideProject,
}

/// The place of the record of a change in progress, and which record is accepted.
#[derive(Clone, Copy)]
pub struct EditJournal<'a> {
    /// A file in an existing directory, used only for this. Only trusted users may write it; it must not be
    /// in the changed tree.
    pub path: &'a Path,
    /// The purpose of the change: a record with another purpose is refused.
    pub purpose: Digest,
    /// Whether a record's claim matches what its owner knows.
    pub agrees: &'a dyn Fn(&EditClaim) -> bool,
}

/// The change that a record claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditClaim {
    /// What the change was made for.
    pub purpose: Digest,
    /// Its files.
    pub edits: Vec<ClaimedEdit>,
}

/// The claim of a record about one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedEdit {
    /// The file's path without links.
    pub path: RepoPath,
    /// The old content; `None` if it did not exist.
    pub before: Option<Digest>,
    /// The new content; `None` if it is removed.
    pub after: Option<Digest>,
}

/// A file that was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditedFile {
    /// The file, as the edit named it.
    pub path: RepoPath,
    /// What deserves a look.
    pub notes: Vec<EditNote>,
}

/// What deserves a look about a file that was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditNote {
    /// It had other names, and those still have the old content.
    OtherNames(u64),
    /// It had bits that give another user's rights; they are gone.
    SpecialBits,
}

impl fmt::Display for EditNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherNames(count) => {
                write!(
                    f,
                    "it had {count} other names (hard links); they keep the old content"
                )
            }
            Self::SpecialBits => {
                f.write_str("its set-user-ID, set-group-ID or sticky bit was dropped")
            }
        }
    }
}

/// Why a file cannot be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditObstacle {
    /// It holds something else than it did.
    Changed,
    /// It is gone.
    Missing,
    /// Something exists at the path of the new file.
    InTheWay,
    /// It is a symbolic link, or a parent directory is one.
    Link,
    /// It is a broken link, or a link out of the root or into git's own directory.
    LeadsOut,
    /// It is not a regular file, or a parent is not a directory.
    NoFile,
    /// It is larger than [`MAX_EDITED_BYTES`].
    TooLarge,
    /// Its mode is to change, and only contents are written.
    OtherMode,
    /// Its owner may not write it.
    ReadOnly,
    /// It belongs to another user or group, and may not be given back to them.
    OtherOwner,
    /// Two edits reach the same file.
    Twice,
}

impl fmt::Display for EditObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Changed => "it changed since",
            Self::Missing => "it is gone",
            Self::InTheWay => "something else is at this path",
            Self::Link => "it is a symbolic link or is reached through one",
            Self::LeadsOut => "it is a link to nothing, out of the project or into git's directory",
            Self::NoFile => "it is not a regular file",
            Self::TooLarge => "it is too large to be replaced",
            Self::OtherMode => "its mode would change, and only contents are written here",
            Self::ReadOnly => "it is read-only",
            Self::OtherOwner => "it belongs to another user",
            Self::Twice => "two of the changes name this file",
        })
    }
}

/// Why files were not changed.
#[derive(Debug, thiserror::Error)]
pub enum TreeEditError {
    /// A file is not in the required state. Nothing was changed.
    #[error("{path}: {why}")]
    Blocked {
        /// The file.
        path: RepoPath,
        /// What is wrong with it.
        why: EditObstacle,
    },
    /// The file system refused. Nothing was changed.
    #[error(transparent)]
    Repo(#[from] RepoError),
    /// The journal of an earlier change cannot be read. Nothing was changed.
    #[error("{} is not a valid record of a file change ({why}); check your files, then remove it", path.display())]
    Journal {
        /// The journal.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The change is partly done and can be neither finished nor undone.
    #[error(
        "an interrupted change can be neither finished nor undone: {} ({cause}); fix the cause and try again, or check these files yourself and then remove its record {}",
        paths.join(", "), journal.display()
    )]
    NotRolledBack {
        /// The obstructing files: changed or unreachable.
        paths: Vec<String>,
        /// What is wrong with them.
        cause: String,
        /// The record of the change.
        journal: PathBuf,
    },
}

impl From<FsError> for TreeEditError {
    fn from(error: FsError) -> Self {
        Self::Repo(error.into())
    }
}

impl From<CanonicalError> for TreeEditError {
    fn from(error: CanonicalError) -> Self {
        Self::Repo(RepoError::io(
            "write",
            "the journal",
            std::io::Error::other(error),
        ))
    }
}

/// A file as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeFile {
    /// The content; `None` if there is no file.
    pub bytes: Option<Vec<u8>>,
    /// The path without links; differs from the given one if that leads through a link.
    pub real: RepoPath,
}

/// Reads a file below `root`, and returns its real path. Use that path to change it: [`edit_tree`] follows no
/// link.
///
/// # Errors
///
/// [`TreeEditError::Blocked`] if it is not a regular file, is reached through a link or is larger than
/// `limit`.
pub fn read_tree_file(
    root: &Path,
    path: &RepoPath,
    links: LinkPolicy,
    limit: ByteLimit,
) -> Result<TreeFile, TreeEditError> {
    edit_target::read(&Root::open(root)?, root, path, links, limit)
}

/// Changes files below `root`: all of them, or none. Links are not followed. An interrupted attempt at the
/// same change is first finished or undone.
///
/// # Errors
///
/// [`TreeEditError::Blocked`] names the first file in the wrong state. After any error except
/// [`TreeEditError::NotTakenBack`] every file is unchanged.
pub fn edit_tree(
    root: &Path,
    edits: &[TreeEdit],
    journal: &EditJournal<'_>,
) -> Result<Vec<EditedFile>, TreeEditError> {
    edit_with_observer(&Root::open(root)?, edits, journal, &mut |_| {})
}

/// How far a change is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EditStep {
    /// Every file was looked at.
    Checked,
    /// The journal is written.
    JournalWritten,
    /// The new content of this file is staged beside it.
    Staged(usize),
    /// The journal records that all new contents are staged.
    Ready,
    /// The new content of this file is in its place.
    Swapped(usize),
    /// All are, flushed to the disk.
    Done,
    /// The journal says so.
    Clearing,
    /// The temporary files of this file are removed.
    Cleared(usize),
}

/// [`edit_tree`], which reports every step to `watch`.
fn edit_with_observer(
    root: &Root,
    edits: &[TreeEdit],
    place: &EditJournal<'_>,
    watch: &mut dyn FnMut(EditStep),
) -> Result<Vec<EditedFile>, TreeEditError> {
    let journal_path = place.path;
    recover::recover(root, place)?;
    let mut targets = Vec::new();
    let (mut paths, mut files) = (BTreeSet::new(), BTreeSet::new());
    for edit in edits {
        let target = edit_target::check(root, edit)?;
        let is_another = target
            .identity()
            .is_none_or(|identity| files.insert(identity));
        if !paths.insert(target.path.clone()) || !is_another {
            return Err(TreeEditError::Blocked {
                path: edit.path.clone(),
                why: EditObstacle::Twice,
            });
        }
        targets.push(target);
    }
    watch(EditStep::Checked);
    targets.retain(Target::changes);
    if targets.is_empty() {
        return Ok(Vec::new());
    }

    let mut journal = Journal::new(random::token()?, place.purpose, root, &targets)?;
    journal.write(journal_path)?;
    watch(EditStep::JournalWritten);
    let staged = stage::stage(root, &targets, &journal, watch).and_then(|dirs| {
        journal.stage = JournalStage::Ready;
        journal.write(journal_path)?;
        watch(EditStep::Ready);
        Ok(dirs)
    });
    let dirs = match staged {
        Ok(dirs) => dirs,
        Err(error) => {
            give_up(root, &journal, journal_path);
            return Err(error);
        }
    };
    if let Err(error) = swap_all(&targets, &journal, &dirs, watch) {
        // From here on the change can only be undone, also by the next process. If the journal cannot be
        // written, this process must undo it.
        journal.stage = JournalStage::GivenUp;
        let _is_gone_anyway = journal.write(journal_path);
        recover::take_back(root, &journal)
            .map_err(|paths| recover::rollback_error(paths, error.to_string(), journal_path))?;
        give_up(root, &journal, journal_path);
        return Err(error);
    }
    watch(EditStep::Done);
    // The change is complete; the next process removes what cannot be removed now, because the journal stays.
    // Nothing is removed before the journal allows it: until then a missing temporary file was removed by
    // someone else.
    journal.stage = JournalStage::Clearing;
    if journal.write(journal_path).is_err() {
        return Ok(targets.iter().map(Target::edited).collect());
    }
    watch(EditStep::Clearing);
    let cleared = journal
        .entries
        .iter()
        .enumerate()
        .try_for_each(|(index, entry)| {
            recover::clear_one(root, &journal, index, entry)?;
            watch(EditStep::Cleared(index));
            Ok::<(), RepoError>(())
        });
    if cleared.is_ok() {
        let _cleared_by_the_next_change = Journal::remove(journal_path);
    }
    Ok(targets.iter().map(Target::edited).collect())
}

/// Removes the rest of a failed change. The next change removes what cannot be removed now, because the
/// journal stays.
fn give_up(root: &Root, journal: &Journal, journal_path: &Path) {
    if recover::clear(root, journal).is_ok() {
        let _cleared_by_the_next_change = Journal::remove(journal_path);
    }
}

fn swap_all(
    targets: &[Target],
    journal: &Journal,
    dirs: &[Root],
    watch: &mut dyn FnMut(EditStep),
) -> Result<(), TreeEditError> {
    for (index, ((target, entry), dir)) in
        targets.iter().zip(&journal.entries).zip(dirs).enumerate()
    {
        swap::put(dir, &journal.names(index), entry)
            .map_err(|fault| fault.into_error(&target.path, dir, entry))?;
        watch(EditStep::Swapped(index));
    }
    for (dir, entry) in dirs.iter().zip(&journal.entries) {
        dir.sync()
            .map_err(|errno| dir.fail("flush", entry.name(), errno))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
