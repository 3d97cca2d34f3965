//! Whether every file of the work tree is as git's index noted it, decided by `lstat` alone.
//!
//! The rules are git's with `core.trustctime=true` and `core.checkStat=default`; parts of a second count in the comparison of a file with its
//! entry. A file that was written in the second of the index or later may have changed without a trace, so its content is compared with
//! its name; where attributes or settings may ask for other bytes in the work tree, or there is much to read, that is left to git.
//!
//! What always holds: only plain files and links that lie in real directories are called "unchanged"; submodules, open merges and
//! whatever the index hides or intends are git's to look at.

use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crucible_host::fs::read_regular_up_to;
use crucible_model::ByteLimit;
use crucible_patch::FileMode;

use super::index::IndexEntry;
use crate::index_file::{IndexFlag, Stat};

/// Bytes read in total if times are not sufficient; git reads more.
const MAX_READ: u64 = 16 << 20;

/// Whether the work tree may hold other bytes of a file than the repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ByteEquality {
    /// Only attributes in the work tree can change it.
    Same,
    /// Settings or attributes outside of it may say so.
    PerhapsOther,
}

/// Whether all these files are as noted in an index that has the metadata `index`.
pub(super) fn all_unchanged(
    top: &Path,
    index: &Metadata,
    entries: &[IndexEntry],
    bytes: ByteEquality,
) -> bool {
    let mut directories = Directories {
        top: top.to_owned(),
        checked: PathBuf::new(),
    };
    let mut read_budget = if bytes == ByteEquality::Same {
        MAX_READ
    } else {
        0
    };
    entries.iter().all(|entry| {
        let Some(stat) = entry
            .stat
            .filter(|_| entry.stage == 0 && entry.watch == IndexFlag::Looked)
        else {
            return false;
        };
        directories.are_real(entry.path.parent().unwrap_or(Path::new("")))
            && fs::symlink_metadata(top.join(&entry.path)).is_ok_and(|now| {
                is_noted(stat, &now)
                    && has_mode(entry.mode, &now)
                    && (is_settled(stat, index) || has_content(top, entry, &mut read_budget))
            })
            // An index entry without file metadata has a size of 0.
            && (stat.size != 0 || is_empty_blob(entry))
    })
}

/// Parent directories; the last one was checked not to be a link.
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

/// Returns whether the file has the bytes of the entry and no attribute in the work tree applies; subtracts
/// what is read from `read_budget`.
fn has_content(top: &Path, entry: &IndexEntry, read_budget: &mut u64) -> bool {
    let has_attributes = |directory: &Path| {
        top.join(directory)
            .join(".gitattributes")
            .symlink_metadata()
            .is_ok()
    };
    let path = top.join(&entry.path);
    if *read_budget == 0 || entry.path.ancestors().skip(1).any(has_attributes) {
        return false;
    }
    let content = match entry.mode {
        FileMode::Symlink => fs::read_link(&path)
            .ok()
            .map(|target| target.into_os_string().into_vec()),
        _ => read_regular_up_to(&path, ByteLimit(*read_budget)).ok(),
    };
    content.is_some_and(|content| {
        *read_budget = read_budget.saturating_sub(content.len() as u64);
        super::store::has_name(&entry.oid, b"blob", &content)
    })
}

/// Returns whether the index was written in a later second than the file. Smaller differences are not
/// sufficient: file system clocks tick every few milliseconds. A file changed in the same tick in which git
/// examined it keeps its times.
fn is_settled(stat: Stat, index: &Metadata) -> bool {
    index.mtime() > i64::from(stat.modified.0.max(stat.changed.0))
}

fn is_noted(stat: Stat, now: &Metadata) -> bool {
    stat == Stat::from_metadata(now) && now.size() <= u64::from(u32::MAX)
}

pub(crate) fn has_mode(mode: FileMode, now: &Metadata) -> bool {
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
