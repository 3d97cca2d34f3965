//! `crucible spec run`: one task of a spec becomes a governed run.

use std::path::PathBuf;

use clap::Args;
use crucible_model::{ExitStatus, Failure, counted, one_line};
use crucible_run::configured::no_repository;
use crucible_run::defined_tests;
use crucible_spec::{SpecOutline, SpecProject, task_goal};

use crate::app::App;
use crate::names::spec_name;
use crate::run_start::{ENDS, Options, start_and_advance};
use crate::spec_project::{outline_of, project};

/// The most tasks that an error names.
const SHOWN: usize = 20;

/// Start a run for one task of a spec
///
/// The goal is the task with the requirements that it serves; it is shown before the run starts. The run keeps the ids, and
/// its landing records which requirements the change proves. Everything else is as with `crucible run start`. The spec is
/// Crucible's own, or a folder of Spec Kit, OpenSpec or Kiro. For example: `crucible spec run export-data T-001`
#[derive(Args)]
#[command(after_help = ENDS)]
pub(crate) struct SpecRun {
    /// The name of the spec, or the path of its folder
    #[arg(value_name = "SPEC", value_parser = spec_name)]
    spec: String,
    /// The id of the task, as the list of tasks has it
    #[arg(value_name = "TASK")]
    task: String,
    /// The workspace.yaml of the project [default: the project of the working directory]
    #[arg(long, value_name = "FILE")]
    workspace: Option<PathBuf>,
    #[command(flatten)]
    options: Options,
}

impl SpecRun {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let project = match &self.workspace {
            Some(_) => project(app, self.workspace.as_deref())?,
            None => SpecProject::find(&app.absolute(&self.options.repo)),
        };
        let outline = outline_of(app, &project, &self.spec)?;
        if let Some(first) = outline.verdict.errors().next() {
            return Err(
                Failure::refused(format!("the spec cannot be used: {first}")).hint(format!(
                    "`crucible spec evidence {}` shows every finding.",
                    self.spec
                )),
            );
        }
        let task = outline
            .task(&self.task)
            .ok_or_else(|| unknown_task(&outline, &self.task))?;
        let spec_task = outline.spec_task(task);
        let directory = app.absolute(&self.options.repo);
        let top = app
            .repository_of(&directory)
            .ok_or_else(|| no_repository(&directory))?;
        let world = app.world_here()?;
        let defined = app.drive(defined_tests(&world, &top, &spec_task.requirements))?;
        let goal = task_goal(&outline, task, &defined);
        if !app.output.is_json() {
            goal.lines()
                .for_each(|line| app.output.remark(&format!("  {}", one_line(line))));
            let named: usize = spec_task
                .requirements
                .iter()
                .map(|row| row.tests.len())
                .sum();
            if named == 0 {
                app.output.remark(
                    "note: its requirements name no test, so the run cannot prove them; add lines `Test: NAME in PATH`",
                );
            }
        }
        start_and_advance(app, &goal, &self.options, |options| {
            options.task = Some(spec_task)
        })
    }
}

fn unknown_task(outline: &SpecOutline, named: &str) -> Failure {
    let failure = Failure::usage(format!("the spec {} has no task {named:?}", outline.name));
    if outline.tasks.is_empty() {
        return failure.hint("It has no tasks yet. In a spec of Crucible, `crucible spec ID --through tasks` writes them.");
    }
    let ids: Vec<&str> = outline
        .tasks
        .iter()
        .take(SHOWN)
        .map(|task| task.id.as_str())
        .collect();
    failure.hint(format!(
        "It has {}: {}",
        counted(outline.tasks.len() as u64, "task"),
        one_line(&ids.join(", "))
    ))
}
