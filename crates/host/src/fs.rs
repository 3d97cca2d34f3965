//! Files: read within limits, written whole or not at all.
//!
//! A write goes to a random temporary file beside its target, is flushed to the disk, renamed over the
//! target, and the directory is flushed too: after a crash there is the old file or the new one, never a
//! part of either. A full disk is an error that leaves the old file as it was.
//!
//! There is a weaker write of the same shape, [`write_unflushed`] and [`write_beneath_unflushed`]: no other process ever sees a part of the
//! file, and a process that is killed leaves the old one or the new one. Only when the machine itself goes down the file can be missing,
//! empty, cut off, or end in zeros. It is right for what can be made again, byte for byte, from what is on the disk
//! (bytes that the ledger holds), and for what nobody needs after a crash (copies in a temporary directory). A caller that writes so has to
//! put the file right before it is read again. For all else a flush is due before anybody relies on the file: [`write_atomic`], or, for
//! several new files at once, the weaker write and then [`flush_beneath`].

use std::fs::{DirBuilder, File, Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crucible_model::ByteLimit;
use rustix::fs::OFlags;

mod beneath;

pub use beneath::{
    create_dir_beneath, flush_beneath, is_file_beneath, read_beneath, write_beneath,
    write_beneath_unflushed,
};

/// Why the file system did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum FsError {
    /// The operating system refused.
    #[error("cannot {action} {}: {source}; {}", path.display(), advice(source))]
    Io {
        /// What was tried: `read`, `write`, …
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file is larger than what the caller can take.
    #[error("{} is larger than {limit} bytes; make it smaller, or leave it out", path.display())]
    TooLarge {
        /// Which file.
        path: PathBuf,
        /// The limit in bytes.
        limit: u64,
    },
}

impl FsError {
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }

    /// What the operating system said.
    fn into_source(self) -> io::Error {
        match self {
            Self::Io { source, .. } => source,
            Self::TooLarge { .. } => io::ErrorKind::FileTooLarge.into(),
        }
    }

    /// Whether the thing simply is not there.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// Whether a symbolic link stands where none is followed.
    #[must_use]
    pub fn is_link(&self) -> bool {
        matches!(self, Self::Io { source, .. } if is_symlink_found(source))
    }

    /// Whether the path exists and is not a regular file: a link that is not followed, a directory, a pipe.
    #[must_use]
    pub fn is_no_file(&self) -> bool {
        let is_other = |source: &io::Error| {
            source
                .get_ref()
                .is_some_and(|inner| inner.is::<NoRegularFile>())
        };
        self.is_link() || matches!(self, Self::Io { source, .. } if is_other(source))
    }
}

/// A directory, a pipe or a device stands where a regular file is read.
#[derive(Debug, thiserror::Error)]
#[error("it is not a regular file")]
struct NoRegularFile;

/// A symbolic link stands where none is followed.
#[derive(Debug, thiserror::Error)]
#[error("the path is a symbolic link")]
struct SymlinkFound;

fn symlink_found() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, SymlinkFound)
}

fn is_symlink_found(error: &io::Error) -> bool {
    error
        .get_ref()
        .is_some_and(|inner| inner.is::<SymlinkFound>())
}

/// What the reader can do about it.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "make room there, and try again"
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            "the file system can only be read: work on a copy elsewhere, or mount it for writing"
        }
        _ if is_symlink_found(error) => "put the file or directory itself in its place",
        _ => "see that the path is right and that you may use it",
    }
}

/// The first bytes of a file, and how long it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    /// The bytes that were read.
    pub bytes: Vec<u8>,
    /// The length of the whole file in bytes, as its metadata tells.
    pub total: u64,
}

/// What the names of temporary files of [`write_atomic`] begin with.
pub(crate) const TEMPORARY: &str = ".tmp-";

/// Returns whether the open file is the one at `path` now; a link at `path` is not followed.
#[must_use]
pub fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), path.symlink_metadata()) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

/// Writes a file whole: either the new bytes are there after this, or the old file is as it was. Others may read it, and only its owner
/// write to it.
///
/// # Errors
///
/// Fails when the directory is missing, not writable or full.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), FsError> {
    write_atomic_as(path, bytes, 0o644)
}

