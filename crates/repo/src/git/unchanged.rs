//! Whether every file of the work tree is as git's index noted it, told by `lstat` alone.
//!
//! The rules are git's with `core.trustctime=true` and `core.checkStat=default`; parts of a second count in the comparison of a file with its
//! entry. A file that was written in the second of the index or later may have changed without a trace, so it is "not known" here, and git
//! compares its content.
//!
//! What always holds: "unchanged" is said only of plain files and links that lie in real directories; submodules, open merges and
//! whatever the index hides or intends are git's to look at.

use std::fs::{self, Metadata};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crucible_patch::FileMode;

use super::index::IndexEntry;
use crate::index_file::{Stat, Watch};

/// Whether all these files are as noted in an index that has the metadata `index`.
pub(super) fn all_unchanged(top: &Path, index: &Metadata, entries: &[IndexEntry]) -> bool {
    let mut directories = Directories { top: top.to_owned(), checked: PathBuf::new() };
    entries.iter().all(|entry| {
        let Some(noted) = entry.stat.filter(|_| entry.stage == 0 && entry.watch == Watch::Looked) else {
            return false;
        };
        directories.are_real(entry.path.parent().unwrap_or(Path::new("")))
            && fs::symlink_metadata(top.join(&entry.path)).is_ok_and(|now| {
                is_settled(noted, index) && is_noted(noted, &now) && has_mode(entry.mode, &now)
            })
            // An index that knows nothing of a file has a size of 0.
            && (noted.size != 0 || is_empty_blob(entry))
    })
}

/// The directories on the way to files, of which the last one was seen to be no link.
struct Directories {
    top: PathBuf,
    checked: PathBuf,
}

impl Directories {
    fn are_real(&mut self, directory: &Path) -> bool {
        if self.checked == directory {
            return true;
        }
        let mut at = PathBuf::new();
        for part in directory.components() {
            at.push(part);
            if self.checked.starts_with(&at) {
                continue;
            }
            if !fs::symlink_metadata(self.top.join(&at)).is_ok_and(|meta| meta.is_dir()) {
                return false;
            }
        }
        directory.clone_into(&mut self.checked);
        true
    }
}

/// Whether the index was written in a later second than the file. Less is not enough: the clock of a file system ticks every few
/// milliseconds, and a file that is changed in the tick in which git looked at it keeps its times, however much later the index is written.
fn is_settled(noted: Stat, index: &Metadata) -> bool {
    index.mtime() > i64::from(noted.modified.0.max(noted.changed.0))
}

fn is_noted(noted: Stat, now: &Metadata) -> bool {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "git cuts these numbers to 32 bits"
    )]
    let found = Stat {
        changed: (now.ctime() as u32, now.ctime_nsec() as u32),
        modified: (now.mtime() as u32, now.mtime_nsec() as u32),
        number: now.ino() as u32,
        owner: now.uid(),
        group: now.gid(),
        size: now.size() as u32,
    };
    noted == found && now.size() <= u64::from(u32::MAX)
}

fn has_mode(mode: FileMode, now: &Metadata) -> bool {
    let is_executable = now.permissions().mode() & 0o100 != 0;
    match mode {
        FileMode::Regular => now.is_file() && !is_executable,
        FileMode::Executable => now.is_file() && is_executable,
        FileMode::Symlink => now.is_symlink(),
        FileMode::Gitlink => false,
    }
}

fn is_empty_blob(entry: &IndexEntry) -> bool {
    super::store::has_name(&entry.oid, b"blob", b"")
}
