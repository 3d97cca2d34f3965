//! Why a call through a [`crate::ModelClient`] has no answer: a secret in the request, and a record that
//! cannot be written, besides the errors of its backend.

use std::fmt;

use crate::cassette::CassetteError;
use crate::error::LlmError;

/// The place of a secret in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretPlace {
    /// In this message, numbered from 0.
    Message(usize),
    /// In the name of the model.
    Model,
    /// In the metadata.
    Metadata,
}

impl fmt::Display for SecretPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(index) => write!(f, "message {index}"),
            Self::Model => f.write_str("the model's name"),
            Self::Metadata => f.write_str("the metadata"),
        }
    }
}

/// A request contains a secret and was not sent. This error does not contain the secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "nothing was sent: {place} of the request holds a secret (rule {rule}, line {line}); remove it from the \
     source it came from, or exclude that file"
)]
pub struct SecretInRequest {
    /// The rule that matched.
    pub rule: String,
    /// The place of the secret.
    pub place: SecretPlace,
    /// The line within that place, counted from 1.
    pub line: u64,
}

/// Why a call through a [`crate::ModelClient`] has no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The request contains a secret; nothing was sent.
    #[error(transparent)]
    Secret(#[from] SecretInRequest),
    /// The backend has no answer.
    #[error(transparent)]
    Llm(#[from] LlmError),
    /// The call was made, but its record cannot be written, so its answer is not used.
    #[error(transparent)]
    Record(#[from] CassetteError),
}
