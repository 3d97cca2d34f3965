//! The exit status of each error of this crate, and a hint.

use crucible_model::{ExitStatus, Failure};

use crate::error::AgentError;

impl From<AgentError> for Failure {
    fn from(error: AgentError) -> Self {
        let (status, hint) = match &error {
            AgentError::Unknown { .. } => (
                ExitStatus::Usage,
                "`crucible agents` lists them; [agents.NAME] in your own configuration adds one.",
            ),
            AgentError::Setting { .. } => (
                ExitStatus::Usage,
                "docs/agents.md shows the settings of an agent.",
            ),
            AgentError::PromptTooLong { .. } => (
                ExitStatus::OverLimit,
                "Shorten the goal, or let the agent read its prompt from a file.",
            ),
            AgentError::Endpoint(_) => (ExitStatus::Refused, "Check that 127.0.0.1 can be used."),
            AgentError::File(_) => (ExitStatus::Refused, "Check the disk and its permissions."),
            AgentError::Recording { .. } => (
                ExitStatus::Refused,
                "Restore logs/agents of the run from a copy.",
            ),
        };
        Self::new(status, error.to_string()).hint(hint)
    }
}
