//! The full-screen view of runs and specs, for `crucible tui` and `crucible project tui`.

use crucible_ledger::{Ledger, Page};
use crucible_model::{ExitStatus, Failure};
use crucible_spec::WorkspaceFile;
use crucible_tui::{
    BoardContent, BoardSource, BoardView, EntryDetails, EntryKey, Tab, require_terminal,
};
use crucible_view::{EvidenceView, ListQuery, RunList};

use crate::app::App;
use crate::project_documents::{evidence_document, no_json};
use crate::spec_project::project;

/// The most runs that are listed, the newest.
const MAX_RUNS: u64 = 500;

/// The ledger, and the specs of a workspace.
struct Source<'a> {
    app: &'a App,
    workspace: Option<&'a WorkspaceFile>,
}

impl BoardSource for Source<'_> {
    fn content(&self) -> Result<BoardContent, Failure> {
        // Opened for each look: the first run makes the ledger.
        let ledger = self.app.optional_ledger()?;
        let now = self.app.clock.now();
        let specs = self.workspace.map(|file| file.survey(now, ledger.as_ref()));
        Ok(BoardContent {
            runs: ledger
                .as_ref()
                .map_or_else(|| Ok(RunList::empty()), newest)?,
            specs: specs.transpose()?,
        })
    }

    async fn details(&self, entry: &EntryKey) -> Result<EntryDetails, Failure> {
        match entry {
            EntryKey::Run(run) => {
                let run = self.app.run_view(Some(run.as_str()))?;
                Ok(EntryDetails::Run(Box::new(run)))
            }
            EntryKey::Spec(spec) => {
                let project = match self.workspace {
                    Some(file) => file.project(),
                    None => project(self.app, None)?,
                };
                let evidence = evidence_document(self.app, &project, spec.as_str()).await?;
                let evidence =
                    EvidenceView::of_document(evidence).map_err(|error| no_json(&error))?;
                Ok(EntryDetails::Spec(Box::new(evidence)))
            }
        }
    }
}

/// Shows the lists until the user leaves.
pub(crate) fn show_board(
    app: &App,
    tab: Tab,
    workspace: Option<&WorkspaceFile>,
) -> Result<ExitStatus, Failure> {
    require_terminal(&app.env, &app.output)?;
    let view = BoardView::new(&app.env, tab, Source { app, workspace })?;
    app.block_on(view.show())?;
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
