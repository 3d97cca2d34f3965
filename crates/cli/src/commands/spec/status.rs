//! `crucible status`: the state of a spec, and the next step.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use crucible_llm::{cost_in_words, dollars, tokens_in_words};
use crucible_model::{ExitStatus, Failure, counted, one_line};
use crucible_spec::{PhaseSummary, SpecStatus as Status, age_words, fixup_under_way, spec_status};
use crucible_terminal::{Output, lines_of, table};

use super::outline_status::show_outline;
use crate::app::App;
use crate::names::spec_name;
use crate::spec_project::{NamedSpec, named_spec, project, spec_to_read};

/// Show the phases of a spec and the next step
///
/// Shows the age and the cost of each phase, and pending fixups. Nothing is changed, and no model is
/// called. For example: `crucible status export-data`
#[derive(Args)]
pub(crate) struct SpecStatus {
    /// The id of the spec; or the name or folder of a spec of Spec Kit, OpenSpec or Kiro
    #[arg(value_name = "SPEC-ID", value_parser = spec_name)]
    spec: String,
    /// The project's workspace.yaml, instead of searching upward
    #[arg(long, value_name = "FILE")]
    workspace: Option<PathBuf>,
}

impl SpecStatus {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let project = project(app, self.workspace.as_deref())?;
        let id = match named_spec(app, &project, &self.spec)? {
            NamedSpec::Own(id) => id,
            NamedSpec::Folder(folder) => return show_outline(app, &project, &folder.read()),
        };
        let store = spec_to_read(app, &project, id);
        let ledger = app.optional_ledger()?;
        let status = spec_status(&store.state(ledger.as_ref())?, app.clock.now());
        let status = status.with_under_way(fixup_under_way(&store)?.as_ref());
        app.output.show(
            || &status,
            || {
                print(&app.output, &status);
            },
        )
    }
}

fn print(output: &Output, status: &Status) {
    let mut rows = table([
        "phase", "state", "age", "model", "tokens", "cost", "warnings",
    ]);
    for phase in &status.phase_statuses {
        rows.add_row([
            phase.phase_id.as_str(),
            phase.status.words(),
            &age(phase),
            &one_line(phase.model_used.as_deref().unwrap_or_default()),
            &tokens_in_words(phase.tokens_input, phase.tokens_output),
            &cost_in_words(phase.cost_micro_dollars, phase.cost_basis),
            &number(phase.warnings),
        ]);
    }
    output.line(status.spec_id.as_str());
    output.line(&lines_of(&rows));
    output.line("");
    for phase in &status.phase_statuses {
        for (kind, message) in [("failed", &phase.error), ("warning", &phase.first_warning)] {
            if let Some(message) = message {
                output.line(&format!("{} {kind}: {}", phase.phase_id, one_line(message)));
            }
        }
    }
    for problem in &status.problems {
        output.line(&format!(
            "receipts/{}: {}",
            one_line(&problem.file),
            problem.code
        ));
    }
    if status.problems_left_out > 0 {
        output.line(&format!(
            "and {} more; `crucible gate` names them",
            counted(status.problems_left_out, "problem")
        ));
    }
    if !status.fixup_under_way.is_empty() {
        let files = one_line(&status.fixup_under_way.join(", "));
        output.line(&format!("applying fixups has not finished: {files}"));
        output.line(&format!(
            "`crucible resume {} --phase fixup --apply-fixups` completes it or rolls it back, if no process \
            is working on it",
            status.spec_id
        ));
    }
    if status.pending_fixups > 0 {
        output.line(&format!(
            "pending fixups: {}",
            counted(status.pending_fixups, "file")
        ));
    }
    let total = [
        tokens_in_words(status.tokens_input, status.tokens_output),
        status.cost_micro_dollars.map(dollars).unwrap_or_default(),
    ];
    let total: Vec<&str> = total
        .iter()
        .map(String::as_str)
        .filter(|part| !part.is_empty())
        .collect();
    if !total.is_empty() {
        output.line(&format!("the runs above, together: {}", total.join(", ")));
    }
    match &status.next {
        Some(next) => output.line(&format!("next: {} ({})", next.command, next.reason.words())),
        None => output.line("next: nothing, every phase is done"),
    }
}

fn age(phase: &PhaseSummary) -> String {
    match (phase.age_seconds, phase.emitted_at) {
        (Some(seconds), _) => age_words(Duration::from_secs(seconds)),
        (None, Some(_)) => "in the future".to_owned(),
        (None, None) if phase.receipt_id.is_some() => "unknown".to_owned(),
        (None, None) => String::new(),
    }
}

fn number(count: u64) -> String {
    if count == 0 {
        String::new()
    } else {
        count.to_string()
    }
}
