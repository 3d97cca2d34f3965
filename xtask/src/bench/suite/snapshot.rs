//! The copy of a work tree for the sandbox, beside `cp -a --reflink=auto` of the same files.
//!
//! Both copy a work tree on a warm cache into a folder on the same file system. Ours asks git for the files first.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use crucible_host::env::Environment;
use crucible_repo::{Git, RepoError, SnapshotOptions, Untracked};
use crucible_sandbox::Sandbox;
use tokio::runtime::Runtime;

use super::bench::{Bench, Context, unmeasured};
use super::measure::{Case, Goal, side_by_side, timed};
use super::tree::{Repository, scratch, succeed};
use crate::error::TaskError;

/// The most times that `cp` takes.
const LIMIT: f64 = 1.0;

/// The bench of the snapshot.
pub(super) struct Snapshot;

impl Bench for Snapshot {
    fn name(&self) -> &'static str {
        "snapshot"
    }

    fn run(&self, context: &Context<'_>) -> Result<Vec<Case>, TaskError> {
        let mut cases = Vec::new();
        for tree in context.trees()?.both() {
            let repository = tree.repository()?;
            let opened = Opened::new(&repository)?;
            let entries = repository.entries()?;
            let files = tree.files.len() as u64;
            let pair = side_by_side(context.rounds, || opened.snapshot(files), || copy(&entries))?;
            cases.push(Case {
                bench: self.name(),
                ours: format!("snapshot: {}", tree.name),
                beside: "cp -a --reflink=auto".to_owned(),
                pair,
                goal: Goal::TimesAtMost(LIMIT),
            });
        }
        Ok(cases)
    }
}

/// A repository as the product has it open.
pub(super) struct Opened {
    pub(super) runtime: Runtime,
    pub(super) git: Git,
}

impl Opened {
    /// Opens it as a command does.
    pub(super) fn new(repository: &Repository) -> Result<Self, TaskError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(TaskError::io("start", "the event loop"))?;
        let env = Environment::capture();
        let sandbox = Arc::new(Sandbox::new(None, &env));
        let git = runtime
            .block_on(Git::open(sandbox, &env, repository.path()))
            .map_err(unmeasured("snapshot"))?;
        Ok(Self { runtime, git })
    }

    fn snapshot(&self, files: u64) -> Result<Duration, TaskError> {
        let folder = scratch()?;
        let options = SnapshotOptions {
            untracked: Untracked::Leave,
            secret: Arc::new(named_secret),
        };
        let dest = folder.path().join("copy");
        let (time, report) = timed(|| {
            self.runtime
                .block_on(crucible_repo::snapshot(&self.git, &dest, &options))
        });
        let report = report.map_err(unmeasured::<RepoError>("snapshot"))?;
        if report.files + report.omitted.len() as u64 != files {
            return Err(unmeasured("snapshot")(format!(
                "{} of {files} files were copied",
                report.files
            )));
        }
        Ok(time)
    }
}

/// The rule by which a run leaves files out.
fn named_secret(path: &Path) -> Option<String> {
    crucible_secrets::is_secret_file(&path.to_string_lossy()).then(|| "its name".to_owned())
}

fn copy(entries: &[PathBuf]) -> Result<Duration, TaskError> {
    let folder = scratch()?;
    let dest = folder.path().join("copy");
    fs::create_dir(&dest).map_err(TaskError::io("create", &dest))?;
    let mut command = Command::new("cp");
    command
        .args(["-a", "--reflink=auto", "-t"])
        .arg(&dest)
        .arg("--")
        .args(entries)
        .stdin(Stdio::null());
    let (time, copied) = timed(|| succeed(command));
    copied.map(|()| time)
}
