//! The environment of a run, passed in by its caller.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crucible_host::env::Environment;
use crucible_host::fs::create_dir_all;
use crucible_model::Clock;
use crucible_repo::Git;
use crucible_sandbox::Sandbox;

use crate::error::RunError;
use crate::layout::{RUN, RunDir};
use crate::unfinished::finish_rename;

/// The directories and services of a run.
pub struct RunContext<'a> {
    /// The environment the command began with.
    pub env: &'a Environment,
    /// Tells the time.
    pub clock: &'a dyn Clock,
    /// Starts processes.
    pub sandbox: Arc<Sandbox>,
    /// Where run directories lie.
    pub runs_root: PathBuf,
    /// The directory for temporary files that belong to no run yet.
    pub tmp: PathBuf,
}

impl RunContext<'_> {
    /// Opens the repository at `path`, with temporary files below `scratch`.
    pub(crate) async fn git(&self, path: &Path, scratch: &Path) -> Result<Git, RunError> {
        create_dir_all(scratch)?;
        let git = Git::open(Arc::clone(&self.sandbox), self.env, path).await?;
        Ok(git.with_scratch(scratch.to_owned()))
    }

    /// Opens the repository at `path` for a new run, and refuses one that contains a directory of Crucible,
    /// before anything is written there.
    ///
    /// # Errors
    ///
    /// [`RunError::RunInsideRepository`], or what is wrong with the repository.
    pub async fn repository(&self, path: &Path) -> Result<Git, RunError> {
        let git = Git::open(Arc::clone(&self.sandbox), self.env, path).await?;
        self.require_outside(git.top())?;
        Ok(git)
    }

    /// Returns the directory of an existing run.
    ///
    /// # Errors
    ///
    /// [`RunError::NoSuchRun`] when there is no run of this name, or the name is invalid. Fails when
    /// leftovers of a killed process cannot be settled.
    pub fn open_run(&self, id: &str) -> Result<RunDir, RunError> {
        let none = || RunError::NoSuchRun {
            id: id.escape_debug().to_string(),
            root: self.runs_root.clone(),
        };
        let id = id.parse().map_err(|_| none())?;
        let dir = RunDir::new(&self.runs_root, &id);
        if !dir.root().exists() {
            finish_rename(&self.runs_root, &id)?;
        }
        if dir.has(RUN) { Ok(dir) } else { Err(none()) }
    }

    /// Refuses runs and temporary copies inside the repository: a run's output must never become part of its
    /// input.
    pub(crate) fn require_outside(&self, repo: &Path) -> Result<(), RunError> {
        outside_of(repo, &[&self.runs_root, &self.tmp])
    }

    /// The same for an existing run: its own directory may have become a link into the repository.
    pub(crate) fn require_run_outside(&self, repo: &Path, dir: &RunDir) -> Result<(), RunError> {
        outside_of(repo, &[&self.runs_root, &self.tmp, dir.root()])
    }
}

fn outside_of(repo: &Path, places: &[&Path]) -> Result<(), RunError> {
    let real = |path: &Path| {
        let existing = path
            .ancestors()
            .find_map(|part| std::fs::canonicalize(part).ok().map(|real| (part, real)));
        existing.map_or_else(
            || path.to_owned(),
            |(part, real)| real.join(path.strip_prefix(part).unwrap_or(Path::new(""))),
        )
    };
    let repo = real(repo);
    match places.iter().find(|place| real(place).starts_with(&repo)) {
        Some(place) => Err(RunError::RunInsideRepository {
            path: place.to_path_buf(),
        }),
        None => Ok(()),
    }
}
