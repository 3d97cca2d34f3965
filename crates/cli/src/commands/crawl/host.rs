//! What a crawl needs of this program: its event loop, its records and its questions.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use crucible_crawl::{
    CrawlContext, CrawlHost, CrawlObserver, SearchItem, SessionPurpose, SubProject,
};
use crucible_host::clock::clock_from;
use crucible_ledger::Ledger;
use crucible_llm::ReservationStore;
use crucible_model::{ExitStatus, Failure, RunId};
use crucible_run::LedgerReservations;
use crucible_settings::Settings;

use super::ask;
use super::progress::CrawlProgress;
use crate::app::App;

/// The host of one command.
pub(crate) struct CommandHost<'a> {
    app: &'a App,
    progress: CrawlProgress,
}

impl<'a> CommandHost<'a> {
    /// Runs `work` in a session of its own.
    pub(crate) fn run(
        app: &'a App,
        settings: &Settings,
        intent: &SessionPurpose,
        work: impl FnOnce(&mut CrawlContext<'_, Self>) -> Result<ExitStatus, Failure>,
    ) -> Result<ExitStatus, Failure> {
        let (runtime, progress) = (app.runtime(), CrawlProgress::new(&app.output));
        let host = Self { app, progress };
        CrawlContext::open(&runtime, settings, &host, intent, work)
    }
}

impl CrawlHost for CommandHost<'_> {
    fn observer(&self) -> &dyn CrawlObserver {
        &self.progress
    }

    fn drive<T>(&self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        self.app.block_on(work)
    }

    fn progress_ended(&self) {
        self.progress.finish();
    }

    fn records(&self) -> Result<(Ledger, PathBuf), Failure> {
        Ok((self.app.ledger()?, self.app.home()?.join("tmp")))
    }

    fn reservations(&self, run: &RunId) -> Result<Arc<dyn ReservationStore>, Failure> {
        let ledger = Ledger::open(&self.app.ledger_path()?)?;
        let clock = clock_from(&self.app.env)?;
        Ok(Arc::new(LedgerReservations::new(
            ledger,
            run.clone(),
            clock,
        )))
    }

    fn choose_result<'r>(&self, results: &'r [SearchItem]) -> Result<&'r SearchItem, Failure> {
        ask::choose_result(self.app, results)
    }

    fn took_best(&self, best: &SearchItem) {
        self.app.output.remark(&format!(
            "took the best result: {} (score {:.4})",
            best.full_name, best.score
        ));
    }

    fn choose_project(
        &self,
        top: Option<&str>,
        projects: &[SubProject],
    ) -> Result<Option<String>, Failure> {
        ask::choose_project(self.app, top, projects)
    }
}
