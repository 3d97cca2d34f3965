//! Reads one project file as text, or returns the reason why not.
//!
//! Invariant: the file that is read is the one that was checked, with every link on its path followed. It
//! is in the project, and neither its own name nor the requested one suggests secrets.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crucible_host::fs::read_prefix;
use crucible_model::{ByteLimit, RepoPath};
use crucible_repo::{EditObstacle, LinkPolicy, RepoError, TreeEditError, TreeFile, read_tree_file};
use crucible_secrets::is_secret_file;

use crate::error::SpecError;
use crate::packet::{COUNTED, OmissionReason, lines_of_bytes};
use crate::project::is_own;

/// A project's directory, with a path without links.
#[derive(Debug)]
pub(super) struct Project {
    root: PathBuf,
}

/// The result of looking up a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    Text(String),
    /// A file with more bytes than the limit; the number is its size.
    Larger(u64),
    /// Nothing exists there.
    Missing,
    /// Something that may not be shown.
    Refused(OmissionReason),
}

impl Project {
    pub(super) fn open(root: &Path) -> Result<Self, SpecError> {
        let root = root.canonicalize().map_err(|error| SpecError::Source {
            source_name: root.display().to_string(),
            why: format!("cannot open the project's directory ({error})"),
        })?;
        Ok(Self { root })
    }

    /// The directory.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Reads the file at `path`, at most this many bytes.
    pub(super) fn read(&self, path: &RepoPath, most: u64) -> Found {
        if is_secret_file(path.as_str()) {
            return Found::Refused(OmissionReason::SecretName);
        }
        let (place, led) = match self.leads(path) {
            Ok(led) => led,
            Err(found) => return found,
        };
        // A file that is too large is not opened at all.
        match place.metadata() {
            Ok(meta) if !meta.is_file() => return Found::Refused(OmissionReason::NotAFile),
            Ok(meta) if meta.len() > most => return Found::Larger(meta.len()),
            Ok(_) => {}
            Err(error) => return Found::Refused(OmissionReason::Unreadable(error.to_string())),
        }
        // Read the checked location: a link that appears on the path in the meantime is refused.
        let found = match read_tree_file(&self.root, &led, LinkPolicy::Refuse, ByteLimit(most)) {
            Ok(TreeFile { bytes, .. }) => bytes,
            Err(TreeEditError::Blocked {
                why: EditObstacle::TooLarge,
                ..
            }) => {
                return Found::Larger(most.saturating_add(1));
            }
            Err(TreeEditError::Blocked { .. }) => {
                return Found::Refused(OmissionReason::NotAFile);
            }
            Err(TreeEditError::Repo(RepoError::Io { source, .. })) => {
                return Found::Refused(OmissionReason::Unreadable(source.to_string()));
            }
            Err(error) => return Found::Refused(OmissionReason::Unreadable(error.to_string())),
        };
        match found {
            None => Found::Missing,
            Some(bytes) if bytes.contains(&0) => Found::Refused(OmissionReason::NotText),
            Some(bytes) => String::from_utf8(bytes)
                .map_or(Found::Refused(OmissionReason::NotText), Found::Text),
        }
    }

    /// The number of lines in the first [`COUNTED`] bytes of a file that is too large to be shown.
    pub(super) fn lines(&self, path: &RepoPath) -> u64 {
        let counted = |(place, _): (PathBuf, RepoPath)| read_prefix(&place, COUNTED).ok();
        let prefix = self.leads(path).ok().and_then(counted);
        prefix.map_or(0, |prefix| lines_of_bytes(&prefix.bytes))
    }

    /// The location of `path` with every link followed, if it is in the project and may be shown.
    pub(super) fn place(&self, path: &RepoPath) -> Result<PathBuf, Found> {
        self.leads(path).map(|(place, _)| place)
    }

    /// The location, and its path in the project.
    fn leads(&self, path: &RepoPath) -> Result<(PathBuf, RepoPath), Found> {
        let outside = || Found::Refused(OmissionReason::OutsideProject);
        if is_own(path) {
            return Err(outside());
        }
        let place = match self.root.join(path).canonicalize() {
            Ok(place) => place,
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Err(Found::Missing);
            }
            Err(error) => {
                return Err(Found::Refused(OmissionReason::Unreadable(
                    error.to_string(),
                )));
            }
        };
        let led = self.path_of(&place).ok_or_else(outside)?;
        if led != *path && is_own(&led) {
            return Err(outside());
        }
        if led != *path && is_secret_file(led.as_str()) {
            return Err(Found::Refused(OmissionReason::SecretName));
        }
        Ok((place, led))
    }

    /// The path of a location relative to the project's directory; none outside of it, or if it is not a
    /// valid repository path.
    pub(super) fn path_of(&self, place: &Path) -> Option<RepoPath> {
        use std::os::unix::ffi::OsStrExt;
        RepoPath::from_bytes(place.strip_prefix(&self.root).ok()?.as_os_str().as_bytes()).ok()
    }
}
