//! The clones of a task: one for the work, and a fresh one for the hidden tests.
//!
//! Setup and check are the task's own commands. They run in the sandbox, write only to their clone, and see
//! neither the task directory nor the user's home. They have no network unless the task allows it for its
//! setup. A check runs code that the model wrote, so it is sandboxed like a gate.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crucible_host::clock::Stopwatch;
use crucible_host::env::Environment;
use crucible_host::fs;
use crucible_model::{ByteLimit, RepoPath};
use crucible_repo::{Oid, RepoError, WorkClone, create_baseline};
use crucible_sandbox::{
    CONFINED_HOME, Completed, Confinement, End, Identity, Keep, Limits, Network, Profile, Sandbox,
    Spawn, Strength, SyscallClass, base_env, toolchain_env,
};

use crate::error::EvalError;
use crate::outcome::{Check, CheckEnd};
use crate::task::{ProjectFile, Task, TaskSource};

/// Bytes kept of each output stream of a command, from its end.
const MAX_LOG: ByteLimit = ByteLimit(4 << 20);

/// What tasks are run with.
pub struct Machine<'a> {
    /// The environment of the command.
    pub env: &'a Environment,
    /// Starts processes.
    pub sandbox: Arc<Sandbox>,
    /// How strong the sandbox of setup and check must be.
    pub strength: Strength,
    /// What no command of a task may read: the task directory with the solutions.
    pub masked: Vec<PathBuf>,
}

/// The clone that a task is solved in.
pub struct TaskClone {
    clone: WorkClone,
    /// The base commit: the task's own, with the visible test.
    pub base: Oid,
}

impl TaskClone {
    /// Clones a task's repository into `into`, which must not exist.
    ///
    /// # Errors
    ///
    /// Fails where the repository has no such commit, or the visible test does not apply.
    pub(crate) async fn create(
        machine: &Machine<'_>,
        task: &Task,
        into: &Path,
    ) -> Result<Self, PlaceError> {
        let clone = clone_of(machine, &task.source, into).await?;
        if let Some(visible) = &task.visible {
            clone
                .apply(visible)
                .await
                .map_err(|error| PlaceError::Visible(error.to_string()))?;
            clone.commit("Add a failing test").await?;
        }
        let base = clone.head().await?;
        Ok(Self { clone, base })
    }

    /// The top of the clone.
    #[must_use]
    pub fn top(&self) -> &Path {
        self.clone.top()
    }

    /// Writes whole files into the clone and commits them, never through a link or into git's directory.
    ///
    /// # Errors
    ///
    /// Fails where a file cannot be written or git fails.
    pub(crate) async fn commit_files(
        &self,
        files: impl IntoIterator<Item = (RepoPath, Vec<u8>)>,
    ) -> Result<Oid, EvalError> {
        let mut paths = Vec::new();
        for (path, bytes) in files {
            if let Some((parent, _)) = path.as_str().rsplit_once('/') {
                fs::create_dir_beneath(self.top(), parent)?;
            }
            fs::write_beneath(self.top(), path.as_str(), &bytes)?;
            paths.push(path);
        }
        let paths: Vec<&str> = paths.iter().map(RepoPath::as_str).collect();
        self.clone.add(&paths).await?;
        Ok(self.clone.commit("Answer of the model").await?)
    }
}

