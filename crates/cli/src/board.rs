//! The full-screen view of runs and specs, for `crucible tui` and `crucible project tui`.

use crucible_ledger::{Ledger, Page};
use crucible_model::{ExitStatus, Failure};
use crucible_spec::WorkspaceFile;
use crucible_tui::{BoardContent, BoardView, Tab, require_terminal};
use crucible_view::{ListQuery, RunList};

use crate::app::App;

/// The most runs that are listed, the newest.
const MAX_RUNS: u64 = 500;

/// Shows the lists until the user leaves.
pub(crate) fn show_board(
    app: &App,
    tab: Tab,
    workspace: Option<&WorkspaceFile>,
) -> Result<ExitStatus, Failure> {
    require_terminal(&app.env, &app.output)?;
    let content = || {
        // Opened for each look: the first run makes the ledger.
        let ledger = app.optional_ledger()?;
        let specs = workspace.map(|file| file.survey(app.clock.now(), ledger.as_ref()));
        Ok(BoardContent {
            runs: ledger
                .as_ref()
                .map_or_else(|| Ok(RunList::empty()), newest)?,
            specs: specs.transpose()?,
        })
    };
    app.block_on(BoardView::new(&app.env, tab, content)?.show())?;
    Ok(ExitStatus::Success)
}

fn newest(ledger: &Ledger) -> Result<RunList, Failure> {
    let query = ListQuery {
        page: Some(Page {
            skip: 0,
            most: MAX_RUNS,
        }),
        ..ListQuery::default()
    };
    Ok(RunList::read(ledger, &query)?)
}
