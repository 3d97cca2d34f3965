//! The state of a spec without phases: its tasks, and how many requirements are proven.

use crucible_evidence::EvidenceCounts;
use crucible_model::{ExitStatus, Failure, Finding, Level, one_line};
use crucible_spec::{SpecOutline, SpecProject};
use crucible_terminal::{lines_of, table};
use serde::Serialize;

use crate::app::App;
use crate::requirement_report::judged;

/// The document that a program reads.
#[derive(Serialize)]
struct OutlineStatus<'a> {
    schema_version: &'static str,
    spec: &'a str,
    format: &'static str,
    requirements: EvidenceCounts,
    tasks: Vec<TaskRow<'a>>,
    findings: Vec<&'a Finding>,
    next: Option<String>,
}

#[derive(Serialize)]
struct TaskRow<'a> {
    id: &'a str,
    text: &'a str,
    is_done: bool,
    requirements: &'a [String],
}

/// Shows the tasks of a spec, what is wrong with it, and the next step.
pub(super) fn show_outline(
    app: &App,
    project: &SpecProject,
    outline: &SpecOutline,
) -> Result<ExitStatus, Failure> {
    let (matrix, verdict) = app.block_on(judged(app, project, outline))?;
    let next = outline
        .tasks
        .iter()
        .find(|task| !task.is_done)
        .filter(|_| outline.verdict.passes())
        .map(|task| format!("crucible spec run {} {}", outline.name, task.id));
    if app.output.is_json() {
        let tasks = outline.tasks.iter().map(|task| TaskRow {
            id: &task.id,
            text: &task.text,
            is_done: task.is_done,
            requirements: &task.serves,
        });
        app.output.json(&OutlineStatus {
            schema_version: "crucible-outline-status-v1",
            spec: &outline.name,
            format: outline.format.as_str(),
            requirements: matrix.counts,
            tasks: tasks.collect(),
            findings: verdict.findings().iter().collect(),
            next,
        })?;
        return Ok(ExitStatus::Success);
    }
    let is_of_spec = |finding: &&Finding| {
        outline.verdict.findings().contains(finding) || finding.level == Level::Warning
    };
    for finding in verdict.findings().iter().filter(is_of_spec) {
        app.output.finding(finding);
    }
    app.output
        .line(&format!("{} ({})", one_line(&outline.name), outline.format));
    let mut rows = table(["task", "done", "requirements", "text"]);
    for task in &outline.tasks {
        rows.add_row([
            one_line(&task.id),
            if task.is_done { "yes" } else { "" }.to_owned(),
            one_line(&task.serves.join(", ")),
            one_line(&task.text),
        ]);
    }
    app.output.line(&lines_of(&rows));
    let counts = matrix.counts;
    app.output.line(&format!(
        "requirements: {} proven, {} partial, {} without evidence",
        counts.proven, counts.partial, counts.none
    ));
    match next {
        Some(next) => app.output.line(&format!("next: {}", one_line(&next))),
        None => app.output.line("next: nothing, no task is open"),
    }
    Ok(ExitStatus::Success)
}
