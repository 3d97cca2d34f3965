//! The repository as a pack sees it: a trait, so that no code here touches a file system.

use crucible_model::RepoPath;

/// What lies at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A regular file, reached without any symbolic link.
    File {
        /// Its size in bytes, as the file system states it.
        size: u64,
    },
    /// A regular file inside the repository, reached through at least one symbolic link.
    Linked {
        /// Where the way leads after each link but the last, in order. Each is judged like a requested path.
        through: Vec<RepoPath>,
        /// Where it really lies. Judged like a requested path.
        to: RepoPath,
        /// Its size in bytes.
        size: u64,
    },
    /// Nothing.
    Missing,
    /// A directory, a device, a pipe or another thing without content.
    NotAFile,
    /// A link on the way leads out of the repository or into git's own directory.
    LeavesRepository,
    /// Links on the way lead in circles, or over more of them than are followed.
    LinkInCircles,
    /// A link on the way leads to nothing.
    LinkToNothing,
    /// Nobody can tell, because a place on the way cannot be looked into.
    Unreadable {
        /// What the system said.
        problem: String,
    },
}

/// A file could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {path}: {problem}")]
pub struct SourceError {
    /// Which file.
    pub path: RepoPath,
    /// What the system said.
    pub problem: String,
}

/// Gives access to one repository's files.
pub trait Source {
    /// What lies at `path`. Must not read content.
    fn entry(&self, path: &RepoPath) -> Entry;

    /// The first `max` bytes of a file, or all of it where it is shorter. `path` is where the file really lies, as
    /// [`Source::entry`] told; what has become a link since, or no regular file, is not read.
    ///
    /// # Errors
    ///
    /// Fails when the file cannot be read.
    fn read(&self, path: &RepoPath, max: u64) -> Result<Vec<u8>, SourceError>;

    /// The name of the rule by which this file holds a secret, if one does. Asked with empty content first,
    /// before anything is read: files that are secret by their name are never opened.
    fn is_secret(&self, path: &RepoPath, content: &[u8]) -> Option<String>;
}
