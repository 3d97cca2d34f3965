//! Why an agent cannot be used.

use crucible_host::fs::FsError;

/// Why an agent cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// There is no agent of this name.
    #[error("unknown agent {name:?}; use one of {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// A setting of an agent is not allowed.
    #[error("agents.{name}.{field}: {why}")]
    Setting {
        /// The agent.
        name: String,
        /// The setting.
        field: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// The prompt is too long for an argument.
    #[error(
        "the prompt has {bytes} bytes, and the agent {name} takes it as an argument of at most {limit}"
    )]
    PromptTooLong {
        /// The agent.
        name: String,
        /// Bytes of the prompt.
        bytes: usize,
        /// Bytes of an argument.
        limit: usize,
    },
    /// The endpoint cannot be opened.
    #[error("cannot open the model endpoint: {0}")]
    Endpoint(#[from] std::io::Error),
    /// A file of a session cannot be read or written.
    #[error(transparent)]
    File(#[from] FsError),
    /// An earlier recording of exchanges cannot be used.
    #[error("the recorded exchanges cannot be used: {why}")]
    Recording {
        /// What is wrong with them.
        why: String,
    },
}
