//! What a run works with: the outside world, handed in by whoever starts it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crucible_host::env::Environment;
use crucible_host::fs::create_dir_all;
use crucible_model::Clock;
use crucible_repo::Git;
use crucible_sandbox::Sandbox;

use crate::error::RunError;
use crate::layout::RunDir;

/// The places and means of a run.
pub struct World<'a> {
    /// The environment the command began with.
    pub env: &'a Environment,
    /// Tells the time.
    pub clock: &'a dyn Clock,
    /// Starts processes.
    pub sandbox: Arc<Sandbox>,
    /// Where run directories lie.
    pub runs_root: PathBuf,
    /// Where temporary copies are made; on the same file system as the runs.
    pub tmp: PathBuf,
}

impl World<'_> {
    /// Opens the repository at `path`, with temporary files in our own place.
    pub(crate) async fn git(&self, path: &Path) -> Result<Git, RunError> {
        create_dir_all(&self.tmp)?;
        let git = Git::open(Arc::clone(&self.sandbox), self.env, path).await?;
        Ok(git.with_scratch(self.tmp.clone()))
    }

    /// The directory of an existing run.
    ///
    /// # Errors
    ///
    /// [`RunError::NoSuchRun`] when there is none of this name, or the name is none of ours.
    pub fn open_run(&self, id: &str) -> Result<RunDir, RunError> {
        let none = || RunError::NoSuchRun { id: id.escape_debug().to_string(), root: self.runs_root.clone() };
        let dir = RunDir::of(&self.runs_root, &id.parse().map_err(|_| none())?);
        if dir.has(crate::layout::RUN) { Ok(dir) } else { Err(none()) }
    }

    /// Refuses a run root inside the repository: what a run writes must never become a part of what it judges.
    pub(crate) fn outside_of(&self, repo: &Path) -> Result<(), RunError> {
        let real = |path: &Path| {
            let existing =
                path.ancestors().find_map(|part| std::fs::canonicalize(part).ok().map(|real| (part, real)));
            existing.map_or_else(
                || path.to_owned(),
                |(part, real)| real.join(path.strip_prefix(part).unwrap_or(Path::new(""))),
            )
        };
        if real(&self.runs_root).starts_with(real(repo)) {
            return Err(RunError::RunInsideRepository { path: self.runs_root.clone() });
        }
        Ok(())
    }
}
