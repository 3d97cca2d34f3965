//! Why a debate has no outcome.
//!
//! No text here holds more of a reply than the name of a field and one wrong word, cleaned and short: the reply itself stands in the
//! transcript.

use crucible_llm::CallError;
use crucible_model::Digest;
use crucible_model::strict_json::StrictFault;

use super::phase::{DebateOwner, DebatePhase};

/// Why a debate has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum DebateError {
    /// A model has no answer.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A model answered, and the answer is not what was asked for. Nothing is guessed from it.
    #[error(
        "the {phase} of {owner} is invalid: {why}; if the session was recorded, `crucible crawl history \
        SESSION` shows the reply (digest {digest})"
    )]
    Reply {
        /// Who answered.
        owner: DebateOwner,
        /// What was asked for.
        phase: DebatePhase,
        /// The digest of the reply as it came.
        digest: Digest,
        /// What is wrong with it.
        why: ReplyFault,
    },
    /// A model's answer holds what looks like a secret, in plain sight or behind escapes. The answer is not used, and the record
    /// holds its digest alone.
    #[error(
        "the {phase} of {owner} holds what looks like a secret, so it is not used; the model may quote one \
        from the repository: check its build files and README, or try again"
    )]
    Secret {
        /// Who answered.
        owner: DebateOwner,
        /// What was asked for.
        phase: DebatePhase,
    },
    /// The record could not be kept.
    #[error("the debate was stopped because its record cannot be written: {why}")]
    Transcript {
        /// Why not.
        why: String,
    },
    /// A plan has no JSON form. Never in practice: it is made of strings.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// What is wrong with a reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplyFault {
    /// The provider cut it off: a failure of the provider.
    #[error(
        "it was cut off by its limit of {budget} tokens or a provider filter; choose a less verbose model"
    )]
    CutShort {
        /// Tokens that it may take.
        budget: u64,
    },
    /// The provider did not hold it to its budget: a failure of the provider.
    #[error("it used {tokens} tokens, but its limit is {budget}; choose a provider that enforces token limits")]
    OverBudget {
        /// Tokens that it took.
        tokens: u64,
        /// Tokens that it may take.
        budget: u64,
    },
    /// It is not the one JSON object that was asked for. Of another shape: a failure of the schema; no JSON, or far longer than its
    /// budget can make it: a failure of the provider.
    #[error("{0}; choose a stronger model, or a provider that supports JSON Schema")]
    Strict(StrictFault),
}

impl From<StrictFault> for ReplyFault {
    fn from(fault: StrictFault) -> Self {
        Self::Strict(fault)
    }
}