/// The same with these permission bits, which the file has from the moment at which it bears its name.
///
/// # Errors
///
/// As [`write_atomic`].
pub fn write_atomic_as(path: &Path, bytes: &[u8], mode: u32) -> Result<(), FsError> {
    let fail = |source| FsError::io("write", path, source);
    let temporary = temporary_with(path, bytes, mode).map_err(fail)?;
    temporary.as_file().sync_all().map_err(fail)?;
    temporary.persist(path).map_err(|error| fail(error.error))?;
    flush_name(path)
}

/// Writes a file whole as [`write_atomic_as`] does, without waiting for the disk: for what can be made again, or is needed by nobody after
/// a crash of the machine.
///
/// # Errors
///
/// As [`write_atomic`].
pub fn write_unflushed(path: &Path, bytes: &[u8], mode: u32) -> Result<(), FsError> {
    let fail = |source| FsError::io("write", path, source);
    let temporary = temporary_with(path, bytes, mode).map_err(fail)?;
    temporary
        .persist(path)
        .map(drop)
        .map_err(|error| fail(error.error))
}

/// Writes a new file whole and durably, for this user alone; an existing file is kept.
///
/// # Errors
///
/// Fails when something of that name is there, or the directory is missing, not writable or full.
pub fn write_new(path: &Path, bytes: &[u8]) -> Result<(), FsError> {
    write_new_as(path, bytes, 0o600)
}

/// Like [`write_new`], with these permission bits.
///
/// # Errors
///
/// Those of [`write_new`].
pub fn write_new_as(path: &Path, bytes: &[u8], mode: u32) -> Result<(), FsError> {
    let fail = |source| FsError::io("write", path, source);
    let temporary = temporary_with(path, bytes, mode).map_err(fail)?;
    temporary.as_file().sync_all().map_err(fail)?;
    temporary
        .persist_noclobber(path)
        .map_err(|error| fail(error.error))?;
    flush_name(path)
}

/// A temporary file beside `path` with these bytes and permission bits.
fn temporary_with(path: &Path, bytes: &[u8], mode: u32) -> io::Result<tempfile::NamedTempFile> {
    let mut temporary = loop {
        let temporary = tempfile::Builder::new()
            .prefix(TEMPORARY)
            .tempfile_in(parent_of(path))?;
        if hold(temporary.as_file())? {
            break temporary;
        }
    };
    temporary.write_all(bytes)?;
    temporary
        .as_file()
        .set_permissions(Permissions::from_mode(mode))?;
    Ok(temporary)
}

/// Locks a temporary file until it is closed or its process ends: one that nobody holds is stale. False where it was removed as stale
/// before it was locked. A file system without locks protects none.
fn hold(temporary: &File) -> io::Result<bool> {
    let _unprotected = temporary.lock();
    Ok(temporary.metadata()?.nlink() > 0)
}

/// Flushes the name of a file: afterwards its directory has it whatever happens. Its content is another matter.
///
/// # Errors
///
/// Fails when the directory cannot be opened or flushed.
pub fn flush_name(path: &Path) -> Result<(), FsError> {
    sync_directory(parent_of(path))
}

/// Appends bytes to a file, creates it if missing, and flushes it to disk. A link at the path is not followed.
///
/// # Errors
///
/// Fails when the file cannot be opened, is a link ([`FsError::is_link`]), or the disk is full.
pub fn append_durable(path: &Path, bytes: &[u8]) -> Result<(), FsError> {
    let fail = |source| FsError::io("append to", path, source);
    let is_new = path.symlink_metadata().is_err();
    append_to(path, bytes)?.sync_data().map_err(fail)?;
    if is_new { flush_name(path) } else { Ok(()) }
}

/// Adds bytes as [`append_durable`] does, without waiting for the disk: for a file that is derived from what is on the disk, and is completed
/// from there before it is read.
///
/// # Errors
///
/// As [`append_durable`].
pub fn append_unflushed(path: &Path, bytes: &[u8]) -> Result<(), FsError> {
    append_to(path, bytes).map(drop)
}

