//! Why a command ended without its result, in the form that the user sees.

use crate::canonical::CanonicalError;
use crate::exit::ExitStatus;
use crate::repo_path::RepoPathError;

/// The end of a command that has no result. Each error type converts to one beside its definition, without a wildcard.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// How the program exits.
    pub status: ExitStatus,
    /// What happened, to what.
    pub message: String,
    /// What the user can do, one sentence or command each.
    pub hints: Vec<String>,
    /// Whether a limit on calls, tokens or dollars is exhausted.
    pub budget_exhausted: bool,
}

impl Failure {
    /// Creates a failure without hints.
    #[must_use]
    pub fn new(status: ExitStatus, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            hints: Vec::new(),
            budget_exhausted: false,
        }
    }

    /// Creates the failure of an argument or a setting that cannot be used.
    #[must_use]
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ExitStatus::Usage, message)
    }

    /// Creates a failure with status [`ExitStatus::Refused`].
    #[must_use]
    pub fn refused(message: impl Into<String>) -> Self {
        Self::new(ExitStatus::Refused, message)
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl From<CanonicalError> for Failure {
    fn from(error: CanonicalError) -> Self {
        Self::refused(error.to_string())
    }
}

impl From<RepoPathError> for Failure {
    fn from(error: RepoPathError) -> Self {
        Self::usage(error.to_string())
    }
}
