//! A private copy of a project, in which an agent may work and gates may run, and the only way back out of it.
//!
//! How it works: the project is walked and copied without secrets, histories, installed packages, caches and special files; what was copied is
//! known by digest. Afterwards the copy is compared with that, [`check_scope`] judges what is different, and [`copy_back`] brings the two files
//! of the skill to the project, whole or not at all.
//!
//! What always holds: nothing in the copy is asked what changed there, not even its git; the project is only read until [`copy_back`]; what is
//! brought back are the bytes that were judged.

mod copy_back;
mod left_out;
mod scope;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crucible_host::WorkDir;
use crucible_host::fs::{FsError, create_dir_all, write_beneath};
use crucible_model::{Digest, RepoPath};
use crucible_repo::{
    CopyEntry, Omission, RepoError, TreeCopy, TreeLimits, WorkspaceChange, copy_tree,
    create_baseline,
};

use crate::context::ForgeContext;
use crate::project::ForgeProject;

pub(crate) use copy_back::SECRET;
pub use copy_back::{BuiltFile, CopyBackError};
pub(crate) use copy_back::{check_built, copy_back, recover_copy_back};
pub use scope::Scope;
pub(crate) use scope::check_scope;
pub(crate) use scope::{NOT_DONE, UNSEEN};

/// What the directories of copies are called.
const PREFIX: &str = "crucible-skill-";
/// The repository that a copy may get.
const GIT: &str = ".git";
/// How many names more than were copied are looked at for changes.
const MORE_NAMES: usize = 10_000;

/// A private copy of a project. It goes when this is dropped, and after a kill with the next copy.
#[derive(Debug)]
pub struct SkillWorkspace {
    root: PathBuf,
    scratch: PathBuf,
    copy: TreeCopy,
    _directory: WorkDir,
}

/// Why there is no copy, or it cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The copy would lie in the project itself.
    #[error(
        "{} lies inside of the project, and a copy of the project must not; set CRUCIBLE_HOME to a directory elsewhere",
        path.display()
    )]
    InsideProject {
        /// Where it would lie.
        path: PathBuf,
    },
    /// The project cannot be copied, or the copy cannot be looked at.
    #[error(transparent)]
    Repo(#[from] RepoError),
    /// A directory cannot be made or a file not written.
    #[error(transparent)]
    Fs(#[from] FsError),
}

impl SkillWorkspace {
    /// Copies the project. No git is needed, and none is made.
    ///
    /// # Errors
    ///
    /// [`WorkspaceError`], after which there is no copy.
    pub async fn make(
        world: &ForgeContext<'_>,
        project: &ForgeProject,
    ) -> Result<Self, WorkspaceError> {
        create_dir_all(&world.tmp)?;
        refuse_inside(project.root(), &world.tmp)?;
        WorkDir::sweep(&world.tmp, PREFIX);
        let directory = WorkDir::create(&world.tmp, PREFIX, &project.key().short())?;
        let (root, scratch) = (
            directory.path().join("copy"),
            directory.path().join("scratch"),
        );
        create_dir_all(&scratch)?;
        let copy = copy_tree(project.root(), &root, &left_out::options()).await?;
        Ok(Self {
            root,
            scratch,
            copy,
            _directory: directory,
        })
    }

    /// The top of the copy.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A private directory beside the copy, empty at first: nothing in it counts as a change.
    #[must_use]
    pub fn scratch(&self) -> &Path {
        &self.scratch
    }

    /// What was left out, sorted by path; the first ones where there are very many.
    #[must_use]
    pub fn omitted(&self) -> &[Omission] {
        &self.copy.omitted
    }

    /// How many more paths were left out than [`Self::omitted`] has.
    #[must_use]
    pub const fn more_omitted(&self) -> u64 {
        self.copy.more_omitted
    }

    /// How many bytes were copied.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.copy.bytes
    }

    /// The digest of the file at `path` when the copy was made; nothing where there was no plain file.
    #[must_use]
    pub(crate) fn initial_digest(&self, path: &RepoPath) -> Option<Digest> {
        match self.copy.manifest.get(path.as_ref()) {
            Some(CopyEntry::File { digest, .. }) => *digest,
            _ => None,
        }
    }

    /// Gives the copy a repository of its own with one commit, no hooks and no remotes, for agents that like one. What becomes of it is not
    /// looked at.
    ///
    /// # Errors
    ///
    /// Fails when git is missing or cannot write.
    pub(crate) async fn with_git(&self, world: &ForgeContext<'_>) -> Result<(), WorkspaceError> {
        create_baseline(Arc::clone(&world.sandbox), world.env, &self.root).await?;
        Ok(())
    }

    /// What is different in the copy since it was made, sorted by path. The copy's own repository is passed over, and nothing else.
    ///
    /// # Errors
    ///
    /// Fails when the copy itself is gone or closed; whatever stands in it is a change at most.
    pub fn changes(&self) -> Result<Vec<WorkspaceChange>, WorkspaceError> {
        let limits = TreeLimits {
            entries: MORE_NAMES,
            ..TreeLimits::STANDARD
        };
        Ok(self
            .copy
            .manifest
            .changes(&self.root, Path::new(GIT), &limits)?)
    }

    /// Writes a file into the copy, whole; a change like any other.
    ///
    /// # Errors
    ///
    /// Fails when a link stands on the way, or the disk is full.
    pub fn put(&self, path: &RepoPath, bytes: &[u8]) -> Result<(), WorkspaceError> {
        Ok(write_beneath(&self.root, path.as_str(), bytes)?)
    }
}

fn refuse_inside(project: &Path, tmp: &Path) -> Result<(), WorkspaceError> {
    let real = |path: &Path| {
        path.canonicalize().map_err(|source| FsError::Io {
            action: "look at",
            path: path.to_owned(),
            source,
        })
    };
    if real(tmp)?.starts_with(real(project)?) {
        return Err(WorkspaceError::InsideProject {
            path: tmp.to_owned(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