#[expect(clippy::disallowed_methods, reason = "host owns the writing of files")]
fn append_to(path: &Path, bytes: &[u8]) -> Result<File, FsError> {
    let fail = |source| FsError::io("append to", path, source);
    // A pipe is not waited at.
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or_default();
    let open = File::options()
        .append(true)
        .create(true)
        .custom_flags(flags)
        .open(path);
    let mut file = open.map_err(|source| match path.symlink_metadata() {
        Ok(meta) if meta.is_symlink() => fail(symlink_found()),
        _ => fail(source),
    })?;
    if !file.metadata().map_err(fail)?.is_file() {
        return Err(fail(io::Error::new(
            io::ErrorKind::InvalidInput,
            NoRegularFile,
        )));
    }
    file.write_all(bytes).map_err(fail)?;
    Ok(file)
}

/// Creates a new file for writing, for this user only; an existing file or link is never opened.
///
/// # Errors
///
/// Fails when something of that name is there, or the directory is missing, not writable or full.
#[expect(clippy::disallowed_methods, reason = "host owns the writing of files")]
pub fn create_new(path: &Path) -> Result<File, FsError> {
    let file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    file.map_err(|source| FsError::io("create", path, source))
}

/// Makes a directory and its parents, for this user alone where they are new.
///
/// # Errors
///
/// Fails when the path exists and is not a regular file or the parent is not writable.
#[expect(
    clippy::disallowed_methods,
    reason = "host owns changes of the file system"
)]
pub fn create_dir_all(path: &Path) -> Result<(), FsError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|source| FsError::io("create", path, source))
}

/// Reads a whole file of at most `limit` bytes. Never reads more than one byte over the limit, whatever the
/// file's metadata say.
///
/// # Errors
///
/// [`FsError::TooLarge`] when the file is longer.
pub fn read_up_to(path: &Path, limit: ByteLimit) -> Result<Vec<u8>, FsError> {
    let file = File::open(path).map_err(|source| FsError::io("read", path, source))?;
    let length = file.metadata().map_or(0, |meta| meta.len());
    read_open(file, path, length, limit)
}

/// The same for a file whose name comes from outside: only a regular file is read. A pipe or a device could make the reader
/// wait for ever, or never end.
///
/// # Errors
///
/// As [`read_up_to`], and for whatever is not a regular file.
pub fn read_regular_up_to(path: &Path, limit: ByteLimit) -> Result<Vec<u8>, FsError> {
    let file = open_at_once(path).map_err(|source| FsError::io("read", path, source))?;
    read_known(file, path, limit)
}

/// Reads an open file that has to be a regular one. One that says it is longer than `limit` is not read at all.
fn read_known(file: File, path: &Path, limit: ByteLimit) -> Result<Vec<u8>, FsError> {
    let fail = |source| FsError::io("read", path, source);
    let meta = file.metadata().map_err(fail)?;
    if !meta.is_file() {
        return Err(fail(io::Error::new(
            io::ErrorKind::InvalidInput,
            NoRegularFile,
        )));
    }
    if meta.len() > limit.0 {
        return Err(FsError::TooLarge {
            path: path.to_owned(),
            limit: limit.0,
        });
    }
    read_open(file, path, meta.len(), limit)
}

/// Opens for reading without waiting for a writer.
#[expect(
    clippy::disallowed_methods,
    reason = "host owns the opening of files; this one is read"
)]
fn open_at_once(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    File::options().read(true).custom_flags(flags).open(path)
}

/// The largest buffer that a file's own word is believed for.
const MAX_CONCURRENT: u64 = 1 << 20;

/// What the metadata say of the length is a hint that saves reads, and no more: a file can be longer, or say nothing of its length.
fn read_open(file: File, path: &Path, length: u64, limit: ByteLimit) -> Result<Vec<u8>, FsError> {
    let hint = length.min(limit.0).min(MAX_CONCURRENT);
    let mut bytes = Vec::with_capacity(usize::try_from(hint).unwrap_or_default().saturating_add(1));
    file.take(limit.0.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|source| FsError::io("read", path, source))?;
    if bytes.len() as u64 > limit.0 {
        return Err(FsError::TooLarge {
            path: path.to_owned(),
            limit: limit.0,
        });
    }
    Ok(bytes)
}

