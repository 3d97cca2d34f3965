//! `crucible project status`: the state of the specs in the workspace.

use clap::Args;
use crucible_model::{ExitStatus, Failure, counted, one_line};
use crucible_spec::{PhaseId, WorkspaceFile};
use crucible_terminal::{lines_of, table};

use crate::app::App;

/// Show the state of the specs in the workspace
///
/// Nothing is changed, and no model is called. Failed, pending and outdated phases are counted;
/// `crucible gate` judges a spec.
#[derive(Args)]
pub(crate) struct Status {}

impl Status {
    pub(crate) fn run(&self, app: &App, workspace: &WorkspaceFile) -> Result<ExitStatus, Failure> {
        let ledger = app.optional_ledger()?;
        let status = workspace
            .survey(app.clock.now(), ledger.as_ref())?
            .summary();
        if app.output.is_json() {
            app.output.json(&status)?;
            return Ok(ExitStatus::Success);
        }
        app.output.line(&one_line(&format!(
            "{}: {}",
            status.name,
            status.counts.words()
        )));
        if !status.specs.is_empty() {
            let mut rows = table(["spec", "state", "reached", "trouble", "next"]);
            for spec in &status.specs {
                rows.add_row([
                    spec.spec_id.as_str(),
                    spec.standing.words(),
                    spec.reached.map_or("", PhaseId::as_str),
                    &one_line(&spec.troubles().join("; ")),
                    spec.next.as_ref().map_or("", |next| next.command.as_str()),
                ]);
            }
            app.output.line(&lines_of(&rows));
        }
        if let Some(first) = status.unlisted.first() {
            let unlisted = counted(status.counts.unlisted, "spec");
            app.output.remark(&format!(
                "note: {unlisted} on the disk not listed, for example {first}; add one: crucible project \
                add-spec {first}"
            ));
        }
        Ok(ExitStatus::Success)
    }
}
