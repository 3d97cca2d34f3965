//! Why a use case cannot start with the settings and arguments that it was given.

/// A setting, an argument or a file that it names cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SetupError {
    /// The kind of fault.
    pub fault: SetupFault,
    /// What is wrong, with the name of the setting or argument.
    pub message: String,
    /// What the user can do, one sentence or command each.
    pub hints: Vec<String>,
}

/// The kinds of faults of a [`SetupError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetupFault {
    /// A value is missing or not allowed.
    Invalid,
    /// A value looks like a secret, and would be recorded.
    Secret,
    /// A value is larger than its limit.
    TooLarge,
    /// A named document does not match its schema.
    Malformed,
    /// The connection to model providers cannot be prepared.
    Connection,
}

impl SetupError {
    /// Creates an error without hints.
    #[must_use]
    pub fn new(fault: SetupFault, message: impl Into<String>) -> Self {
        Self {
            fault,
            message: message.into(),
            hints: Vec::new(),
        }
    }

    /// Creates the error of a value that is missing or not allowed.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(SetupFault::Invalid, message)
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}
