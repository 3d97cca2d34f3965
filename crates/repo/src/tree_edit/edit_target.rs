//! Examines a path: read once, from an open file, without following a link.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crucible_model::{ByteLimit, Digest, RepoPath};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::{
    EditNote, EditObstacle, EditedFile, LinkPolicy, MAX_EDITED_BYTES, NewFile, TreeEdit,
    TreeEditError, TreeFile,
};
use crate::beneath::Root;
use crate::error::RepoError;

/// What stands at a path.
pub(super) enum PathKind {
    /// Nothing.
    Nothing,
    /// A symbolic link.
    Link,
    /// A directory, a pipe, a device.
    Other,
    /// A file over the limit.
    TooLarge,
    /// A plain file.
    File(Box<PlainFile>),
}

/// A plain file.
pub(super) struct PlainFile {
    pub(super) bytes: Vec<u8>,
    pub(super) digest: Digest,
    pub(super) meta: Metadata,
}

impl PathKind {
    /// The digest of a plain file.
    pub(super) fn digest(&self) -> Option<Digest> {
        match self {
            Self::File(file) => Some(file.digest),
            Self::Nothing | Self::Link | Self::Other | Self::TooLarge => None,
        }
    }

    /// Returns whether nothing exists there.
    pub(super) fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }
}

/// Looks at `path` below `dir`. A pipe is not waited for, and no more is read than the limit.
pub(super) fn read_path(dir: &Root, path: &Path, limit: ByteLimit) -> Result<PathKind, Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let fd = match dir.open_file(path, flags, Mode::empty()) {
        Ok(fd) => fd,
        Err(Errno::NOENT) => return Ok(PathKind::Nothing),
        Err(Errno::LOOP) => return Ok(PathKind::Link),
        // A parent is not a directory; or a socket, or a device without a driver.
        Err(Errno::NOTDIR | Errno::NXIO | Errno::NODEV) => return Ok(PathKind::Other),
        Err(errno) => return Err(errno),
    };
    let file = File::from(fd);
    let meta = file.metadata().map_err(errno_of)?;
    if !meta.is_file() {
        return Ok(PathKind::Other);
    }
    let mut bytes = Vec::new();
    file.take(limit.0.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(errno_of)?;
    if bytes.len() as u64 > limit.0 {
        return Ok(PathKind::TooLarge);
    }
    Ok(PathKind::File(Box::new(PlainFile {
        digest: Digest::compute(&bytes),
        bytes,
        meta,
    })))
}

/// Reads `path` as [`read_path`] does, up to the limit of edited files.
pub(super) fn read_edited_path(dir: &Root, path: &Path) -> Result<PathKind, Errno> {
    read_path(dir, path, ByteLimit(MAX_EDITED_BYTES))
}

/// A file that may be changed.
pub(super) struct Target<'a> {
    pub(super) path: RepoPath,
    pub(super) before: Option<Digest>,
    pub(super) after: Option<&'a [u8]>,
    /// Of the file that is there.
    pub(super) meta: Option<Metadata>,
    /// The kind of file to create if none exists.
    pub(super) new_file: NewFile,
}

impl Target<'_> {
    /// Whether there is anything to do.
    pub(super) fn changes(&self) -> bool {
        self.after.map(Digest::compute) != self.before
    }

    /// Returns a unique identity of the file.
    pub(super) fn identity(&self) -> Option<(u64, u64)> {
        self.meta.as_ref().map(|meta| (meta.dev(), meta.ino()))
    }

    /// The report on it afterwards.
    pub(super) fn edited(&self) -> EditedFile {
        let mut notes = Vec::new();
        if let Some(meta) = &self.meta {
            let others = meta.nlink().saturating_sub(1);
            if others > 0 {
                notes.push(EditNote::OtherNames(others));
            }
            if meta.mode() & 0o7000 != 0 && self.after.is_some() {
                notes.push(EditNote::SpecialBits);
            }
        }
        EditedFile {
            path: self.path.clone(),
            notes,
        }
    }
}

