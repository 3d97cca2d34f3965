//! `crucible tui`: the full-screen view of runs and specs.

use clap::Args;
use crucible_model::{ExitStatus, Failure};
use crucible_spec::WorkspaceFile;
use crucible_tui::Tab;

use crate::app::App;
use crate::board::show_board;

/// View runs and specs on the full screen
///
/// Nothing is changed. Tab switches between runs and specs. Up, down, PgUp, PgDn, Home, End, j and k move; Enter shows all about an
/// entry; `/` filters; r reloads; Esc goes back and q leaves. Ctrl-Z suspends it like any job of the shell. The specs are those of
/// the nearest workspace.yaml upward from the working directory.
#[derive(Args)]
pub(crate) struct Tui {}

impl Tui {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let workspace = WorkspaceFile::discover(app.env.working_directory());
        show_board(app, Tab::Runs, workspace.as_ref())
    }
}