/// Reads at most the first `limit` bytes of a file. A pipe is not waited at.
///
/// # Errors
///
/// Fails when the file cannot be read.
pub fn read_prefix(path: &Path, limit: ByteLimit) -> Result<Prefix, FsError> {
    let fail = |source| FsError::io("read", path, source);
    let file = open_at_once(path).map_err(fail)?;
    let total = file.metadata().map_err(fail)?.len();
    let mut bytes = Vec::with_capacity(usize::try_from(total.min(limit.0)).unwrap_or_default());
    file.take(limit.0).read_to_end(&mut bytes).map_err(fail)?;
    Ok(Prefix {
        total: total.max(bytes.len() as u64),
        bytes,
    })
}

/// Removes a file; one that is not there is fine.
///
/// # Errors
///
/// Fails when the file is there and cannot be removed.
#[expect(
    clippy::disallowed_methods,
    reason = "host owns changes of the file system"
)]
pub fn remove_file(path: &Path) -> Result<(), FsError> {
    ignore_missing(std::fs::remove_file(path)).map_err(|source| FsError::io("remove", path, source))
}

/// Removes the temporary files that killed writers left directly in `directory`; links and directories stay, and a
/// directory that does not exist has none. A file whose writer lives stays.
///
/// # Errors
///
/// Fails when the directory cannot be read or is a link ([`FsError::is_link`]), or one of them cannot be removed.
pub fn remove_stale_temporaries(directory: &Path) -> Result<(), FsError> {
    let fail = |source| FsError::io("read", directory, source);
    refuse_link(directory)?;
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(fail(error)),
    };
    for entry in entries {
        let entry = entry.map_err(fail)?;
        let is_own = entry
            .file_name()
            .as_bytes()
            .starts_with(TEMPORARY.as_bytes());
        if is_own && entry.file_type().map_err(fail)?.is_file() && !is_locked(&entry.path()) {
            remove_file(&entry.path())?;
        }
    }
    Ok(())
}

/// Whether a process holds the lock of a file.
#[expect(
    clippy::disallowed_methods,
    reason = "the file is only read, and no link is followed"
)]
fn is_locked(path: &Path) -> bool {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = File::options().read(true).custom_flags(flags).open(path);
    file.is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

/// Refuses a link that stands at `path` itself.
///
/// # Errors
///
/// [`FsError::is_link`].
pub fn refuse_link(path: &Path) -> Result<(), FsError> {
    if path.is_symlink() {
        Err(FsError::io("use", path, symlink_found()))
    } else {
        Ok(())
    }
}

/// Removes the directories in `parent` whose names begin with `prefix` and that were made longer ago than `age`: what a killed
/// process left of [`temp_dir_in`]. What cannot be removed stays; it is not ours, or goes next time.
pub fn remove_stale_directories(parent: &Path, prefix: &str, age: Duration) {
    let Ok(entries) = std::fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let is_own = entry.file_name().as_bytes().starts_with(prefix.as_bytes());
        let meta = entry.metadata().ok().filter(|meta| is_own && meta.is_dir());
        let system_time = meta.and_then(|meta| meta.modified().ok());
        // A clock that was set back makes nothing stale.
        if system_time
            .and_then(|made| made.elapsed().ok())
            .is_some_and(|passed| passed > age)
        {
            let _stays = remove_dir_all(&entry.path());
        }
    }
}

/// Removes a directory and all below it, never following a link; one that is not there is fine.
///
/// # Errors
///
/// Fails when something below cannot be removed.
#[expect(
    clippy::disallowed_methods,
    reason = "host owns changes of the file system"
)]
pub fn remove_dir_all(path: &Path) -> Result<(), FsError> {
    let first = ignore_missing(std::fs::remove_dir_all(path));
    if matches!(&first, Err(error) if error.kind() == io::ErrorKind::PermissionDenied) {
        // A program may have taken our right to enter its directories; they are ours, so we take it back.
        open_up(path);
        return ignore_missing(std::fs::remove_dir_all(path))
            .map_err(|source| FsError::io("remove", path, source));
    }
    first.map_err(|source| FsError::io("remove", path, source))
}

/// Lets us into every directory below `root`, links not followed. What cannot be changed stays as it is.
#[expect(
    clippy::disallowed_methods,
    reason = "host owns changes of the file system"
)]
fn open_up(root: &Path) {
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        let Ok(meta) = dir.symlink_metadata() else {
            continue;
        };
        if !meta.is_dir() {
            continue;
        }
        let _stays_closed = std::fs::set_permissions(
            &dir,
            Permissions::from_mode(meta.permissions().mode() | 0o700),
        );
        let entries = std::fs::read_dir(&dir).into_iter().flatten().flatten();
        open.extend(entries.map(|entry| entry.path()));
    }
}

