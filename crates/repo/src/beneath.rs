//! Accesses files below a directory without following links.
//!
//! Another process may replace a directory by a link at any time. The kernel therefore resolves every name
//! from an open directory and refuses links in every component (`openat2`). On a kernel without that call,
//! components are opened one by one.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use crate::error::RepoError;

/// An open directory; all paths are resolved below it.
#[derive(Debug)]
pub(crate) struct Root {
    fd: OwnedFd,
    path: PathBuf,
    renaming: RenameCall,
}

/// The kernel's renaming from a directory and a name in it to another one, which not every file system has in every
/// kind.
pub(crate) type RenameCall =
    fn(BorrowedFd<'_>, &OsStr, BorrowedFd<'_>, &OsStr, RenameFlags) -> Result<(), Errno>;

impl Root {
    /// Opens the directory itself; links in its path are followed.
    pub(crate) fn open(path: &Path) -> Result<Self, RepoError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(CWD, path, flags, Mode::empty())
            .map_err(|errno| RepoError::io("open", path, errno))?;
        let renaming: RenameCall = |from_dir, from, to_dir, to, how| {
            rustix::fs::renameat_with(from_dir, from, to_dir, to, how)
        };
        Ok(Self {
            fd,
            path: path.to_owned(),
            renaming,
        })
    }

    /// The same directory as it is on a file system that renames so.
    #[cfg(test)]
    pub(crate) fn with_renaming(self, renaming: RenameCall) -> Self {
        Self { renaming, ..self }
    }

    /// Opens the directory at `path` as a new root. A link in any component gives [`Errno::LOOP`].
    pub(crate) fn open_directory(&self, path: &Path) -> Result<Self, Errno> {
        Ok(Self {
            fd: self.open_dir(path)?,
            path: self.path.join(path),
            renaming: self.renaming,
        })
    }

    /// Opens the directory at `path` to list it; an empty path is this directory.
    pub(crate) fn open_dir(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        if path.as_os_str().is_empty() {
            return rustix::fs::openat(&self.fd, ".", flags | OFlags::CLOEXEC, Mode::empty());
        }
        self.open_file(path, flags, Mode::empty())
    }

    /// The error of a call on `path` below this directory.
    pub(crate) fn fail(&self, action: &'static str, path: &Path, errno: Errno) -> RepoError {
        RepoError::io(action, self.path.join(path), errno)
    }

    /// Opens `path`. A link in any part of it is [`Errno::LOOP`].
    pub(crate) fn open_file(
        &self,
        path: &Path,
        flags: OFlags,
        mode: Mode,
    ) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(&self.fd, path, flags, mode, resolve) {
            Err(Errno::NOSYS | Errno::PERM) => self.open_by_parts(path, flags, mode),
            other => other,
        }
    }

    /// Makes the directory at `path`; its parent is there. One that is there already is fine.
    pub(crate) fn make_dir(&self, path: &Path) -> Result<(), Errno> {
        match self.make_new_dir(path) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    /// Creates the directory at `path`, which must not exist; its parent must exist.
    pub(crate) fn make_new_dir(&self, path: &Path) -> Result<(), Errno> {
        let (parent, name) = self.parent_of(path)?;
        rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o755))
    }

    /// Gives the file at `path` the second name `to`. A link at either is not followed.
    pub(crate) fn hard_link(&self, path: &Path, to: &Path) -> Result<(), Errno> {
        let (from_parent, from) = self.parent_of(path)?;
        let (to_parent, to) = self.parent_of(to)?;
        rustix::fs::linkat(&from_parent, from, &to_parent, to, AtFlags::empty())
    }

    /// Renames `from` itself, even if it is a link.
    pub(crate) fn rename(&self, from: &Path, to: &Path, how: RenameFlags) -> Result<(), Errno> {
        let (from_parent, from) = self.parent_of(from)?;
        let (to_parent, to) = self.parent_of(to)?;
        (self.renaming)(from_parent.as_fd(), from, to_parent.as_fd(), to, how)
    }

    /// Renames on any file system; an existing `to` is replaced.
    pub(crate) fn rename_over(&self, from: &Path, to: &Path) -> Result<(), Errno> {
        let (from_parent, from) = self.parent_of(from)?;
        let (to_parent, to) = self.parent_of(to)?;
        rustix::fs::renameat(&from_parent, from, &to_parent, to)
    }

    /// Removes `path` itself, even if it is a link, but not a directory.
    pub(crate) fn unlink(&self, path: &Path) -> Result<(), Errno> {
        let (parent, name) = self.parent_of(path)?;
        rustix::fs::unlinkat(&parent, name, AtFlags::empty())
    }

    /// Removes the empty directory at `path`.
    pub(crate) fn remove_dir(&self, path: &Path) -> Result<(), Errno> {
        let (parent, name) = self.parent_of(path)?;
        rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR)
    }

    /// Flushes which names this directory holds.
    pub(crate) fn sync(&self) -> Result<(), Errno> {
        rustix::fs::fsync(&self.fd)
    }

    /// Returns the metadata of `path` itself, even if it is a link.
    pub(crate) fn stat(&self, path: &Path) -> Result<Stat, Errno> {
        let (parent, name) = self.parent_of(path)?;
        rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Where the link at `path` points.
    pub(crate) fn read_link(&self, path: &Path) -> Result<PathBuf, Errno> {
        use std::os::unix::ffi::OsStringExt;
        let (parent, name) = self.parent_of(path)?;
        let target = rustix::fs::readlinkat(&parent, name, Vec::new())?;
        Ok(PathBuf::from(std::ffi::OsString::from_vec(
            target.into_bytes(),
        )))
    }

    /// Makes a link at `path`.
    pub(crate) fn make_link(&self, path: &Path, target: &Path) -> Result<(), Errno> {
        let (parent, name) = self.parent_of(path)?;
        rustix::fs::symlinkat(target, &parent, name)
    }

    /// Returns whether `path`, with links followed, stays below this directory. `None` if it is broken.
    pub(crate) fn resolves_inside(&self, path: &Path) -> Option<bool> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(&self.fd, path, flags, Mode::empty(), resolve) {
            Ok(_) => Some(true),
            Err(Errno::NOENT) => None,
            Err(Errno::NOSYS | Errno::PERM) => {
                let resolved = std::fs::canonicalize(self.path.join(path)).ok()?;
                Some(std::fs::canonicalize(&self.path).is_ok_and(|root| resolved.starts_with(root)))
            }
            Err(_) => Some(false),
        }
    }

    /// Whether the link at `path` leads back to itself, or through more links than the system follows.
    pub(crate) fn is_loop(&self, path: &Path) -> bool {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let opened = rustix::fs::openat2(
            &self.fd,
            path,
            OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
            resolve,
        );
        opened.err() == Some(Errno::LOOP)
    }

    /// Returns whether something other than a directory exists at `path`. Files behind a link do not count:
    /// they belong to another place.
    pub(crate) fn has_file(&self, path: &Path) -> Result<bool, RepoError> {
        match self.stat(path) {
            Ok(stat) => Ok(FileType::from_raw_mode(stat.st_mode) != FileType::Directory),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(false),
            Err(errno) => Err(self.fail("look at", path, errno)),
        }
    }

    /// Returns whether `path` does not exist, or is a file with only a prefix of `content`.
    pub(crate) fn is_missing_or_prefix(
        &self,
        path: &Path,
        content: Option<&[u8]>,
    ) -> Result<bool, RepoError> {
        match self.stat(path) {
            Err(Errno::NOENT) => return Ok(true),
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {}
            _ => return Ok(false),
        }
        let Some(content) = content else {
            return Ok(false);
        };
        let fail = |errno| self.fail("read", path, errno);
        let fd = self
            .open_file(path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())
            .map_err(fail)?;
        let mut found = Vec::new();
        let read = std::fs::File::from(fd)
            .take(content.len() as u64 + 1)
            .read_to_end(&mut found);
        read.map_err(|source| fail(Errno::from_io_error(&source).unwrap_or(Errno::IO)))?;
        Ok(content.starts_with(&found))
    }

    /// Returns whether something prevents creating a file at `path`, except what `goes` removes.
    pub(crate) fn blocks_creation(
        &self,
        path: &Path,
        goes: &BTreeSet<&Path>,
    ) -> Result<bool, RepoError> {
        let mut at = PathBuf::new();
        let parts = path.components().count();
        for (index, part) in path.components().enumerate() {
            at.push(part);
            let kind = match self.stat(&at) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                Err(Errno::NOENT) => return Ok(false),
                Err(errno) => return Err(self.fail("look at", &at, errno)),
            };
            if index + 1 < parts && kind == FileType::Directory {
                continue;
            }
            return Ok(match kind {
                FileType::Directory => !self.empties(&at, goes)?,
                _ => !goes.contains(at.as_path()),
            });
        }
        Ok(false)
    }

    /// Removes a file and the directories that it leaves empty.
    pub(crate) fn remove(&self, path: &Path) -> Result<(), RepoError> {
        match self.unlink(path) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(self.fail("remove", path, errno)),
        }
        let parents = path
            .ancestors()
            .skip(1)
            .take_while(|parent| !parent.as_os_str().is_empty());
        for parent in parents {
            if self.remove_dir(parent).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Whether all that the directory at `path` holds goes away.
    fn empties(&self, path: &Path, goes: &BTreeSet<&Path>) -> Result<bool, RepoError> {
        let read = || -> io::Result<Vec<(PathBuf, bool)>> {
            let fd = self.open_file(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
            let mut entries = Vec::new();
            for entry in rustix::fs::Dir::new(fd)? {
                let entry = entry?;
                let name = entry.file_name().to_bytes();
                if !matches!(name, b"." | b"..") {
                    let below = path.join(crate::git::as_path(name));
                    entries.push((below, entry.file_type() == FileType::Directory));
                }
            }
            Ok(entries)
        };
        for (below, is_dir) in
            read().map_err(|source| RepoError::io("list", self.path.join(path), source))?
        {
            let goes_away = if is_dir {
                self.empties(&below, goes)?
            } else {
                goes.contains(below.as_path())
            };
            if !goes_away {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The open parent directory of `path`, and its last name.
    fn parent_of<'a>(&self, path: &'a Path) -> Result<(OwnedFd, &'a OsStr), Errno> {
        let name = path.file_name().ok_or(Errno::INVAL)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => {
                self.open_file(parent, flags, Mode::empty())?
            }
            _ => rustix::io::fcntl_dupfd_cloexec(&self.fd, 0)?,
        };
        Ok((parent, name))
    }

    fn open_by_parts(&self, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        let mut parts = path.components().peekable();
        let mut at = rustix::io::fcntl_dupfd_cloexec(&self.fd, 0)?;
        while let Some(part) = parts.next() {
            let Component::Normal(name) = part else {
                return Err(Errno::XDEV);
            };
            if parts.peek().is_none() {
                return rustix::fs::openat(&at, name, flags, mode);
            }
            let on_the_way = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            at = match rustix::fs::openat(at.as_fd(), name, on_the_way, Mode::empty()) {
                // An unfollowed link is not a directory; `openat2` distinguishes the two.
                Err(Errno::NOTDIR) if self.is_link(&at, name) => return Err(Errno::LOOP),
                other => other?,
            };
        }
        Err(Errno::INVAL)
    }

    fn is_link(&self, at: &OwnedFd, name: &OsStr) -> bool {
        rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
    }
}
