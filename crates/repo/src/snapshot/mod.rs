//! A copy of the work tree for the sandbox.
//!
//! [`snapshot`] copies the tracked files from the work tree, and untracked files on request. [`copy_tree`] walks a
//! directory without git and can report later which files changed in the copy. Files are reflinked if the file system
//! supports it, otherwise copied in parallel. The copy contains no hard links to the original, and only symbolic links
//! whose target is inside the tree.
//!
//! Whatever is left out is listed with its reason.

mod copy;
mod ignored;
mod kind;
mod manifest;
mod tree_copy;
mod walk;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crucible_host::fs;
use crucible_patch::FileMode;

use crate::beneath::Root;
use crate::error::RepoError;
use crate::git::Git;

pub use ignored::{DependencyTree, IgnoredFiles, IgnoredLimits, IgnoredOptions, SplitTrees};
pub use manifest::{CopyEntry, TreeManifest, UnseenReason, WorkspaceChange};
pub use tree_copy::{
    ContentCheck, FileContent, PathCheck, TreeCopy, TreeCopyOptions, TreeLimits, copy_tree,
};

/// Returns why a path, relative to the top, must not reach the sandbox; `None` if it may.
pub type SecretCheck = Arc<dyn Fn(&Path) -> Option<String> + Send + Sync>;

/// What goes into a copy.
#[derive(Clone)]
pub struct SnapshotOptions {
    /// Whether untracked files are copied too.
    pub untracked: Untracked,
    /// Which paths hold secrets.
    pub secret: SecretCheck,
}

/// Files that git neither tracks nor ignores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untracked {
    /// They are copied.
    Include,
    /// They stay out.
    Leave,
}

/// The copied files, the method, and the omissions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotReport {
    /// How.
    pub method: CopyMethod,
    /// How many files and links.
    pub files: u64,
    /// How many bytes the files hold.
    pub bytes: u64,
    /// What was left out, sorted by path.
    pub omitted: Vec<Omission>,
}

/// How a copy was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyMethod {
    /// The file system shares the blocks until one side writes.
    Reflink,
    /// The bytes were copied by several threads.
    ParallelCopy,
}

/// One path that was left out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Omission {
    /// The path from the top, byte for byte.
    pub path: PathBuf,
    /// Why.
    pub reason: OmitReason,
}

/// Why a path is not in a copy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum OmitReason {
    /// It holds a secret, according to the check.
    Secret(String),
    /// It is a submodule or another repository.
    Repository,
    /// It is a socket, a pipe or a device.
    Special,
    /// It is a link out of the work tree.
    LeavesTree,
    /// A parent directory is a link.
    BehindLink,
    /// git tracks it, and it is not in the work tree.
    Missing,
    /// git tracks a file there, and there is a directory.
    Directory,
    /// It is not readable.
    Unreadable,
    /// It holds installed programs and packages.
    VirtualEnvironment,
    /// It holds installed packages.
    Packages,
    /// It has files that tools can recreate.
    Cache,
    /// It is a database, or a part of one.
    Database,
    /// It is a link to nothing, or to itself.
    Dangling,
    /// It is a link to something that was left out.
    LeadsToOmitted,
    /// It exceeds the size limit.
    TooLarge,
    /// It holds at least so much, which is more than is copied.
    TooMuch {
        /// Files.
        files: u64,
        /// Bytes.
        bytes: u64,
    },
    /// It is Crucible's own.
    Own,
}