/// Whether the file of an edit is as it has to be.
pub(super) fn check<'a>(root: &Root, edit: &'a TreeEdit) -> Result<Target<'a>, TreeEditError> {
    let path = &edit.path;
    let refuse = |why| {
        Err(TreeEditError::Blocked {
            path: path.clone(),
            why,
        })
    };
    let found = read_edited_path(root, path.as_ref())
        .map_err(|errno| root.fail("read", path.as_ref(), errno))?;
    let file = match (found, edit.before) {
        (PathKind::Link, _) => return refuse(EditObstacle::Link),
        (PathKind::Nothing, None) => None,
        (PathKind::Nothing, Some(_)) => return refuse(EditObstacle::Missing),
        (_, None) => return refuse(EditObstacle::InTheWay),
        (PathKind::Other, Some(_)) => return refuse(EditObstacle::NoFile),
        (PathKind::TooLarge, Some(_)) => return refuse(EditObstacle::TooLarge),
        (PathKind::File(file), Some(before)) if file.digest == before => Some(file),
        (PathKind::File(_), Some(_)) => return refuse(EditObstacle::Changed),
    };
    if edit
        .after
        .as_ref()
        .is_some_and(|after| after.len() as u64 > MAX_EDITED_BYTES)
    {
        return refuse(EditObstacle::TooLarge);
    }
    if file
        .as_ref()
        .is_some_and(|file| file.meta.mode() & 0o200 == 0)
    {
        return refuse(EditObstacle::ReadOnly);
    }
    Ok(Target {
        path: path.clone(),
        before: edit.before,
        after: edit.after.as_deref(),
        meta: file.map(|file| file.meta),
        new_file: edit.new_file,
    })
}

/// Reads a file as [`check`] examines it, behind links if they may be followed.
pub(super) fn read(
    root: &Root,
    root_path: &Path,
    path: &RepoPath,
    links: LinkPolicy,
    limit: ByteLimit,
) -> Result<TreeFile, TreeEditError> {
    let real = real_path(root_path, path, links)?;
    let found = read_path(root, real.as_ref(), limit)
        .map_err(|errno| root.fail("read", real.as_ref(), errno))?;
    let why = match found {
        PathKind::Nothing => return Ok(TreeFile { bytes: None, real }),
        PathKind::File(file) => {
            return Ok(TreeFile {
                bytes: Some(file.bytes),
                real,
            });
        }
        PathKind::Link => EditObstacle::Link,
        PathKind::Other => EditObstacle::NoFile,
        PathKind::TooLarge => EditObstacle::TooLarge,
    };
    Err(TreeEditError::Blocked {
        path: path.clone(),
        why,
    })
}

/// Resolves a path if links inside the root may be followed. The result is used without following links, so a
/// link that appears later is refused.
fn real_path(root: &Path, path: &RepoPath, links: LinkPolicy) -> Result<RepoPath, TreeEditError> {
    if links == LinkPolicy::Refuse {
        return Ok(path.clone());
    }
    let leads_out = || TreeEditError::Blocked {
        path: path.clone(),
        why: EditObstacle::LeadsOut,
    };
    let fail =
        |source: io::Error| TreeEditError::Repo(RepoError::io("look at", root.join(path), source));
    let top = std::fs::canonicalize(root).map_err(fail)?;
    let mut target_path = root.join(path);
    let mut missing: VecDeque<OsString> = VecDeque::new();
    let real = loop {
        match target_path.symlink_metadata() {
            // A broken link cannot be followed.
            Ok(_) => break std::fs::canonicalize(&target_path).map_err(|_| leads_out())?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                missing.push_front(target_path.file_name().ok_or_else(leads_out)?.to_owned());
                target_path.pop();
            }
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                return Err(TreeEditError::Blocked {
                    path: path.clone(),
                    why: EditObstacle::NoFile,
                });
            }
            Err(error) => return Err(fail(error)),
        }
    };
    let real: PathBuf = missing.into_iter().fold(real, |real, name| real.join(name));
    let below = real.strip_prefix(&top).map_err(|_| leads_out())?;
    RepoPath::from_bytes(below.as_os_str().as_encoded_bytes()).map_err(|_| leads_out())
}

/// The error number of an error of the operating system.
pub(super) fn errno_of(error: io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}
