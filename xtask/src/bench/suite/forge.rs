//! The private copy of a project for the agent and the gates, beside `cp -a` of the same tree.
//!
//! Both copy a tree of five thousand files on a warm cache into a folder on the same file system. Ours walks it without git, looks for secrets
//! in every file, and knows afterwards what each of them held.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use crucible_forge::{ForgeContext, ForgeProject, SkillWorkspace, WorkspaceError};
use crucible_host::clock::SystemClock;
use crucible_host::env::Environment;
use crucible_model::Digest;
use crucible_sandbox::{Sandbox, Strength};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::bench::{Bench, Context, unmeasured};
use super::measure::{Case, Goal, side_by_side, timed};
use super::tree::{scratch, succeed};
use crate::error::TaskError;

/// The most times that `cp` takes.
const LIMIT: f64 = 1.3;
/// How many files the tree has.
const FILES: usize = 5_000;
/// How many of them lie in one directory.
const IN_ONE: usize = 50;

/// The bench of the copy.
pub(super) struct ForgeCopy;

impl Bench for ForgeCopy {
    fn name(&self) -> &'static str {
        "forge-copy"
    }

    fn run(&self, context: &Context<'_>) -> Result<Vec<Case>, TaskError> {
        let setup = Setup::new(context)?;
        let pair = side_by_side(context.rounds, || setup.measure_crucible(), || setup.copy())?;
        Ok(vec![Case {
            bench: self.name(),
            ours: format!(
                "copy for a skill: {FILES} files, {} MB",
                setup.bytes / 1_000_000
            ),
            beside: "cp -a".to_owned(),
            pair,
            goal: Goal::TimesAtMost(LIMIT),
        }])
    }
}

/// A project of real sources, and what is needed to copy it.
struct Setup {
    folder: TempDir,
    runtime: Runtime,
    env: Environment,
    bytes: u64,
}

impl Setup {
    fn new(context: &Context<'_>) -> Result<Self, TaskError> {
        let folder = scratch()?;
        let trees = context.trees()?;
        let mut contents = trees.branched.contents()?;
        contents.extend(
            trees
                .largest
                .contents()?
                .into_iter()
                .filter(|content| content.len() < 64 << 10),
        );
        let mut bytes = 0;
        for (number, content) in contents.iter().cycle().take(FILES).enumerate() {
            let directory = folder
                .path()
                .join(format!("project/part{}/src", number / IN_ONE));
            fs::create_dir_all(&directory).map_err(TaskError::io("create", &directory))?;
            let file = directory.join(format!("module_{number}.py"));
            fs::write(&file, content).map_err(TaskError::io("write", &file))?;
            bytes += content.len() as u64;
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(TaskError::io("start", "the event loop"))?;
        Ok(Self {
            folder,
            runtime,
            env: Environment::capture(),
            bytes,
        })
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn measure_crucible(&self) -> Result<Duration, TaskError> {
        let home = scratch()?;
        let world = ForgeContext {
            env: &self.env,
            clock: &SystemClock,
            sandbox: Arc::new(Sandbox::new(None, &self.env)),
            strength: Strength::Off,
            home: home.path().to_owned(),
            tmp: home.path().join("tmp"),
        };
        let package = "skillset".parse().map_err(unmeasured("forge-copy"))?;
        let project = ForgeProject::new(self.project(), Digest::compute(b"project"), package);
        let (time, skill_workspace) = timed(|| {
            self.runtime
                .block_on(SkillWorkspace::make(&world, &project))
        });
        let made = skill_workspace.map_err(unmeasured::<WorkspaceError>("forge-copy"))?;
        let left_out =
            made.omitted().len() + usize::try_from(made.more_omitted()).unwrap_or(usize::MAX);
        if left_out > FILES / 20 {
            return Err(unmeasured("forge-copy")(format!(
                "{left_out} of {FILES} files were left out"
            )));
        }
        Ok(time)
    }

    fn copy(&self) -> Result<Duration, TaskError> {
        let folder = scratch()?;
        let command = cp(&self.project(), &folder.path().join("copy"));
        let (time, copied) = timed(|| succeed(command));
        copied.map(|()| time)
    }
}

fn cp(from: &Path, to: &Path) -> Command {
    let mut command = Command::new("cp");
    command
        .arg("-a")
        .arg("--")
        .args([from, to])
        .stdin(Stdio::null());
    command
}
