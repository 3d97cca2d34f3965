//! `crucible eval check`: whether tasks prove anything. No model is asked.

use std::path::PathBuf;

use clap::Args;
use crucible_eval::configured::{TaskDirectory, machine};
use crucible_eval::validate;
use crucible_host::fs::temp_dir_in;
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
        let TaskDirectory { path, tasks } =
            tasks_of(app, &self.directory, &self.tasks, self.repos.as_deref())?;
        let config = app.config(std::path::Path::new("/"), &[])?;
        let room = temp_dir_in(&app.env.temporary_directory(), "crucible-eval-check-")?;
        let machine = machine(&app.runtime(), &config, path)?;
        let proved = app.block_on(async {
            let mut proved = Vec::new();
            for task in &tasks {
                let validity = validate(&machine, task, &room.path().join(&task.name)).await?;
                app.output.remark(&match &validity.problem {
                    Some(problem) => format!("{}: broken: {problem}", task.name),
                    None if task.solution.is_none() => {
                        format!("{}: its check fails before; it has no solution", task.name)
                    }
                    None => format!("{}: ok", task.name),
                });
                proved.push((task.name.clone(), validity));
            }
            Ok(proved)
        })?;
        let broken = proved
            .iter()
            .filter(|(_, validity)| validity.problem.is_some())
            .count();
        if app.output.is_json() {
            let tasks: Vec<_> = proved
                .iter()
                .map(|(task, validity)| serde_json::json!({ "task": task, "validity": validity }))
                .collect();
            let document = serde_json::json!({
                "schema_version": "crucible-eval-check-v1", "broken": broken, "tasks": tasks,
            });
            app.output.json(&document)?;
        } else {
            app.output
                .line(&format!("{} tasks, {broken} broken", proved.len()));
        }
        Ok(if broken == 0 {
            ExitStatus::Success
        } else {
            ExitStatus::Refused
        })
    }
}
