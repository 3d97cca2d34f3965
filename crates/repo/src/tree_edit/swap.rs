//! Exchanges a file with its staged content, so that the old content stays beside it.

use std::path::Path;

use crucible_model::{Digest, RepoPath};
use rustix::fs::RenameFlags;
use rustix::io::Errno;

use super::edit_target::read_edited_path;
use super::journal::{JournalEntry, TemporaryNames};
use super::{EditObstacle, TreeEditError};
use crate::beneath::Root;

/// Why a file did not change places.
pub(super) enum Fault {
    /// It changed since it was examined.
    Obstacle(EditObstacle),
    /// The file system refused.
    System(Errno),
}

impl Fault {
    /// The error for the file that the change names so.
    pub(super) fn into_error(
        self,
        path: &RepoPath,
        dir: &Root,
        entry: &JournalEntry,
    ) -> TreeEditError {
        match self {
            Self::Obstacle(why) => TreeEditError::Blocked {
                path: path.clone(),
                why,
            },
            Self::System(errno) => dir.fail("replace", entry.name(), errno).into(),
        }
    }
}

impl From<Errno> for Fault {
    fn from(errno: Errno) -> Self {
        Self::System(errno)
    }
}

/// Makes the change of one file. When it fails, the file is as it was.
pub(super) fn put(
    dir: &Root,
    temporary_names: &TemporaryNames,
    entry: &JournalEntry,
) -> Result<(), Fault> {
    let name = entry.name();
    match (entry.before, entry.after) {
        (None, None) => Ok(()),
        (None, Some(_)) => move_to_free(dir, &temporary_names.swap_file, name),
        (Some(before), None) => set_aside(dir, name, &temporary_names.old, before),
        (Some(before), Some(_)) => {
            match dir.rename(&temporary_names.swap_file, name, RenameFlags::EXCHANGE) {
                Ok(()) => {
                    if read_edited_path(dir, &temporary_names.swap_file)
                        .is_ok_and(|look| look.digest() == Some(before))
                    {
                        return Ok(());
                    }
                    dir.rename(&temporary_names.swap_file, name, RenameFlags::EXCHANGE)?;
                    Err(Fault::Obstacle(EditObstacle::Changed))
                }
                Err(Errno::NOENT) => Err(Fault::Obstacle(EditObstacle::Missing)),
                Err(errno) if cannot(errno) => {
                    set_aside(dir, name, &temporary_names.old, before)?;
                    let put = move_to_free(dir, &temporary_names.swap_file, name);
                    if put.is_err() {
                        move_to_free(dir, &temporary_names.old, name)?;
                    }
                    put
                }
                Err(errno) => Err(errno.into()),
            }
        }
    }
}

/// Renames to a name that has to be free.
pub(super) fn move_to_free(dir: &Root, from: &Path, to: &Path) -> Result<(), Fault> {
    match dir.rename(from, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) => Err(Fault::Obstacle(EditObstacle::InTheWay)),
        Err(errno) if cannot(errno) => match dir.stat(to) {
            Err(Errno::NOENT) => Ok(dir.rename_over(from, to)?),
            Ok(_) => Err(Fault::Obstacle(EditObstacle::InTheWay)),
            Err(errno) => Err(errno.into()),
        },
        Err(errno) => Err(errno.into()),
    }
}

/// Moves the file aside, and back again if it is not the expected one.
fn set_aside(dir: &Root, name: &Path, old: &Path, before: Digest) -> Result<(), Fault> {
    match move_to_free(dir, name, old) {
        Err(Fault::System(Errno::NOENT)) => return Err(Fault::Obstacle(EditObstacle::Missing)),
        other => other?,
    }
    if read_edited_path(dir, old).is_ok_and(|look| look.digest() == Some(before)) {
        return Ok(());
    }
    move_to_free(dir, old, name)?;
    Err(Fault::Obstacle(EditObstacle::Changed))
}

/// Whether the file system has no such kind of renaming.
fn cannot(errno: Errno) -> bool {
    matches!(errno, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)
}
