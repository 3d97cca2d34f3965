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
        /// The target after each link but the last, in order. Each is checked like a requested path.
        through: Vec<RepoPath>,
        /// Its real path, checked like a requested path.
        to: RepoPath,
        /// Its size in bytes.
        size: u64,
    },
    /// Nothing.
    Missing,
    /// A directory, a device, a pipe or another thing without content.
    NotAFile,
    /// A link in the path leaves the repository or enters git's own directory.
    LeavesRepository,
    /// Links in the path form a cycle or exceed the maximum number.
    LinkCycle,
    /// A link in the path is broken.
    LinkToNothing,
    /// Unknown, because part of the path is not readable.
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
    /// Returns the entry at `path`. Must not read content.
    fn entry(&self, path: &RepoPath) -> Entry;

    /// Reads at most the first `max` bytes of a file. `path` is the real path from [`Source::entry`]. If it
    /// has since become a link or is no longer a regular file, it is not read.
    ///
    /// # Errors
    ///
    /// Fails when the file cannot be read.
    fn read(&self, path: &RepoPath, max: u64) -> Result<Vec<u8>, SourceError>;

    /// Returns the name of the rule by which this file holds a secret. Called with empty content first, so
    /// files that are secret by name are never opened.
    fn is_secret(&self, path: &RepoPath, content: &[u8]) -> Option<String>;
}
