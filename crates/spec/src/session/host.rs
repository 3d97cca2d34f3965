//! The program around a session: its event loop and its output.

use std::future::Future;
use std::sync::Arc;

use crucible_llm::CallObserver;
use crucible_model::Failure;
use crucible_repo::RecoveredEdit;

use crate::error::SpecError;
use crate::fixup::AppliedFixup;
use crate::phase_id::PhaseId;
use crate::project::SpecProject;
use crate::receipt::SpecReceipt;
use crate::store::SpecStore;

/// The program that runs a session.
pub trait SessionHost {
    /// Runs `work` to its end. If the user interrupts, drops it where it is and fails.
    ///
    /// # Errors
    ///
    /// Fails if the user interrupts, or if the event loop cannot start.
    fn drive<T>(&self, work: impl Future<Output = T>) -> Result<T, Failure>;

    /// Returns an observer of the calls to `model`, if progress is shown.
    fn watch(&self, model: &str) -> Option<Arc<dyn CallObserver>>;

    /// Called after the calls of a phase, before anything else is shown.
    fn calls_ended(&self);

    /// Called after the lock is taken, with the recovery of an interrupted application of fixups.
    fn fixup_recovered(&self, recovered: &RecoveredEdit);

    /// Returns whether results are shown to people.
    fn shows_results(&self) -> bool;

    /// Called after a phase with its receipt.
    fn phase_ended(&self, store: &SpecStore, phase: PhaseId, receipt: &SpecReceipt);

    /// Called after a dry run with its receipt.
    fn dry_run_ended(&self, phase: PhaseId, receipt: &SpecReceipt);

    /// Called after the fixup phase with the diff that it proposes.
    ///
    /// # Errors
    ///
    /// Fails if the diff cannot be shown.
    fn fixup_proposed(&self, project: &SpecProject, diff: &[u8]) -> Result<(), SpecError>;

    /// Called after a fixup was applied.
    fn fixup_applied(&self, applied: &AppliedFixup);

    /// Called with a line of the result.
    fn result(&self, line: &str);

    /// Called with a warning about a fixup that was applied.
    fn remark(&self, text: &str);
}
