//! Why no run can start with these settings and arguments.

use crucible_llm::LlmError;
use crucible_llm::configured::BackendError;
use crucible_settings::SetupError;

use crate::error::RunError;

/// Why no run can start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting or an argument cannot be used.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A provider cannot be prepared.
    #[error(transparent)]
    Llm(#[from] LlmError),
    /// No provider is chosen, and a model serves a role.
    #[error(transparent)]
    NoProvider(LlmError),
    /// The run cannot be created.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl From<BackendError> for StartError {
    fn from(error: BackendError) -> Self {
        match error {
            BackendError::Setup(error) => Self::Setup(error),
            BackendError::Llm(error) => Self::Llm(error),
        }
    }
}
