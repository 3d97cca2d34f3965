//! `crucible run list`: lists the runs.

use clap::Args;
use crucible_model::{ExitStatus, Failure, one_line};
use crucible_terminal::{lines_of, table};
use crucible_view::{ListQuery, RunList};

use crate::app::App;

/// How much of a goal a row shows, in characters.
const SHOWN_GOAL: usize = 60;

/// List the runs, newest first
#[derive(Args)]
pub(crate) struct List {}

impl List {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let list = match app.existing_ledger()? {
            Some(ledger) => RunList::read(&ledger, &ListQuery::default())?,
            None => RunList::empty(),
        };
        let runs = &list.runs;
        if app.output.is_json() {
            app.output.json(&list)?;
        } else if runs.is_empty() {
            app.output.line(
                "no run yet; start one: crucible run start \"what to change\" --provider gateway",
            );
        } else {
            let mut rows = table(["run", "state", "started", "goal"]);
            for run in runs {
                let goal: String = run.goal.as_str().chars().take(SHOWN_GOAL).collect();
                let cells = [
                    run.run_id.to_string(),
                    run.state.as_str().to_owned(),
                    run.created_at.to_string(),
                    goal,
                ];
                rows.add_row(cells.map(|cell| one_line(&cell)));
            }
            app.output.line(&lines_of(&rows));
        }
        Ok(ExitStatus::Success)
    }
}
