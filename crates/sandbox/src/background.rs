//! Starts this very program again, in a session of its own, for work that goes on after this process.
//!
//! What always holds: only this program is started so, never one that a caller names. It is on the list of running programs as
//! long as it lives, so that it is not taken for what another program left behind; nothing here ends it.

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;

use tokio::sync::watch;

use crate::Sandbox;
use crate::directory::Directory;
use crate::error::SandboxError;
use crate::guard;
use crate::spawner;
use crate::sys;

/// What this program is started with.
#[derive(Debug)]
pub struct BackgroundStart {
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its working directory, an absolute path.
    pub cwd: PathBuf,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Where its standard error is kept. It has no input, and its standard output is dropped.
    pub stderr: File,
}

/// A process in the background. It goes on when this is dropped.
#[derive(Debug, Clone)]
pub struct BackgroundProcess {
    has_ended: watch::Receiver<bool>,
}

impl BackgroundProcess {
    /// Whether the process has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        *self.has_ended.borrow()
    }
}

impl Sandbox {
    /// Starts this program in the background. Needs a tokio runtime, which notices its end.
    ///
    /// # Errors
    ///
    /// Fails if the path of this program is unknown, or if it cannot be started.
    pub async fn start_in_background(
        &self,
        start: BackgroundStart,
    ) -> Result<BackgroundProcess, SandboxError> {
        let BackgroundStart {
            args,
            cwd,
            env,
            stderr,
        } = start;
        let launcher = self.launcher()?;
        guard::start(Some(launcher));
        let program = launcher.program.clone();
        let cwd = Directory::open(&cwd)
            .map_err(|problem| SandboxError::WorkingDirectory { path: cwd, problem })?;
        let mut command = sys::command(program.as_os_str());
        command
            .args(args)
            .env_clear()
            .envs(env)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr);
        sys::prepare_background(&mut command, cwd.handle);
        let has_ended = spawner::start_in_background(command)
            .await
            .map_err(|source| SandboxError::Exec { program, source })?;
        Ok(BackgroundProcess { has_ended })
    }
}
