//! The program around a session: its event loop, its output and its errors.

use std::future::Future;
use std::sync::Arc;

use crucible_host::fs::FsError;
use crucible_ledger::LedgerError;
use crucible_llm::CallWatch;
use crucible_llm::configured::BackendError;
use crucible_model::ExitStatus;
use crucible_repo::RecoveredEdit;
use crucible_settings::SetupError;

use crate::error::SpecError;
use crate::fixup::AppliedFixup;
use crate::phase_id::PhaseId;
use crate::project::SpecProject;
use crate::receipt::SpecReceipt;
use crate::store::SpecStore;

/// The program that runs a session.
pub trait SessionHost {
    /// The error that the program ends with.
    type Error: SessionFailure;

    /// Runs `work` to its end. If the user interrupts, drops it where it is and fails.
    ///
    /// # Errors
    ///
    /// Fails if the user interrupts, or if the event loop cannot start.
    fn drive<T>(&self, work: impl Future<Output = T>) -> Result<T, Self::Error>;

    /// Returns an observer of the calls to `model`, if progress is shown.
    fn watch(&self, model: &str) -> Option<Arc<dyn CallWatch>>;

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

/// The error of the program that runs a session. The receipt of a failed phase has its exit code.
pub trait SessionFailure:
    From<SpecError> + From<SetupError> + From<BackendError> + From<LedgerError> + From<FsError>
{
    /// Returns the status that the program ends with.
    fn exit_status(&self) -> ExitStatus;

    /// Returns the message.
    fn message(&self) -> &str;

    /// Replaces the message.
    #[must_use]
    fn with_message(self, message: String) -> Self;

    /// Adds a hint.
    #[must_use]
    fn with_hint(self, hint: String) -> Self;
}