/// Why a clone is not ready.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlaceError {
    /// The clone could not be made.
    #[error("{0}")]
    Repo(#[from] RepoError),
    /// A file could not be written.
    #[error("{0}")]
    Fs(#[from] fs::FsError),
    /// The visible test does not apply.
    #[error("the visible patch does not apply: {0}")]
    Visible(String),
    /// A setup command failed.
    #[error("setup command {command:?} {problem}")]
    Setup {
        command: String,
        /// How it ended.
        problem: String,
    },
}

/// What is judged: a commit of a workspace, or its base with a change that solves the task.
pub(crate) enum Judged<'a> {
    /// What landed.
    Commit(&'a Oid),
    /// The base alone.
    Base,
    /// The base with this patch.
    Solution(&'a [u8]),
}

/// Runs the hidden tests on a fresh clone in `work_dir`, which must not exist and is removed afterwards. The
/// output is in `log`.
///
/// # Errors
///
/// Fails where the room or the log cannot be written.
pub(crate) async fn check(
    machine: &Machine<'_>,
    task: &Task,
    workspace: &TaskClone,
    judged: Judged<'_>,
    work_dir: &Path,
    log: &Path,
) -> Result<Check, EvalError> {
    let watch = Stopwatch::start();
    let end = checked(machine, task, workspace, judged, work_dir, log).await?;
    fs::remove_dir_all(work_dir)?;
    Ok(Check {
        end,
        seconds: watch.elapsed().as_secs_f64(),
    })
}

async fn checked(
    machine: &Machine<'_>,
    task: &Task,
    workspace: &TaskClone,
    judged: Judged<'_>,
    work_dir: &Path,
    log: &Path,
) -> Result<CheckEnd, EvalError> {
    let (commit, solution) = match judged {
        Judged::Commit(commit) => (commit, None),
        Judged::Base => (&workspace.base, None),
        Judged::Solution(patch) => (&workspace.base, Some(patch)),
    };
    let sandbox = Arc::clone(&machine.sandbox);
    let clone = WorkClone::create(sandbox, machine.env, workspace.top(), commit, work_dir).await?;
    let unfit = |what: &str, error: RepoError| {
        CheckEnd::NotPrepared(format!("the {what} patch does not apply: {error}"))
    };
    if let Some(Err(error)) = match solution {
        Some(patch) => Some(clone.apply(patch).await),
        None => None,
    } {
        return Ok(unfit("solution", error));
    }
    if let Err(error) = clone.apply_over(&task.hidden, &workspace.base).await {
        return Ok(unfit("hidden", error));
    }
    match machine.set_up(task, work_dir, log).await {
        Ok(()) => {}
        Err(PlaceError::Fs(error)) => return Err(error.into()),
        Err(error) => return Ok(CheckEnd::NotPrepared(error.to_string())),
    }
    Ok(machine
        .run(
            &task.check,
            work_dir,
            task.check_timeout,
            Network::None,
            log,
        )
        .await?)
}

async fn clone_of(
    machine: &Machine<'_>,
    source: &TaskSource,
    into: &Path,
) -> Result<WorkClone, PlaceError> {
    let sandbox = || Arc::clone(&machine.sandbox);
    match source {
        TaskSource::Commit { repository, commit } => {
            Ok(WorkClone::create(sandbox(), machine.env, repository, commit, into).await?)
        }
        TaskSource::Project(files) => {
            fs::create_dir_all(into)?;
            for ProjectFile {
                path,
                bytes,
                executable,
            } in files
            {
                let place = into.join(path.as_str());
                if let Some(parent) = place.parent() {
                    fs::create_dir_all(parent)?;
                }
                fs::write_unflushed(&place, bytes, if *executable { 0o755 } else { 0o644 })?;
            }
            create_baseline(sandbox(), machine.env, into).await?;
            Ok(WorkClone::of_baseline(sandbox(), machine.env, into)?)
        }
    }
}

impl Machine<'_> {
    /// Runs the setup of a task in a clone. The output is saved in `log`.
    pub(crate) async fn set_up(
        &self,
        task: &Task,
        clone: &Path,
        log: &Path,
    ) -> Result<(), PlaceError> {
        let network = if task.setup_network {
            Network::Host
        } else {
            Network::None
        };
        for command in &task.setup {
            let end = self
                .run(command, clone, task.setup_timeout, network.clone(), log)
                .await?;
            let problem = match end {
                CheckEnd::Exited(0) => continue,
                CheckEnd::Exited(code) => format!("ended with {code}"),
                CheckEnd::Stopped(why) | CheckEnd::NotPrepared(why) | CheckEnd::NotStarted(why) => {
                    why
                }
            };
            return Err(PlaceError::Setup {
                command: command.clone(),
                problem,
            });
        }
        Ok(())
    }

    /// Runs a command of a task in the sandbox and appends its output to the log.
    async fn run(
        &self,
        command: &str,
        clone: &Path,
        wall: Duration,
        network: Network,
        log: &Path,
    ) -> Result<CheckEnd, fs::FsError> {
        let mut env = base_env(self.env);
        env.extend(toolchain_env(self.env));
        for (name, value) in [
            ("HOME", CONFINED_HOME),
            ("CI", "true"),
            ("NO_COLOR", "1"),
            ("CARGO_TERM_COLOR", "never"),
            // Compiled files of a check would be files of the clone.
            ("PYTHONDONTWRITEBYTECODE", "1"),
        ] {
            env.push((name.into(), value.into()));
        }
        // A cover over the clone itself would be a contradiction.
        let masked = self
            .masked
            .iter()
            .filter(|place| !clone.starts_with(place))
            .cloned()
            .collect();
        let limits = Limits {
            stdout: MAX_LOG,
            stderr: MAX_LOG,
            ..Limits::new(wall)
        };
        let spawn = Spawn {
            args: ["-c", command].map(OsString::from).to_vec(),
            env,
            confinement: Confinement::Confined(Profile {
                strength: self.strength,
                writable: vec![clone.to_owned()],
                masked,
                read_only: Vec::new(),
                mounts: Vec::new(),
                network,
                calls: SyscallClass::Tools,
                identity: Identity::default(),
            }),
            keep: Keep::Tail,
            ..Spawn::new("sh", clone, limits)
        };
        let (end, stdout, stderr) = match self.sandbox.run(spawn).await {
            Ok(Completed {
                end,
                stdout,
                stderr,
                ..
            }) => (ended(end, wall), stdout.bytes, stderr.bytes),
            Err(error) => (
                CheckEnd::NotStarted(error.to_string()),
                Vec::new(),
                Vec::new(),
            ),
        };
        let mut text = format!("==> {command}\n").into_bytes();
        text.extend_from_slice(&stdout);
        text.extend_from_slice(&stderr);
        text.extend_from_slice(format!("\n<== {end:?}\n").as_bytes());
        fs::append_unflushed(log, &text)?;
        Ok(end)
    }
}

fn ended(end: End, wall: Duration) -> CheckEnd {
    CheckEnd::Stopped(match end {
        End::Exited(code) => return CheckEnd::Exited(code),
        End::TimedOut => format!("was killed after {} s", wall.as_secs()),
        End::Signalled(signal) => format!("was killed by signal {signal}"),
        End::OutputLimit => "printed too much".to_owned(),
        End::DiskLimit => "wrote too much to the disk".to_owned(),
        End::Forbidden => "made a forbidden system call".to_owned(),
    })
}