/// Moves a file or directory within one file system, and flushes the directory it came to.
///
/// # Errors
///
/// Fails when source or target do not allow it.
#[expect(
    clippy::disallowed_methods,
    reason = "host owns changes of the file system"
)]
pub fn rename(from: &Path, to: &Path) -> Result<(), FsError> {
    std::fs::rename(from, to).map_err(|source| FsError::io("rename to", to, source))?;
    flush_name(to)
}

/// Makes a symbolic link to `target`, which need not be there, in a directory of ours.
///
/// # Errors
///
/// Fails when something of that name is there, or the directory is not writable.
#[expect(
    clippy::disallowed_methods,
    reason = "host owns changes of the file system"
)]
pub fn make_link(target: &Path, link: &Path) -> Result<(), FsError> {
    std::os::unix::fs::symlink(target, link)
        .map_err(|source| FsError::io("make the link", link, source))
}

/// Sets the permission bits of a file.
///
/// # Errors
///
/// Fails when the file is not there or not ours.
#[expect(
    clippy::disallowed_methods,
    reason = "host owns changes of the file system"
)]
pub fn set_mode(path: &Path, mode: u32) -> Result<(), FsError> {
    std::fs::set_permissions(path, Permissions::from_mode(mode))
        .map_err(|source| FsError::io("set the mode of", path, source))
}

/// A new directory below `parent` with a random name, removed when the value is dropped.
///
/// # Errors
///
/// Fails when `parent` is missing or not writable.
pub fn temp_dir_in(parent: &Path, prefix: &str) -> Result<tempfile::TempDir, FsError> {
    // For the owner alone: what is put there may hold what a model was asked.
    tempfile::Builder::new()
        .prefix(prefix)
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(parent)
        .map_err(|source| FsError::io("make a temporary directory in", parent, source))
}

fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn parent_of(path: &Path) -> &Path {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

fn sync_directory(path: &Path) -> Result<(), FsError> {
    File::open(path)
        .and_then(|dir| dir.sync_all())
        .map_err(|source| FsError::io("flush", path, source))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests plant links by hand")]
mod tests {
    use super::*;

    #[test]
    fn atomic_write_replaces_whole_file_without_leftovers() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        write_atomic(&path, b"old and long").unwrap();
        write_atomic(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        write_unflushed(&path, b"newer", 0o755).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"newer");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o755);
        assert!(write_new(&path, b"newest").is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"newer");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn non_regular_file_is_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mkfifoat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::Mode::from_raw_mode(0o600),
        )
        .unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        for unusual_path in [&pipe, &link, dir.path()] {
            let error = read_regular_up_to(unusual_path, ByteLimit(10))
                .unwrap_err()
                .to_string();
            assert!(error.contains("cannot read"), "{error}");
        }
        assert_eq!(
            read_prefix(&pipe, ByteLimit(10)).unwrap().bytes,
            b"",
            "nobody writes there"
        );
        let file = dir.path().join("file");
        write_atomic(&file, b"content").unwrap();
        assert_eq!(
            read_regular_up_to(&file, ByteLimit(10)).unwrap(),
            b"content"
        );
        assert!(matches!(
            read_regular_up_to(&file, ByteLimit(3)),
            Err(FsError::TooLarge { .. })
        ));
    }

    #[test]
    fn temporary_directories_are_private_and_expire() {
        let parent = tempfile::tempdir().unwrap();
        let new_path = temp_dir_in(parent.path(), "crucible-x-").unwrap().keep();
        assert_eq!(
            std::fs::metadata(&new_path).unwrap().permissions().mode() & 0o777,
            0o700
        );
        let other = parent.path().join("other");
        create_dir_all(&other).unwrap();
        remove_stale_directories(parent.path(), "crucible-x-", Duration::from_secs(3600));
        assert!(new_path.is_dir());
        std::thread::sleep(Duration::from_millis(20));
        remove_stale_directories(parent.path(), "crucible-x-", Duration::from_millis(1));
        assert!(!new_path.exists() && other.is_dir());
    }

    #[test]
    fn only_own_temporary_files_are_stale() {
        let dir = tempfile::tempdir().unwrap();
        for name in [".tmp-aB3dE6", ".tmp", "tmp-x", "a.json"] {
            write_atomic(&dir.path().join(name), b"x").unwrap();
        }
        create_dir_all(&dir.path().join(".tmp-directory")).unwrap();
        std::os::unix::fs::symlink("a.json", dir.path().join(".tmp-link")).unwrap();
        remove_stale_temporaries(dir.path()).unwrap();
        remove_stale_temporaries(&dir.path().join("missing")).unwrap();
        let mut left: Vec<_> = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        left.sort();
        assert_eq!(
            left,
            [".tmp", ".tmp-directory", ".tmp-link", "a.json", "tmp-x"]
        );
    }

    #[test]
    fn temporary_file_of_a_living_writer_stays() {
        let dir = tempfile::tempdir().unwrap();
        let held = temporary_with(&dir.path().join("a"), b"x", 0o600).unwrap();
        let stale = dir.path().join(".tmp-aB3dE6");
        write_atomic(&stale, b"x").unwrap();
        remove_stale_temporaries(dir.path()).unwrap();
        assert!(held.path().exists() && !stale.exists());
        held.persist(dir.path().join("a")).unwrap();
    }

    #[test]
    fn the_advice_fits_the_error() {
        let message =
            |kind| FsError::io("write", Path::new("a"), io::Error::from(kind)).to_string();
        assert!(message(io::ErrorKind::StorageFull).ends_with("; make room there, and try again"));
        assert!(
            message(io::ErrorKind::QuotaExceeded).ends_with("; make room there, and try again")
        );
        assert!(message(io::ErrorKind::ReadOnlyFilesystem).contains("mount it for writing"));
        assert!(message(io::ErrorKind::PermissionDenied).ends_with("and that you may use it"));
    }

    #[test]
    fn a_write_that_fails_leaves_the_old_file() {
        let dir = tempfile::tempdir().unwrap();
        write_new(&dir.path().join("new"), b"x").unwrap();
        assert_eq!(
            dir.path()
                .join("new")
                .metadata()
                .unwrap()
                .permissions()
                .mode()
                & 0o777,
            0o600
        );
        let path = dir.path().join("missing/a.json");
        let error = write_atomic(&path, b"x").unwrap_err();
        assert!(error.is_not_found(), "{error}");
    }

    #[test]
    fn reading_stops_at_limit_despite_wrong_length() {
        let endless = Path::new("/dev/zero");
        let error = read_up_to(endless, ByteLimit(1000)).unwrap_err();
        assert!(matches!(error, FsError::TooLarge { limit: 1000, .. }));
        assert_eq!(read_prefix(endless, ByteLimit(10)).unwrap().bytes, [0; 10]);
    }

    #[test]
    fn tree_without_permissions_is_still_removed() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("a/b");
        create_dir_all(&inner).unwrap();
        write_atomic(&inner.join("c"), b"").unwrap();
        set_mode(&inner, 0).unwrap();
        set_mode(&dir.path().join("a"), 0).unwrap();
        open_up(&dir.path().join("a"));
        assert_eq!(
            inner.metadata().unwrap().permissions().mode() & 0o700,
            0o700
        );
        remove_dir_all(&dir.path().join("a")).unwrap();
        assert!(!dir.path().join("a").exists());
    }

    #[test]
    fn appending_twice_keeps_both_lines() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        append_durable(&path, b"1\n").unwrap();
        append_durable(&path, b"2\n").unwrap();
        append_unflushed(&path, b"3\n").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"1\n2\n3\n");
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(append_durable(&link, b"x").unwrap_err().is_link());
        let pipe = dir.path().join("pipe");
        rustix::fs::mkfifoat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::Mode::from_raw_mode(0o600),
        )
        .unwrap();
        assert!(
            append_durable(&pipe, b"x").is_err(),
            "a pipe that nobody reads is not waited at"
        );
        let _reader = open_at_once(&pipe).unwrap();
        assert!(append_durable(&pipe, b"x").unwrap_err().is_no_file());
        assert!(append_unflushed(&link, b"x").unwrap_err().is_link());
    }
}
