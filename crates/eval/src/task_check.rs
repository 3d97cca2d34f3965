//! Checks that tasks can measure something: each fails before and passes with its solution.

use crucible_host::fs::temp_dir_in;
use crucible_model::Failure;
use crucible_sandbox::Runtime;
use crucible_settings::Settings;
use serde_json::{Value, json};

use crate::configured::{TaskDirectory, machine};
use crate::engine::{Validity, validate};

/// The schema name of the JSON result.
const SCHEMA: &str = "crucible-eval-check-v1";

/// The results of a check, in the order of the tasks.
#[derive(Debug, Default)]
pub struct CheckedTasks {
    tasks: Vec<(String, Validity)>,
}

impl CheckedTasks {
    /// Checks each task in a temporary directory. `report` receives a line for each.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be written; a problem of a task is a result, not an error.
    pub async fn check(
        runtime: &Runtime<'_>,
        settings: &Settings,
        directory: &TaskDirectory,
        mut report: impl FnMut(&str),
    ) -> Result<Self, Failure> {
        let temp_dir = temp_dir_in(&runtime.env.temporary_directory(), "crucible-eval-check-")?;
        let machine = machine(runtime, settings, directory.path.clone())?;
        let mut checked = Self::default();
        for task in &directory.tasks {
            let validity = validate(&machine, task, &temp_dir.path().join(&task.name)).await?;
            report(&match &validity.problem {
                Some(problem) => format!("{}: broken: {problem}", task.name),
                None if task.solution.is_none() => {
                    format!("{}: its check fails before; it has no solution", task.name)
                }
                None => format!("{}: ok", task.name),
            });
            checked.tasks.push((task.name.clone(), validity));
        }
        Ok(checked)
    }

    /// Returns the number of broken tasks.
    #[must_use]
    pub fn broken(&self) -> usize {
        let problems = self.tasks.iter();
        problems
            .filter(|(_, validity)| validity.problem.is_some())
            .count()
    }

    /// Returns the result for people.
    #[must_use]
    pub fn summary(&self) -> String {
        format!("{} tasks, {} broken", self.tasks.len(), self.broken())
    }

    /// Returns the result for programs.
    #[must_use]
    pub fn document(&self) -> Value {
        let tasks: Vec<_> = self
            .tasks
            .iter()
            .map(|(task, validity)| json!({ "task": task, "validity": validity }))
            .collect();
        json!({ "schema_version": SCHEMA, "broken": self.broken(), "tasks": tasks })
    }
}
