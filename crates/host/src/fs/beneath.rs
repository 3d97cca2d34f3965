//! Reads and writes files below a directory without following links.
//!
//! A file or a directory can be replaced by a link at any moment. So each component of a path is opened from its
//! parent directory, and a link is refused. Nothing outside of the directory is read or written. The path of the
//! directory itself comes from the caller; links in it are followed.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use crucible_model::ByteLimit;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::{FsError, TEMPORARY, hold, read_known, symlink_found};

/// Whether missing parent directories are created.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MissingParents {
    Create,
    Fail,
}

/// Whether a write is flushed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flush {
    Now,
    Later,
}

/// Reads a regular file of at most `limit` bytes below `root`. A longer file is not read at all.
///
/// # Errors
///
/// [`FsError::TooLarge`] if the file is longer. Also fails if it is missing, not a regular file, or behind a link
/// ([`FsError::is_link`]).
pub fn read_beneath(root: &Path, relative: &str, limit: ByteLimit) -> Result<Vec<u8>, FsError> {
    let place = root.join(relative);
    let fail = |source| FsError::io("read", &place, source);
    let file = open(root, relative).map_err(fail)?;
    read_known(file, &place, limit)
}

/// Returns whether a regular file exists below `root`, without a link in its path.
#[must_use]
pub fn is_file_beneath(root: &Path, relative: &str) -> bool {
    let Ok((parent, name)) = parent_of(root, relative, MissingParents::Fail) else {
        return false;
    };
    kind_of(&parent, name).is_ok_and(|kind| kind == FileType::RegularFile)
}

/// Creates a directory below `root` and its missing parents, accessible only to this user.
///
/// # Errors
///
/// Fails if a file or a link exists there, or if the parent is not writable.
pub fn create_dir_beneath(root: &Path, relative: &str) -> Result<(), FsError> {
    let fail = |source| FsError::io("create", &root.join(relative), source);
    walk(root, Path::new(relative), MissingParents::Create)
        .map(drop)
        .map_err(fail)
}

/// Writes a file below `root` atomically, as [`super::write_atomic`] does, and creates missing parents. Replaces a link
/// at the path of the file itself.
///
/// # Errors
///
/// Fails if a parent is a link, or a directory is not writable or full.
pub fn write_beneath(root: &Path, relative: &str, bytes: &[u8]) -> Result<(), FsError> {
    write(root, relative, bytes, Flush::Now)
}

/// Writes a file below `root` as [`write_beneath`] does, but without a flush, like [`super::write_unflushed`].
///
/// # Errors
///
/// As [`write_beneath`].
pub fn write_beneath_unflushed(root: &Path, relative: &str, bytes: &[u8]) -> Result<(), FsError> {
    write(root, relative, bytes, Flush::Later)
}

/// Flushes files below `root` that were written without a flush, and each of their directories once. Use this only for new files:
/// a crash before it returns could lose both versions of a replaced file.
///
/// # Errors
///
/// Fails if one of them is missing, not a regular file or behind a link, or if the flush fails.
pub fn flush_beneath(root: &Path, relatives: &[&str]) -> Result<(), FsError> {
    let fail = |relative: &str, source| FsError::io("flush", &root.join(relative), source);
    let mut directories = BTreeMap::new();
    for relative in relatives {
        open(root, relative)
            .and_then(|file| file.sync_all())
            .map_err(|source| fail(relative, source))?;
        directories.insert(Path::new(relative).parent(), relative);
    }
    for relative in directories.into_values() {
        let (parent, _) = parent_of(root, relative, MissingParents::Fail)
            .map_err(|source| fail(relative, source))?;
        rustix::fs::fsync(&parent).map_err(|errno| fail(relative, errno.into()))?;
    }
    Ok(())
}

