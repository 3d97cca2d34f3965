//! Names and files of a spec's directory: only plain names, only regular files, and no links, even if Crucible
//! did not create them.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crucible_host::fs::{self, FsError};
use crucible_model::{ByteLimit, Digest};

use crate::error::SpecError;
use crate::receipt::FileRecord;
use crate::state::FileState;

/// The largest file of a spec's directory that is read or written.
pub(super) const MAX_FILE: ByteLimit = ByteLimit(16 << 20);

pub(super) const ARTIFACTS: &str = "artifacts";
pub(super) const CONTEXT: &str = "context";
pub(super) const RECEIPTS: &str = "receipts";

/// Whether a name is valid on every file system: letters, digits, `-`, `_` and `.`, starting with a
/// letter or a digit.
pub(super) fn is_plain_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.len() <= 128
        && name.chars().all(allowed)
}

/// The name of an artifact, from its path in the spec's directory.
pub(super) fn artifact_name(path: &str) -> Option<&str> {
    named_in(path, ARTIFACTS)
}

fn named_in<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    path.strip_prefix(folder)?
        .strip_prefix('/')
        .filter(|name| is_plain_name(name))
}

/// The path of an artifact or a file of the context; none for any other path.
pub(super) fn locate(dir: &Path, path: &str) -> Option<PathBuf> {
    named_in(path, ARTIFACTS)
        .or_else(|| named_in(path, CONTEXT))
        .map(|_| dir.join(path))
}

/// An error of ours in the form of a file system error.
pub(super) fn refused(action: &'static str, path: &Path, why: &str) -> SpecError {
    let source = io::Error::new(io::ErrorKind::InvalidInput, why.to_owned());
    FsError::Io {
        action,
        path: path.to_owned(),
        source,
    }
    .into()
}

/// What exists at a path, without following a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Nothing,
    Directory,
    File(u64),
    Other,
}

pub(super) fn standing(path: &Path) -> Result<Standing, FsError> {
    match path.symlink_metadata() {
        Ok(meta) if meta.is_dir() => Ok(Standing::Directory),
        Ok(meta) if meta.is_file() => Ok(Standing::File(meta.len())),
        Ok(_) => Ok(Standing::Other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Standing::Nothing),
        Err(source) => Err(FsError::Io {
            action: "look at",
            path: path.to_owned(),
            source,
        }),
    }
}

/// Creates a directory if it does not exist. Anything else in its place, in particular a link, is an
/// error.
pub(super) fn ensure_directory(path: &Path) -> Result<(), SpecError> {
    match standing(path)? {
        Standing::Directory => Ok(()),
        Standing::Nothing => Ok(fs::create_dir_all(path)?),
        Standing::File(_) | Standing::Other => Err(refused(
            "use",
            path,
            "it must be a directory, not a link; move it away",
        )),
    }
}

/// Whether such a directory exists.
pub(super) fn is_directory(path: &Path) -> Result<bool, SpecError> {
    match standing(path)? {
        Standing::Directory => Ok(true),
        Standing::Nothing => Ok(false),
        Standing::File(_) | Standing::Other => Err(refused(
            "use",
            path,
            "it must be a directory, not a link; move it away",
        )),
    }
}

/// Reads a whole regular file; nothing if it does not exist.
pub(super) fn read_file(path: &Path, limit: ByteLimit) -> Result<Option<Vec<u8>>, SpecError> {
    if let Some(parent) = path.parent()
        && !is_directory(parent)?
    {
        return Ok(None);
    }
    read_file_there(path, limit)
}

/// Reads a file in a directory that was already checked.
pub(super) fn read_file_there(path: &Path, limit: ByteLimit) -> Result<Option<Vec<u8>>, SpecError> {
    match standing(path)? {
        Standing::Nothing => Ok(None),
        Standing::File(_) => Ok(Some(fs::read_regular_up_to(path, limit)?)),
        Standing::Directory | Standing::Other => {
            Err(refused("read", path, "it is not a regular file"))
        }
    }
}

/// Deletes whatever is there; the target of a link is kept.
pub(super) fn clear(path: &Path) -> Result<(), FsError> {
    match standing(path)? {
        Standing::Nothing => Ok(()),
        Standing::Directory => fs::remove_dir_all(path),
        Standing::File(_) | Standing::Other => fs::remove_file(path),
    }
}

/// Compares files with their records; each directory is checked once, and each file read once.
pub(super) struct Comparison<'a> {
    dir: &'a Path,
    standings: BTreeMap<PathBuf, Option<Standing>>,
    digests: BTreeMap<PathBuf, Option<Digest>>,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(dir: &'a Path) -> Self {
        Self {
            dir,
            standings: BTreeMap::new(),
            digests: BTreeMap::new(),
        }
    }

    /// The state of a recorded file. A file that cannot be read, or that no receipt may name, differs.
    pub(super) fn state(&mut self, record: &FileRecord) -> FileState {
        let Some(path) = locate(self.dir, &record.path) else {
            return FileState::Differs;
        };
        match path.parent().and_then(|folder| self.standing(folder)) {
            Some(Standing::Directory) => {}
            Some(Standing::Nothing) => return FileState::Missing,
            _ => return FileState::Differs,
        }
        match self.standing(&path) {
            Some(Standing::Nothing) => FileState::Missing,
            Some(Standing::File(length)) if length == record.bytes => {
                let read = |path: &PathBuf| fs::read_regular_up_to(path, MAX_FILE).ok();
                let digest = self.digests.entry(path);
                let digest = digest
                    .or_insert_with_key(|path| read(path).map(|bytes| Digest::compute(&bytes)));
                if *digest == Some(record.sha256) {
                    FileState::Same
                } else {
                    FileState::Differs
                }
            }
            _ => FileState::Differs,
        }
    }

    /// Whether a regular file exists there.
    pub(super) fn is_file(&mut self, path: &str) -> bool {
        let path = self.dir.join(path);
        matches!(self.standing(&path), Some(Standing::File(_)))
    }

    /// What exists there, if that can be determined.
    fn standing(&mut self, path: &Path) -> Option<Standing> {
        if let Some(known) = self.standings.get(path) {
            return *known;
        }
        let found = standing(path).ok();
        self.standings.insert(path.to_owned(), found);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_in_known_folders_are_places() {
        let dir = Path::new("/spec");
        for good in [
            "artifacts/10-design.md",
            "context/idea.md",
            "artifacts/a..b",
        ] {
            assert_eq!(locate(dir, good), Some(dir.join(good)));
        }
        for bad in [
            "artifacts",
            "artifacts/",
            "artifacts/../lock",
            "artifacts/..",
            "artifacts/.tmp-x",
            "artifacts//x",
            "artifacts/a/b",
            "/etc/passwd",
            "../artifacts/x",
            "receipts/x.json",
            "lock",
            "artifacts/ä",
            "artifacts/a\0",
            "artifacts/a\n",
            "",
        ] {
            assert_eq!(locate(dir, bad), None, "{bad:?}");
        }
        assert!(locate(dir, &format!("artifacts/{}", "x".repeat(129))).is_none());
        assert_eq!(artifact_name("artifacts/x"), Some("x"));
        assert_eq!(artifact_name("context/x"), None);
    }
}
