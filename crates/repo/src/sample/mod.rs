//! Reading a repository that nobody has looked at yet, within caps.
//!
//! One walk lists the files, one pass reads the most informative ones. All caps are enforced here: a caller that uses what comes
//! back cuts nothing for them. Links are never followed, and nothing but regular files is opened, each once.
//!
//! What always holds: the same files give the same result in whatever order the file system names them; what was left out
//! because of a cap is reported; memory and time are bounded whatever the tree looks like.

mod read;
mod rules;
mod summary;
mod walk;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use crucible_model::RepoPath;
use rustix::io::Errno;

use crate::beneath::Root;
use crate::error::RepoError;

pub use rules::FileKind;
pub(crate) use rules::{READMES, source_language};

/// How much is listed and read at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleCaps {
    /// Files that are read.
    pub files: usize,
    /// Bytes of one file.
    pub file_bytes: usize,
    /// Bytes of all files together.
    pub total_bytes: usize,
    /// Number of directories above a file.
    pub depth: usize,
    /// Names in the summary of the tree.
    pub names: usize,
    /// Maximum directory entries in the search for files; the search for links has the same limit again.
    pub entries: usize,
    /// Entries of one directory: a larger one is not listed, and of the top only the files that are always read.
    pub directory_entries: usize,
    /// Bytes of all paths that are listed; as many again for links alone.
    pub path_bytes: usize,
}

impl SampleCaps {
    /// The seed's caps, and bounds on the walk itself that no tree for people reaches.
    pub const STANDARD: Self = Self {
        files: 200,
        file_bytes: 200_000,
        total_bytes: 2_000_000,
        depth: 4,
        names: 500,
        entries: 200_000,
        directory_entries: 50_000,
        path_bytes: 16 << 20,
    };
}

/// A cap that was hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SampleCap {
    /// More files could have been read.
    Files,
    /// A file was read up to the cap.
    FileBytes,
    /// What was read together reached the cap.
    TotalBytes,
    /// There are directories deeper down.
    Depth,
    /// There are more files than the summary names.
    Names,
    /// The walk ended before it had listed everything.
    Walk,
}

impl fmt::Display for SampleCap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Files => "files read",
            Self::FileBytes => "bytes of one file",
            Self::TotalBytes => "bytes in total",
            Self::Depth => "depth of directories",
            Self::Names => "names in the tree",
            Self::Walk => "entries listed",
        })
    }
}

/// The contents of a repository, as far as examined.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepoSample {
    /// The read files in order: build files before source, upper directories before lower ones.
    pub files: Vec<SampledFile>,
    /// Every file that is not passed over, sorted: paths from the top.
    pub listing: Vec<String>,
    /// All links, including those in skipped or deeper directories.
    pub links: BTreeSet<String>,
    /// Directories that were not examined, even for links: they may contain anything.
    pub unseen: BTreeSet<String>,
    /// The tree for people and models, one file per line; hidden characters are escaped, and the last line
    /// states what was cut.
    pub tree_summary: String,
    /// Files with a source's name that hold no text. They count among the files that were read.
    pub skipped_binaries: u64,
    /// Files and directories that could not be read.
    pub unreadable: u64,
    /// Names that are not UTF-8 or have invisible characters. They are listed but not read.
    pub odd_names: u64,
    /// The caps that were hit.
    pub caps_hit: BTreeSet<SampleCap>,
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampledFile {
    /// From the top.
    pub path: String,
    /// Its kind.
    pub kind: FileKind,
    /// Its text; a byte that is not UTF-8 is a `?`.
    pub content: String,
    /// Its whole size.
    pub total_bytes: u64,
    /// How much of it was read.
    pub extent: SampleExtent,
}

/// How much of something is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleExtent {
    /// All of it.
    Whole,
    /// Its beginning: a cap was hit.
    Beginning,
}

impl RepoSample {
    /// How many bytes of text were read together.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files
            .iter()
            .map(|file| file.content.len() as u64)
            .sum()
    }

    /// Whether a cap was hit.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        !self.caps_hit.is_empty()
    }

    /// What was read of the file at `path`.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<&SampledFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The README at the top that is preferred.
    #[must_use]
    pub fn readme(&self) -> Option<&SampledFile> {
        READMES.iter().find_map(|name| self.file(name))
    }
}

/// Looks at the tree at `top`, or at the part of it at `below` alone: then all paths are from there.
///
/// # Errors
///
/// Fails when the directory itself cannot be opened. A link in `below` is not a directory.
pub fn sample(
    top: &Path,
    below: Option<&RepoPath>,
    caps: &SampleCaps,
) -> Result<RepoSample, RepoError> {
    let root = Root::open(top)?;
    let root = match below {
        Some(path) => root.open_directory(path.as_ref()).map_err(|errno| {
            // A link is not a directory of the tree, wherever it leads.
            let errno = if errno == Errno::LOOP {
                Errno::NOTDIR
            } else {
                errno
            };
            root.fail("open", path.as_ref(), errno)
        })?,
        None => root,
    };
    let mut sampling = walk::walk(&root, caps)?;
    read::read(&root, caps, &mut sampling);
    Ok(sampling)
}

/// The path of a name in a directory; empty is the top.
pub(crate) fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() {
        name.to_owned()
    } else {
        [directory, "/", name].concat()
    }
}

/// Returns the number of directories in a path.
fn depth(path: &str) -> usize {
    path.bytes().filter(|byte| *byte == b'/').count()
}
