//! The errors of a debate.
//!
//! Invariant: an error quotes at most a field name and one short, sanitised word of a reply; the reply
//! itself is in the transcript.

use crucible_llm::CallError;
use crucible_model::Digest;
use crucible_model::strict_json::StrictFault;

use super::phase::{DebatePhase, DebateRole};

/// Why a debate has no result.
#[derive(Debug, thiserror::Error)]
pub enum DebateError {
    /// A model call failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A model's answer is invalid. Nothing of it is used.
    #[error(
        "the {phase} of {owner} is invalid: {why}; if the session was recorded, `crucible crawl history \
        SESSION` shows the reply (digest {digest})"
    )]
    Reply {
        /// The owner that answered.
        owner: DebateRole,
        /// The phase of the refused reply.
        phase: DebatePhase,
        /// The digest of the original reply.
        digest: Digest,
        /// What is wrong with it.
        why: ReplyFault,
    },
    /// A model's answer appears to contain a secret, plain or escaped. The answer is not used, and the
    /// record contains only its digest.
    #[error(
        "the {phase} of {owner} holds what looks like a secret, so it is not used; the model may quote one \
        from the repository: check its build files and README, or try again"
    )]
    Secret {
        /// The owner that answered.
        owner: DebateRole,
        /// The phase whose message was not sent.
        phase: DebatePhase,
    },
    /// The record cannot be written.
    #[error("the debate was stopped because its record cannot be written: {why}")]
    Transcript {
        /// The reason.
        why: String,
    },
    /// A plan has no JSON form. This never happens, because it consists of strings.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// What is wrong with a reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplyFault {
    /// It was cut off: a failure of the provider.
    #[error(
        "it was cut off by its limit of {budget} tokens or a provider filter; choose a less verbose model"
    )]
    TruncatedAnswer {
        /// Its token limit.
        budget: u64,
    },
    /// It exceeded its token limit: a failure of the provider.
    #[error(
        "it used {tokens} tokens, but its limit is {budget}; choose a provider that enforces token limits"
    )]
    OverBudget {
        /// The tokens that it used.
        tokens: u64,
        /// Its token limit.
        budget: u64,
    },
    /// It is not the requested JSON object. Another shape is a failure of the schema; invalid JSON, or a
    /// text far beyond its limit, is a failure of the provider.
    #[error("{0}; choose a stronger model, or a provider that supports JSON Schema")]
    Strict(StrictFault),
}

impl From<StrictFault> for ReplyFault {
    fn from(fault: StrictFault) -> Self {
        Self::Strict(fault)
    }
}