fn write(root: &Path, relative: &str, bytes: &[u8], flush: Flush) -> Result<(), FsError> {
    let fail = |source| FsError::io("write", &root.join(relative), source);
    let (parent, name) = parent_of(root, relative, MissingParents::Create).map_err(fail)?;
    let (mut file, temporary) = temporary_in(&parent).map_err(fail)?;
    let mut write = || -> io::Result<()> {
        file.write_all(bytes)?;
        if flush == Flush::Now {
            file.sync_all()?;
        }
        rustix::fs::renameat(&parent, temporary.as_str(), &parent, name)?;
        if flush == Flush::Now {
            rustix::fs::fsync(&parent)?;
        }
        Ok(())
    };
    let written = write();
    if written.is_err() {
        // If this fails, the next start removes the file.
        let _stays = rustix::fs::unlinkat(&parent, temporary.as_str(), AtFlags::empty());
    }
    written.map_err(fail)
}

/// Creates a temporary file in a directory and returns it with its name.
fn temporary_in(parent: &OwnedFd) -> io::Result<(File, String)> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o644);
    loop {
        let token = crate::random::token().map_err(FsError::into_source)?;
        let name = format!("{TEMPORARY}{token}");
        let file = File::from(rustix::fs::openat(parent, name.as_str(), flags, mode)?);
        // Set explicitly, because the umask applies to new files.
        rustix::fs::fchmod(&file, mode)?;
        if hold(&file)? {
            return Ok((file, name));
        }
    }
}

/// Opens a regular file for reading, without waiting for a writer.
fn open(root: &Path, relative: &str) -> io::Result<File> {
    let (parent, name) = parent_of(root, relative, MissingParents::Fail)?;
    let flags =
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(&parent, name, flags, Mode::empty()) {
        Ok(fd) => Ok(File::from(fd)),
        Err(Errno::LOOP) => Err(symlink_found()),
        Err(errno) => Err(errno.into()),
    }
}

/// Returns the open directory of a file and the file's name.
fn parent_of<'r>(
    root: &Path,
    relative: &'r str,
    missing_parents: MissingParents,
) -> io::Result<(OwnedFd, &'r OsStr)> {
    let path = Path::new(relative);
    let name = path.file_name().ok_or(Errno::INVAL)?;
    Ok((
        walk(
            root,
            path.parent().unwrap_or(Path::new("")),
            missing_parents,
        )?,
        name,
    ))
}

