//! Every library error becomes a message, hints and an exit code here, once and without a wildcard.

use crucible_host::clock::ClockError;
use crucible_host::config::ConfigError;
use crucible_host::fs::FsError;
use crucible_host::lock::LockError;
use crucible_ledger::LedgerError;
use crucible_llm::{CallError, LlmError};
use crucible_model::ExitStatus;
use crucible_repo::RepoError;
use crucible_run::RunError;
use crucible_sandbox::SandboxError;

/// Why a command ended early.
#[derive(Debug)]
pub(crate) struct CommandError {
    pub(crate) status: ExitStatus,
    pub(crate) message: String,
    pub(crate) hints: Vec<String>,
    pub(crate) budget_exhausted: bool,
}

impl CommandError {
    pub(crate) fn new(status: ExitStatus, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), hints: Vec::new(), budget_exhausted: false }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(ExitStatus::Usage, message)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl From<ClockError> for CommandError {
    fn from(error: ClockError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<ConfigError> for CommandError {
    fn from(error: ConfigError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<FsError> for CommandError {
    fn from(error: FsError) -> Self {
        Self::new(ExitStatus::Refused, error.to_string())
    }
}

impl From<LockError> for CommandError {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Held { .. } => Self::new(ExitStatus::LockHeld, error.to_string()),
            LockError::Fs(error) => error.into(),
        }
    }
}
