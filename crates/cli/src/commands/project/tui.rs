//! `crucible project tui`: the full-screen view of the workspace.

use clap::Args;
use crucible_model::{ExitStatus, Failure};
use crucible_spec::WorkspaceFile;
use crucible_tui::{WorkspaceView, require_terminal};

use crate::app::App;

/// View the specs of the workspace on the full screen
///
/// Nothing is changed. Up, down, PgUp, PgDn, Home, End, j and k move; Enter shows the phases of a spec;
/// `/` filters by id or tag; r reloads; Esc goes back and q leaves. Ctrl-Z suspends it like any job of
/// the shell.
#[derive(Args)]
pub(crate) struct Tui {}

impl Tui {
    pub(crate) fn run(&self, app: &App, workspace: &WorkspaceFile) -> Result<ExitStatus, Failure> {
        require_terminal(&app.env, &app.output)?;
        let ledger = app.ledger_to_ask()?;
        let survey = || Ok(workspace.survey(app.clock.now(), ledger.as_ref())?);
        app.block_on(WorkspaceView::new(&app.env, survey)?.show())?;
        Ok(ExitStatus::Success)
    }
}
