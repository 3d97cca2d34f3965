//! The exit status and the hints of each error of this crate.

use crucible_model::{ExitStatus, Failure};

use crate::call_error::CallError;
use crate::cassette::CassetteError;
use crate::error::LlmError;

impl From<LlmError> for Failure {
    fn from(error: LlmError) -> Self {
        let status = match &error {
            error if error.holds_secret() => ExitStatus::SecretDetected,
            LlmError::Misconfiguration(_) | LlmError::Unsupported(_) => ExitStatus::Usage,
            LlmError::Timeout { .. } => ExitStatus::TimedOut,
            // Seed 002 gives a provider's quota the code of a failed provider; 4 is for our own limits of rate.
            LlmError::Transport(_)
            | LlmError::ProviderAuth(_)
            | LlmError::ProviderQuota(_)
            | LlmError::ProviderOutage(_)
            | LlmError::BudgetExceeded { .. } => ExitStatus::Provider,
        };
        let budget_exhausted = matches!(error, LlmError::BudgetExceeded { .. });
        Self {
            budget_exhausted,
            ..Self::new(status, error.to_string())
        }
    }
}

impl From<CassetteError> for Failure {
    fn from(error: CassetteError) -> Self {
        let status = match &error {
            CassetteError::File(_) | CassetteError::Canonical(_) | CassetteError::Interrupted => {
                ExitStatus::Refused
            }
            CassetteError::NotACassette
            | CassetteError::Newer { .. }
            | CassetteError::BadLine { .. } => ExitStatus::Schema,
        };
        Self::new(status, error.to_string())
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Secret(secret) => Self::new(ExitStatus::SecretDetected, secret.to_string()),
            CallError::Llm(error) => error.into(),
            CallError::Record(error) => error.into(),
        }
    }
}