impl fmt::Display for OmitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Secret(why) => return write!(f, "holds a secret: {why}"),
            Self::TooMuch { files, bytes } => {
                return write!(
                    f,
                    "holds {files} files or more with {bytes} bytes, too much to copy"
                );
            }
            Self::Repository => "is a repository of its own",
            Self::Special => "is not a file, directory or link",
            Self::LeavesTree => "is a link out of the work tree",
            Self::BehindLink => "is reached through a link",
            Self::Missing => "is tracked but missing from the work tree",
            Self::Directory => "is a directory where git tracks a file",
            Self::Unreadable => "is not readable",
            Self::VirtualEnvironment => "is a virtual environment",
            Self::Packages => "holds installed packages",
            Self::Cache => "is a cache",
            Self::Database => "is a database",
            Self::Dangling => "is a link to nothing",
            Self::LeadsToOmitted => "is a link to something that was left out",
            Self::TooLarge => "is too large to copy",
            Self::Own => "is Crucible's own",
        })
    }
}

/// Copies the work tree of `git` to `dest`, a new or empty directory.
///
/// # Errors
///
/// Fails when `dest` is not empty or not writable. Files that cannot be copied are listed, not an error.
pub async fn snapshot(
    git: &Git,
    dest: &Path,
    options: &SnapshotOptions,
) -> Result<SnapshotReport, RepoError> {
    let mut omitted = Vec::new();
    let mut paths = Vec::new();
    for (path, mode) in git.tracked_names().await? {
        match mode {
            FileMode::Gitlink => omitted.push(Omission {
                path,
                reason: OmitReason::Repository,
            }),
            _ => paths.push(path),
        }
    }
    if options.untracked == Untracked::Include {
        for path in git.untracked_files().await? {
            // git names a repository inside of this one by its directory.
            if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
                omitted.push(Omission {
                    path,
                    reason: OmitReason::Repository,
                });
            } else {
                paths.push(path);
            }
        }
    }
    paths.retain(|path| match (options.secret)(path) {
        Some(why) => {
            omitted.push(Omission {
                path: path.clone(),
                reason: OmitReason::Secret(why),
            });
            false
        }
        None => true,
    });

    prepare(dest)?;
    let source = Root::open(git.top())?;
    let target = Root::open(dest)?;
    // Copying waits for disks, so it has separate threads from those that wait for the network.
    let copied = tokio::task::spawn_blocking(move || {
        let directories = make_dirs(&target, &paths)?;
        let copied = copy::copy_all(&source, &target, &paths, None)?;
        copy::keep_directory_times(&source, &target, &directories);
        Ok::<_, RepoError>(copied)
    });
    let copied = copied
        .await
        .map_err(|error| RepoError::io("copy to", dest, std::io::Error::other(error)))??;
    omitted.extend(copied.omitted);
    omitted.sort();
    Ok(SnapshotReport {
        method: copied.method,
        files: copied.files,
        bytes: copied.bytes,
        omitted,
    })
}

/// Copies regular files into existing directories.
pub(crate) fn copy_plain(source: &Root, target: &Root, paths: &[PathBuf]) -> Result<(), RepoError> {
    copy::copy_all(source, target, paths, None).map(drop)
}

fn prepare(dest: &Path) -> Result<(), RepoError> {
    fs::create_dir_all(dest)?;
    let mut entries =
        std::fs::read_dir(dest).map_err(|source| RepoError::io("list", dest, source))?;
    match entries.next() {
        None => Ok(()),
        Some(_) => Err(RepoError::DestinationTaken {
            path: dest.to_owned(),
        }),
    }
}

/// Creates the parent directories of these paths and returns them, each before its contents.
fn make_dirs<'a>(target: &Root, paths: &'a [PathBuf]) -> Result<Vec<&'a Path>, RepoError> {
    let mut dirs: BTreeSet<&Path> = BTreeSet::new();
    for path in paths {
        for dir in path
            .ancestors()
            .skip(1)
            .take_while(|dir| !dir.as_os_str().is_empty())
        {
            if !dirs.insert(dir) {
                break;
            }
        }
    }
    // A parent sorts before its contents.
    for dir in &dirs {
        target
            .make_dir(dir)
            .map_err(|errno| target.fail("create", dir, errno))?;
    }
    Ok(dirs.into_iter().collect())
}
