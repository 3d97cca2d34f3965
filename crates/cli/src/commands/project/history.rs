//! `crucible project history`: what happened to a spec.

use std::path::Path;

use clap::Args;
use crucible_llm::CostBasis;
use crucible_model::{ClockSource, ExitStatus, counted};
use crucible_spec::{
    HistoryRow, HistoryTotals, PhaseStatus, SpecId, SpecProject, SpecStore, WorkspaceFile, spec_history,
};

use crate::app::App;
use crate::commands::models::dollars;
use crate::commands::spec::place::spec_id;
use crate::error::CommandError;
use crate::table::table;
use crate::text::one_line;

/// Show what happened to a spec: each run of a phase, its tokens and its cost
///
/// Every receipt of the spec is read. One that cannot be believed is named, and the sums are over the others.
#[derive(Args)]
pub(crate) struct History {
    /// The spec
    #[arg(value_name = "SPEC-ID", value_parser = spec_id)]
    spec: SpecId,
}

impl History {
    pub(crate) fn run(&self, app: &App, named: Option<&Path>) -> Result<ExitStatus, CommandError> {
        let here = app.env.working_directory();
        // A spec has a history also where nobody made a workspace.
        let project = match (named, WorkspaceFile::discover(here)) {
            (None, None) => SpecProject::find(here),
            (Some(_), _) | (None, Some(_)) => super::workspace(app, named)?.project(),
        };
        let store = SpecStore::new(&project, self.spec.clone());
        let (receipts, problems) = store.history()?;
        let history = spec_history(&self.spec, &receipts, &problems);
        if app.output.is_json() {
            app.output.json(&history)?;
            return Ok(ExitStatus::Success);
        }
        if history.timeline.is_empty() {
            app.output.line(&format!("nothing has happened to {} yet", self.spec));
        } else {
            let mut rows = table(["when", "phase", "ended", "model", "tokens", "cost", "note"]);
            for row in &history.timeline {
                rows.add_row([
                    row.emitted_at.map(|at| at.to_string()).unwrap_or_default(),
                    one_line(&row.phase_id),
                    words(row.status).to_owned(),
                    one_line(row.model_used.as_deref().unwrap_or_default()),
                    tokens(row),
                    cost(row),
                    one_line(&note(row)),
                ]);
            }
            for line in rows.lines() {
                app.output.line(line.trim_end());
            }
            app.output.line(&totals(&history.totals));
        }
        for problem in &history.problems {
            app.output.line(&format!("receipts/{}: {}", one_line(&problem.file), problem.code));
        }
        Ok(ExitStatus::Success)
    }
}

fn words(status: PhaseStatus) -> &'static str {
    match status {
        PhaseStatus::Success => "done",
        PhaseStatus::Failed => "failed",
        PhaseStatus::DryRun => "dry run",
    }
}

fn tokens(row: &HistoryRow) -> String {
    let told = |tokens: Option<u64>| tokens.map_or_else(|| "?".to_owned(), |tokens| tokens.to_string());
    match (row.tokens_input, row.tokens_output) {
        (None, None) => String::new(),
        (input, output) => format!("{} in, {} out", told(input), told(output)),
    }
}

fn cost(row: &HistoryRow) -> String {
    let Some(cost) = row.cost_micro_dollars.map(dollars) else { return String::new() };
    match row.cost_basis {
        Some(CostBasis::Estimated) => format!("{cost} (estimate)"),
        Some(CostBasis::Reported) | None => cost,
    }
}

fn note(row: &HistoryRow) -> String {
    let mut parts: Vec<String> = row.error.iter().cloned().collect();
    if row.warnings > 0 {
        parts.push(counted(row.warnings, "warning"));
    }
    if row.attempts > 1 {
        parts.push(counted(row.attempts, "attempt"));
    }
    if row.clock == Some(ClockSource::Pinned) {
        parts.push("pinned clock".to_owned());
    }
    parts.join("; ")
}

fn totals(totals: &HistoryTotals) -> String {
    let mut parts = vec![counted(totals.runs, "run")];
    for (count, word) in [(totals.succeeded, "done"), (totals.failed, "failed"), (totals.dry_runs, "dry")] {
        if count > 0 {
            parts.push(format!("{count} {word}"));
        }
    }
    parts.push(format!("{} tokens in, {} out", totals.tokens_input, totals.tokens_output));
    let mut cost = dollars(totals.cost_micro_dollars);
    if totals.cost_estimated > 0 {
        cost.push_str(" (estimate)");
    }
    if totals.cost_unknown > 0 {
        cost.push_str(&format!(" and what {} cost, which is not known", counted(totals.cost_unknown, "run")));
    }
    parts.push(cost);
    format!("together: {}", parts.join(", "))
}
