//! `crucible project tui`: the full-screen view, with the specs first.

use clap::Args;
use crucible_model::{ExitStatus, Failure};
use crucible_spec::WorkspaceFile;
use crucible_tui::Tab;

use crate::app::App;
use crate::board::show_board;

/// View the specs of the workspace on the full screen
///
/// The same view as `crucible tui`, with the specs first. Nothing is changed. Up, down, PgUp, PgDn, Home, End, j and k move; Enter
/// shows the phases of a spec; `/` filters by id or tag; Tab shows the runs; r reloads; Esc goes back and q leaves. Ctrl-Z suspends
/// it like any job of the shell.
#[derive(Args)]
pub(crate) struct Tui {}

impl Tui {
    pub(crate) fn run(&self, app: &App, workspace: &WorkspaceFile) -> Result<ExitStatus, Failure> {
        show_board(app, Tab::Specs, Some(workspace))
    }
}
