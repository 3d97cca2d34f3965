//! Lists the names below a directory without following links.
//!
//! Invariants: a directory precedes its contents; names of one directory are in byte order; memory is bounded
//! by [`TreeLimits::entries`].

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType};
use rustix::io::Errno;

use super::TreeLimits;
use super::kind::{ListedKind, ListedName};
use crate::beneath::Root;

/// What a directory turned out to hold.
pub(super) enum Listing {
    /// Everything in it.
    Names(Vec<ListedName>),
    /// More than may be looked at.
    TooMany,
    /// It cannot be listed.
    Closed(Errno),
}

/// Number of names that may still be examined.
#[derive(Debug)]
pub(super) struct EntryBudget {
    remaining_entries: usize,
}

impl EntryBudget {
    pub(super) const fn from_limits(limits: &TreeLimits) -> Self {
        Self {
            remaining_entries: limits.entries,
        }
    }

    /// Lists one directory, sorted.
    pub(super) fn list(&mut self, root: &Root, directory: &Path) -> Listing {
        match self.read(root, directory) {
            Ok(Some(mut names)) => {
                names.sort_unstable();
                Listing::Names(names)
            }
            Ok(None) => Listing::TooMany,
            Err(errno) => Listing::Closed(errno),
        }
    }

    fn read(&mut self, root: &Root, directory: &Path) -> Result<Option<Vec<ListedName>>, Errno> {
        let fd = root.open_dir(directory)?;
        let mut names = Vec::new();
        for entry in Dir::read_from(&fd)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let Some(left) = self.remaining_entries.checked_sub(1) else {
                return Ok(None);
            };
            self.remaining_entries = left;
            let kind = match entry.file_type() {
                // Some file systems do not say it while they list.
                FileType::Unknown => match rustix::fs::statat(&fd, name, AtFlags::SYMLINK_NOFOLLOW)
                {
                    Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                    Err(Errno::NOENT) => continue,
                    Err(errno) => return Err(errno),
                },
                kind => kind,
            };
            let name = OsStr::from_bytes(name.to_bytes()).to_owned();
            names.push(ListedName {
                name,
                kind: ListedKind::from(kind),
            });
        }
        Ok(Some(names))
    }
}

/// The path of a name in a directory; an empty path is the top.
pub(super) fn join(directory: &Path, name: &OsStr) -> PathBuf {
    if directory.as_os_str().is_empty() {
        PathBuf::from(name)
    } else {
        directory.join(name)
    }
}