/// Opens the directory at `path` below `root`, part by part.
fn walk(root: &Path, path: &Path, missing_parents: MissingParents) -> io::Result<OwnedFd> {
    if missing_parents == MissingParents::Create {
        super::create_dir_all(root).map_err(FsError::into_source)?;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at = rustix::fs::openat(CWD, root, flags, Mode::empty())?;
    for part in path.components() {
        let Component::Normal(name) = part else {
            return Err(Errno::INVAL.into());
        };
        if missing_parents == MissingParents::Create {
            match rustix::fs::mkdirat(&at, name, Mode::from_raw_mode(0o700)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        at = match rustix::fs::openat(&at, name, flags | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(next) => next,
            Err(Errno::LOOP | Errno::NOTDIR) if kind_of(&at, name)? == FileType::Symlink => {
                return Err(symlink_found());
            }
            Err(errno) => return Err(errno.into()),
        };
    }
    Ok(at)
}

/// Returns the type of a directory entry, without following a link.
fn kind_of(parent: &OwnedFd, name: &OsStr) -> io::Result<FileType> {
    let stat = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests plant links by hand")]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn link_anywhere_in_path_is_not_followed() {
        let temp_dir = tempfile::tempdir().unwrap();
        let (root, other) = (temp_dir.path().join("root"), temp_dir.path().join("other"));
        std::fs::create_dir_all(root.join("a")).unwrap();
        std::fs::create_dir_all(&other).unwrap();
        std::fs::write(other.join("private"), "private").unwrap();
        symlink(other.join("private"), root.join("a/file")).unwrap();
        symlink(&other, root.join("dir")).unwrap();
        for path in ["a/file", "dir/private"] {
            let error = read_beneath(&root, path, ByteLimit(100)).unwrap_err();
            assert!(error.is_link(), "{error}");
            assert!(
                error.to_string().contains("the path is a symbolic link; "),
                "{error}"
            );
            assert!(!is_file_beneath(&root, path));
        }
        for path in ["dir/new", "dir/deeper/new"] {
            assert!(write_beneath(&root, path, b"ours").unwrap_err().is_link());
            assert!(
                write_beneath_unflushed(&root, path, b"ours")
                    .unwrap_err()
                    .is_link()
            );
        }
        assert!(
            create_dir_beneath(&root, "dir/deeper")
                .unwrap_err()
                .is_link()
        );
        assert!(create_dir_beneath(&root, "dir").unwrap_err().is_link());
        assert_eq!(
            std::fs::read_dir(&other).unwrap().count(),
            1,
            "nothing was written there"
        );
        // The link itself gives way to a file of ours, and what it led to stays.
        write_beneath(&root, "a/file", b"ours").unwrap();
        assert_eq!(
            read_beneath(&root, "a/file", ByteLimit(4)).unwrap(),
            b"ours"
        );
        assert_eq!(std::fs::read(other.join("private")).unwrap(), b"private");
        assert!(is_file_beneath(&root, "a/file"));
    }

    #[test]
    fn write_creates_directories_without_leftovers() {
        let temp_dir = tempfile::tempdir().unwrap();
        let root = temp_dir.path().join("run");
        write_beneath(&root, "a/b/c", b"old and long").unwrap();
        write_beneath(&root, "a/b/c", b"new").unwrap();
        assert_eq!(std::fs::read(root.join("a/b/c")).unwrap(), b"new");
        assert_eq!(std::fs::read_dir(root.join("a/b")).unwrap().count(), 1);
        assert_eq!(
            std::fs::metadata(root.join("a/b/c"))
                .unwrap()
                .permissions()
                .mode()
                & 0o777,
            0o644
        );
        assert_eq!(
            std::fs::metadata(root.join("a"))
                .unwrap()
                .permissions()
                .mode()
                & 0o777,
            0o700
        );
        assert!(write_beneath(&root, "a/b", b"x").is_err());
        assert_eq!(
            std::fs::read_dir(root.join("a")).unwrap().count(),
            1,
            "a failed write leaves nothing"
        );
        assert!(write_beneath(&root, "../x", b"x").is_err());
        for path in ["a/b/d", "a/e", "f"] {
            write_beneath_unflushed(&root, path, b"later").unwrap();
        }
        flush_beneath(&root, &["a/b/d", "a/e", "a/b/c", "f"]).unwrap();
        assert_eq!(std::fs::read(root.join("a/e")).unwrap(), b"later");
        assert!(
            flush_beneath(&root, &["a/e", "a/none"])
                .unwrap_err()
                .is_not_found()
        );
    }

    #[test]
    fn file_with_excessive_length_is_not_read() {
        let temp_dir = tempfile::tempdir().unwrap();
        let file = File::create(temp_dir.path().join("sparse")).unwrap();
        file.set_len(1 << 40).unwrap();
        let error = read_beneath(temp_dir.path(), "sparse", ByteLimit(u64::MAX >> 24)).unwrap_err();
        assert!(
            matches!(error, FsError::TooLarge { limit, .. } if limit == u64::MAX >> 24),
            "{error}"
        );
    }

    #[test]
    fn non_regular_file_is_refused_at_once() {
        let temp_dir = tempfile::tempdir().unwrap();
        rustix::fs::mkfifoat(
            CWD,
            temp_dir.path().join("pipe"),
            Mode::from_raw_mode(0o600),
        )
        .unwrap();
        assert!(read_beneath(temp_dir.path(), "pipe", ByteLimit(10)).is_err());
        assert!(
            read_beneath(temp_dir.path(), "none", ByteLimit(10))
                .unwrap_err()
                .is_not_found()
        );
        assert!(
            read_beneath(temp_dir.path(), "none/x", ByteLimit(10))
                .unwrap_err()
                .is_not_found()
        );
    }
}
