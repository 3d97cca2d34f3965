//! What a session of phases needs of this program: its event loop, its output and its errors.

use std::cell::RefCell;
use std::future::Future;
use std::sync::Arc;

use crucible_llm::CallObserver;
use crucible_model::Failure;
use crucible_repo::RecoveredEdit;
use crucible_spec::session::{PhaseWork, SessionHost};
use crucible_spec::{AppliedFixup, PhaseId, SpecError, SpecProject, SpecReceipt, SpecStore};

use super::fixups::{show_applied, show_pending, show_recovered};
use super::progress::PhaseProgress;
use super::show::{show_dry, show_next, show_phase};
use crate::app::App;

/// The host of one command.
pub(crate) struct CommandHost<'a> {
    app: &'a App,
    progress: RefCell<Option<Arc<PhaseProgress>>>,
}

impl<'a> CommandHost<'a> {
    pub(crate) fn new(app: &'a App) -> Self {
        Self {
            app,
            progress: RefCell::default(),
        }
    }

    /// Shows the next step of the spec.
    pub(crate) fn conclude(
        &self,
        work: &PhaseWork<'_, Self>,
        dry_run: bool,
    ) -> Result<(), Failure> {
        if dry_run && !work.state()?.has_idea {
            self.app
                .output
                .remark("note: a dry run does not save the idea; give it again");
        }
        show_next(self.app, work.status()?.next.as_ref());
        Ok(())
    }
}

impl SessionHost for CommandHost<'_> {
    fn drive<T>(&self, work: impl Future<Output = T>) -> Result<T, Failure> {
        self.app.block_on(async { Ok(work.await) })
    }

    /// A program that reads the document finds only errors on standard error; a spinner leaves nothing
    /// behind.
    fn watch(&self, model: &str) -> Option<Arc<dyn CallObserver>> {
        if self.app.output.is_json() && !self.app.output.is_live() {
            return None;
        }
        let progress = Arc::new(PhaseProgress::new(&self.app.output, model.to_owned()));
        self.progress.replace(Some(Arc::clone(&progress)));
        Some(progress)
    }

    fn calls_ended(&self) {
        if let Some(progress) = &*self.progress.borrow() {
            progress.finish();
        }
    }

    fn fixup_recovered(&self, recovered: &RecoveredEdit) {
        show_recovered(self.app, recovered);
    }

    fn shows_results(&self) -> bool {
        !self.app.output.is_json()
    }

    fn phase_ended(&self, store: &SpecStore, phase: PhaseId, receipt: &SpecReceipt) {
        show_phase(self.app, store, phase, receipt);
    }

    fn dry_run_ended(&self, phase: PhaseId, receipt: &SpecReceipt) {
        if self.shows_results() {
            show_dry(self.app, phase, receipt);
        }
    }

    fn fixup_proposed(&self, project: &SpecProject, diff: &[u8]) -> Result<(), SpecError> {
        show_pending(self.app, project, diff)
    }

    fn fixup_applied(&self, applied: &AppliedFixup) {
        if self.shows_results() {
            show_applied(self.app, applied);
        }
    }

    fn result(&self, line: &str) {
        if self.shows_results() {
            self.app.output.line(line);
        }
    }

    fn remark(&self, text: &str) {
        if self.shows_results() {
            self.app.output.remark(text);
        }
    }
}
