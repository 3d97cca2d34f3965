//! Errors of using a repository, with what the reader can do.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crucible_host::fs::FsError;
use crucible_sandbox::SandboxError;

use crate::oid::Oid;

/// Why a repository is not usable for a request.
#[derive(Debug, thiserror::Error)]
pub enum RepoError {
    /// There is no repository here or above.
    #[error("{} is not in a git repository; run `git init` and commit once, or name another directory", path.display())]
    NotARepository {
        /// Where the search began; it continued upwards.
        path: PathBuf,
    },
    /// Nothing of this name is there.
    #[error("{} does not exist; name a directory in a git repository", path.display())]
    NotThere {
        /// What was named.
        path: PathBuf,
    },
    /// The repository has no work tree.
    #[error("{} is a bare repository; clone it, or add a work tree with `git worktree add`, and use that", path.display())]
    Bare {
        /// The repository.
        path: PathBuf,
    },
    /// The repository has no commit yet.
    #[error("{} has no commit yet; make an initial commit", path.display())]
    Empty {
        /// The work tree.
        path: PathBuf,
    },
    /// git's own directory is elsewhere, and does not refer back to this place.
    #[error("the repository {} keeps its git directory elsewhere ({}): {why}; use the work tree that belongs to it", path.display(), target.display())]
    GitDirElsewhere {
        /// The work tree.
        path: PathBuf,
        /// Where its `.git` points.
        target: PathBuf,
        /// What is wrong with that.
        why: &'static str,
    },
    /// The configuration moves the work tree to another directory.
    #[error("the repository {} sets core.worktree to {}; remove that setting, or work in that directory", path.display(), target.display())]
    WorkTreeElsewhere {
        /// The directory that holds `.git`.
        path: PathBuf,
        /// Where its configuration points.
        target: PathBuf,
    },
    /// The configuration names more helper programs than any real one does.
    #[error("the configuration of {} names too many filters, drivers and hooks ({count}); remove unused ones", path.display())]
    TooManyDrivers {
        /// The work tree.
        path: PathBuf,
        /// How many.
        count: usize,
    },
    /// git is not installed.
    #[error(
        "git was not found on PATH ({}); install git 2.31 or later",
        list(searched)
    )]
    GitMissing {
        /// The directories that were searched.
        searched: Vec<PathBuf>,
    },
    /// The installed git cannot disable a repository's own programs.
    #[error("{found} is too old; install git 2.31 or later")]
    GitTooOld {
        /// What it says about itself.
        found: String,
    },
    /// The branch moved since the run began.
    #[error(
        "the branch moved from {expected} to {found} since the change was verified; start a new run on the new state"
    )]
    Moved {
        /// The base commit of the change.
        expected: Oid,
        /// The commit the branch is at.
        found: Oid,
    },
    /// Another branch is checked out.
    #[error(
        "the change belongs to {expected}, but {found} is checked out; switch back and land again"
    )]
    OtherBranch {
        /// The branch of the change.
        expected: String,
        /// What is checked out.
        found: String,
    },
    /// There are changes that landing would lose or mix up.
    #[error(
        "these paths have uncommitted changes: {}; commit or stash them, then land again",
        display(paths)
    )]
    Dirty {
        /// The paths, as raw as git has them.
        paths: Vec<PathBuf>,
    },
    /// Another git process is at work, or died at work.
    #[error("git's index is locked by {}; wait for the other git process, or remove that file if none is running", path.display())]
    IndexLocked {
        /// The lock.
        path: PathBuf,
    },
    /// Neither the repository nor the user has a name to commit under.
    #[error(
        "git's user.name and user.email are not set; set them with `git config user.name` and `git config user.email`"
    )]
    NoIdentity,
    /// A commit without it could not be found again, and might be made twice.
    #[error("the commit message lacks the trailer {trailer:?}; add it as the last line")]
    NoTrailer {
        /// The line.
        trailer: String,
    },
    /// git does not take the patch.
    #[error("git cannot apply the patch: {detail}; create it again from the committed files")]
    PatchRefused {
        /// What git said.
        detail: String,
    },
    /// The patch produces another tree than the verified one.
    #[error("the patch produces tree {found}, but tree {expected} was verified; verify again")]
    TreeChanged {
        /// The verified tree.
        expected: Oid,
        /// The tree it makes.
        found: Oid,
    },
    /// git would check out files with other bytes than the judged ones.
    #[error(
        "git attributes rewrite these paths on checkout: {}; change the files by hand, or remove their attributes `filter` and `working-tree-encoding`",
        display(paths)
    )]
    Rewritten {
        /// The paths.
        paths: Vec<PathBuf>,
    },
    /// Something exceeds the caller's limit.
    #[error(
        "{what} is larger than {limit} bytes; make it smaller, or take it out of the repository"
    )]
    TooLarge {
        /// What.
        what: String,
        /// The most, in bytes.
        limit: u64,
    },
    /// An object that the repository should hold is not there, for example in a partial clone.
    #[error("the repository does not hold the object {oid}; fetch it with `git fetch --refetch`")]
    MissingObject {
        /// The object.
        oid: String,
    },
    /// The words of a user do not name commits.
    #[error("{name:?} does not name a commit; list the branches and tags with `git show-ref`")]
    NoSuchRevision {
        /// What the user wrote.
        name: String,
    },
    /// The words of a user have several meanings, of which git would choose one.
    #[error(
        "{name:?} is ambiguous: several refs, or a ref and an object, have the name {found:?}; write the whole name, such as refs/heads/{found} or refs/tags/{found}"
    )]
    AmbiguousRevision {
        /// What the user wrote.
        name: String,
        /// The name in it that has several meanings.
        found: String,
    },
    /// What is stored under the name of an object is something else.
    #[error(
        "the object {oid} is damaged: its content does not match its name; run `git fsck`, then fetch it again"
    )]
    DamagedObject {
        /// The object.
        oid: Oid,
    },
    /// A copy needs a new directory, and this one is not empty.
    #[error("{} already exists; a copy needs a new directory", path.display())]
    DestinationTaken {
        /// The directory.
        path: PathBuf,
    },
    /// git failed in another way.
    #[error("`git {command}` failed ({code}): {stderr}")]
    GitFailed {
        /// The words of the call.
        command: String,
        /// The exit code or the signal.
        code: String,
        /// What git said, redacted and shortened.
        stderr: String,
    },
    /// git did not end in time.
    #[error("`git {command}` did not finish within {} s; check that the file system responds", after.as_secs())]
    TimedOut {
        /// The words of the call.
        command: String,
        /// How long it was given.
        after: Duration,
    },
    /// git printed something that no version of it is known to print.
    #[error("`git {command}` printed unexpected output; check that `git` on PATH is the real one")]
    Unreadable {
        /// The words of the call.
        command: String,
    },
    /// A file could not be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A file could not be read or written.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// git could not be run.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}

impl RepoError {
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
        source: impl Into<io::Error>,
    ) -> Self {
        Self::Io {
            action,
            path: path.into(),
            source: source.into(),
        }
    }
}

fn list(paths: &[PathBuf]) -> String {
    if paths.is_empty() {
        "it has no absolute directory".to_owned()
    } else {
        display(paths)
    }
}

/// The first paths, each escaped so that it stays on its line.
fn display(paths: &[PathBuf]) -> String {
    const SHOWN: usize = 10;
    let mut text = paths
        .iter()
        .take(SHOWN)
        .map(|path| format!("{path:?}"))
        .collect::<Vec<_>>()
        .join(", ");
    if let Some(more) = paths.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        text.push_str(&format!(" and {more} more"));
    }
    text
}
