//! The end of an attempt that failed or was interrupted: its receipt, and the error of the program.

use crucible_model::{ExitStatus, Failure, one_line};
use crucible_sandbox::Runtime;

use crate::engine::failure_class;
use crate::error::SpecError;
use crate::fixup::AppliedFixup;
use crate::phase_id::PhaseId;

/// Why work that ends with a receipt stopped.
pub(super) enum Stopped {
    Failed(SpecError),
    /// The user ended it, or the event loop could not start.
    Interrupted(Failure),
}

/// What the receipt of a failure records.
pub(super) struct FailureNote<'a> {
    pub(super) class: &'a str,
    pub(super) message: &'a str,
    pub(super) exit: ExitStatus,
}

/// Whether hooks ran around an attempt. Their results must be in a receipt, however the attempt ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hooked {
    Yes,
    No,
}

impl Stopped {
    /// Ends the work with the receipt that `fail` writes.
    pub(super) fn ended(
        self,
        runtime: &Runtime<'_>,
        fail: impl FnOnce(FailureNote<'_>) -> Result<(), SpecError>,
        hooked: Hooked,
    ) -> Failure {
        match self {
            Self::Failed(error) => ended(runtime, fail, error, hooked),
            Self::Interrupted(error) => interrupted(runtime, fail, error),
        }
    }

    /// Ends the work without a receipt.
    pub(super) fn without_receipt(self) -> Failure {
        match self {
            Self::Failed(error) => error.into(),
            Self::Interrupted(error) => error,
        }
    }
}

/// Adds the changed files to an error that follows an applied fixup.
pub(super) fn with_changed_files(error: Failure, applied: &AppliedFixup) -> Failure {
    let files: Vec<&str> = applied
        .files
        .iter()
        .map(|file| file.path.as_str())
        .collect();
    let message = format!(
        "{}; the files are changed: {}",
        error.message,
        one_line(&files.join(", "))
    );
    Failure { message, ..error }
}

/// Warns about cleanup that failed after a phase had its receipt.
pub(super) fn warn_unfinished(runtime: &Runtime<'_>, phase: PhaseId, unfinished: &[String]) {
    for what in unfinished {
        runtime.notices.notice(&one_line(&format!(
            "warning: {phase} has its receipt, but {what}; the next command on this spec continues from there"
        )));
    }
}

/// Ends a failed attempt with its receipt. A usage error leaves no receipt if no hook ran, and a lost
/// lock never leaves one.
pub(super) fn ended(
    runtime: &Runtime<'_>,
    fail: impl FnOnce(FailureNote<'_>) -> Result<(), SpecError>,
    error: SpecError,
    hooked: Hooked,
) -> Failure {
    let class = failure_class(&error);
    let message = runtime.env.without_home(&error.to_string());
    let error = Failure::from(error);
    let is_recorded = match class {
        "lock" => false,
        "usage" => hooked == Hooked::Yes,
        _ => true,
    };
    if is_recorded {
        let note = FailureNote {
            class,
            message: &message,
            exit: error.status,
        };
        record(runtime, fail, note);
    }
    error
}

/// Ends an interrupted attempt with its receipt.
fn interrupted(
    runtime: &Runtime<'_>,
    fail: impl FnOnce(FailureNote<'_>) -> Result<(), SpecError>,
    error: Failure,
) -> Failure {
    let exit = error.status;
    let class = if exit == ExitStatus::Interrupted {
        "interrupted"
    } else {
        "internal"
    };
    let message = runtime.env.without_home(&error.message);
    let note = FailureNote {
        class,
        message: &message,
        exit,
    };
    record(runtime, fail, note);
    match exit {
        ExitStatus::Interrupted => error.hint(
            "Finished phases are kept. Run the same command to continue; \
        answers that were received are reused.",
        ),
        _ => error,
    }
}

fn record(
    runtime: &Runtime<'_>,
    fail: impl FnOnce(FailureNote<'_>) -> Result<(), SpecError>,
    note: FailureNote<'_>,
) {
    if let Err(second) = fail(note) {
        runtime.notices.notice(&format!(
            "warning: cannot write a receipt of this: {second}"
        ));
    }
}
