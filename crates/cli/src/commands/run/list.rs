//! `crucible run list`: the runs there are.

use clap::Args;
use crucible_model::{ExitStatus, Failure, one_line};
use crucible_terminal::{lines_of, table};

use crate::app::App;

/// How much of a goal a row shows, in characters.
const SHOWN_GOAL: usize = 60;

/// List the runs, newest first
#[derive(Args)]
pub(crate) struct List {}

impl List {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let path = app.ledger_path()?;
        let mut runs = match crucible_ledger::Ledger::open_existing(&path)? {
            Some(ledger) => ledger.runs()?,
            None => Vec::new(),
        };
        runs.sort_by(|a, b| b.created.cmp(&a.created).then_with(|| b.id.cmp(&a.id)));
        if app.output.is_json() {
            let rows: Vec<_> = runs
                .iter()
                .map(|run| {
                    serde_json::json!({ "run_id": run.id, "state": run.state, "goal": run.goal, "repo": run.repo,
                        "created_at": run.created, "updated_at": run.updated })
                })
                .collect();
            app.output.json(
                &serde_json::json!({ "schema_version": "crucible-run-list-v1", "runs": rows }),
            )?;
        } else if runs.is_empty() {
            app.output.line(
                "no run yet; start one: crucible run start \"what to change\" --provider gateway",
            );
        } else {
            let mut rows = table(["run", "state", "started", "goal"]);
            for run in &runs {
                let goal: String = run.goal.chars().take(SHOWN_GOAL).collect();
                let cells = [
                    run.id.to_string(),
                    run.state.clone(),
                    run.created.to_string(),
                    goal,
                ];
                rows.add_row(cells.map(|cell| one_line(&cell)));
            }
            app.output.line(&lines_of(&rows));
        }
        Ok(ExitStatus::Success)
    }
}
