//! `crucible eval check`: whether tasks prove anything. No model is asked.

use std::path::{Path, PathBuf};

use clap::Args;
use crucible_eval::CheckedTasks;
use crucible_model::{ExitStatus, Failure};

use super::tasks_of;
use crate::app::App;

/// Check that each task fails before and passes with its solution
///
/// No model is called. For example: `crucible eval check tasks`
#[derive(Args)]
pub(super) struct Check {
    /// A directory with one subdirectory per task
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Check only these tasks. May be given several times
    #[arg(long = "task", value_name = "NAME")]
    tasks: Vec<String>,
    /// Directory with the repositories that are outside the tasks' own directories
    #[arg(long, value_name = "DIR")]
    repos: Option<PathBuf>,
}

impl Check {
    pub(super) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let directory = tasks_of(app, &self.directory, &self.tasks, self.repos.as_deref())?;
        let config = app.config(Path::new("/"), &[])?;
        let runtime = app.runtime();
        let report = |line: &str| app.output.remark(line);
        let checked = app.block_on(CheckedTasks::check(&runtime, &config, &directory, report))?;
        let text = || app.output.line(&checked.summary());
        app.output.show(|| checked.document(), text)?;
        Ok(if checked.broken() == 0 {
            ExitStatus::Success
        } else {
            ExitStatus::Refused
        })
    }
}
