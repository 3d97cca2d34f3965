//! Why a call has no answer.
//!
//! [`LlmError`] has the eight variants of seed 002. Each text names the provider, the model, what class of
//! thing went wrong and what to do next; none is made from a request, a response, a header or a key, so none can
//! hold one. One exception is meant: a request that a recording does not hold is shown against the nearest one that it
//! holds, for that is what its user has to compare. [`CallError`] adds what the layers around a backend can refuse: a secret in the request, a record
//! that cannot be written.

use std::cmp::Ordering;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cassette::CassetteError;
use crate::registry::{ProviderClass, provider};

/// What is wrong with an answer that came and cannot be taken: the model spoke, and said nothing or far too much. Nothing of it
/// is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerFault {
    /// It holds no text.
    Empty,
    /// It is longer than what is read of an answer; the rest was never read.
    TooLarge,
}

/// Why nothing was sent, where what was to be sent is the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestFault {
    /// It holds a secret.
    Secret,
}

/// What happened at a provider, in our own words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The provider that was asked.
    pub provider: String,
    /// The model that was asked for.
    pub model: String,
    /// What happened.
    pub what: String,
    /// What the user can do next.
    pub next: String,
    /// The HTTP status, where there was one.
    #[serde(default)]
    pub status: Option<u16>,
    /// How long the provider asks to wait, in seconds, where it does.
    #[serde(default)]
    pub retry_after_seconds: Option<u64>,
    /// The end of what a client program wrote to its standard error: redacted, at most 2 KiB.
    #[serde(default)]
    pub stderr: Option<String>,
    /// What is wrong with the answer, where one came that cannot be taken; absent where the provider itself failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerFault>,
    /// What is wrong with the request, where a backend that asks others refused to hand it on; absent where it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestFault>,
}

impl Fault {
    /// A fault without status or further detail, boxed as the errors hold it.
    pub fn new(
        provider: impl Into<String>,
        model: impl Into<String>,
        what: impl Into<String>,
        next: impl Into<String>,
    ) -> Box<Self> {
        Box::new(Self {
            provider: provider.into(),
            model: model.into(),
            what: what.into(),
            next: next.into(),
            status: None,
            retry_after_seconds: None,
            stderr: None,
            answer: None,
            request: None,
        })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.provider)?;
        if !self.model.is_empty() {
            write!(f, " ({})", self.model)?;
        }
        write!(f, ": {}; {}", self.what, self.next)?;
        if let Some(stderr) = self.stderr.as_deref().filter(|text| !text.is_empty()) {
            write!(f, "\nits standard error ended with:\n{stderr}")?;
        }
        Ok(())
    }
}

/// What a budget counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Attempts to call a model.
    Calls,
    /// Tokens, of requests and answers together.
    Tokens,
    /// Millionths of a US dollar, estimated from configured prices.
    MicroDollars,
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Calls => "calls",
            Self::Tokens => "tokens",
            Self::MicroDollars => "millionths of a dollar",
        })
    }
}

/// Why a backend has no answer (seed 002, *LlmError*).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LlmError {
    /// The provider cannot be reached or the connection broke, as the system or a client program says; or the sandbox
    /// failed around that program.
    #[error("{0}")]
    Transport(Box<Fault>),
    /// The provider refuses the key: 401, 403.
    #[error("{0}")]
    ProviderAuth(Box<Fault>),
    /// The provider limits the rate or the quota is used up: 429.
    #[error("{0}")]
    ProviderQuota(Box<Fault>),
    /// The provider fails (5xx), breaks off while the model answers, or answers with something that cannot be read as an
    /// answer.
    #[error("{0}")]
    ProviderOutage(Box<Fault>),
    /// No answer in time.
    #[error(
        "{provider} ({model}): no answer within {duration:?} (the call allows {call:?}, the provider at most \
         {cap:?}); raise {}, ask for less, or choose a faster model", settings_of_time(.provider, .call, .cap)
    )]
    Timeout {
        /// Who was asked.
        provider: String,
        /// Which model.
        model: String,
        /// The time that was given: the smaller of the next two.
        duration: Duration,
        /// The time the call allowed.
        call: Duration,
        /// The most any call of this provider gets.
        cap: Duration,
    },
    /// The budget does not carry this attempt; nothing was sent.
    #[error(
        "LLM budget exhausted: this attempt would raise usage to {attempted} {resource}; the limit is {limit}; \
         raise the budget or split the work"
    )]
    BudgetExceeded {
        /// What ran out.
        resource: Resource,
        /// How much there may be.
        limit: u64,
        /// How much it would have been.
        attempted: u64,
    },
    /// The settings cannot work.
    #[error("{0}")]
    Misconfiguration(Box<Fault>),
    /// The provider cannot do what was asked.
    #[error("{0}")]
    Unsupported(Box<Fault>),
}

/// The setting that ended a call: the smaller of the two, or both where they are the same.
fn settings_of_time(name: &str, call: &Duration, cap: &Duration) -> String {
    const CALL: &str = "llm.timeout_s";
    // A command that serves a role is no provider: it has a time of its own.
    const COMMAND: (&str, &str) = ("api_agent", "dispatch.agent_timeout_s");
    if name == COMMAND.0 {
        return COMMAND.1.to_owned();
    }
    let most = match provider(name).map(|kind| kind.class()) {
        Ok(ProviderClass::Program { .. }) => "llm.max_cli_timeout_s",
        Ok(ProviderClass::Http { .. }) => "llm.max_http_timeout_s",
        Ok(ProviderClass::Recording) | Err(_) => "the provider's limit",
    };
    match call.cmp(cap) {
        Ordering::Less => CALL.to_owned(),
        Ordering::Equal => format!("{CALL} and {most}"),
        Ordering::Greater => most.to_owned(),
    }
}

impl LlmError {
    /// Whether the same call may well succeed a moment later: the network, or a status of 500 to 599.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Transport(_) => true,
            Self::ProviderOutage(fault) => fault.status.is_some_and(|status| (500..600).contains(&status)),
            Self::ProviderAuth(_)
            | Self::ProviderQuota(_)
            | Self::Timeout { .. }
            | Self::BudgetExceeded { .. }
            | Self::Misconfiguration(_)
            | Self::Unsupported(_) => false,
        }
    }

    /// What happened at the provider, where that is what the error holds.
    #[must_use]
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Transport(fault)
            | Self::ProviderAuth(fault)
            | Self::ProviderQuota(fault)
            | Self::ProviderOutage(fault)
            | Self::Misconfiguration(fault)
            | Self::Unsupported(fault) => Some(fault),
            Self::Timeout { .. } | Self::BudgetExceeded { .. } => None,
        }
    }

    /// The same, to be changed.
    pub(crate) fn fault_mut(&mut self) -> Option<&mut Fault> {
        match self {
            Self::Transport(fault)
            | Self::ProviderAuth(fault)
            | Self::ProviderQuota(fault)
            | Self::ProviderOutage(fault)
            | Self::Misconfiguration(fault)
            | Self::Unsupported(fault) => Some(fault),
            Self::Timeout { .. } | Self::BudgetExceeded { .. } => None,
        }
    }

    /// What is wrong with the answer, where the provider did its work and the model's answer cannot be taken. Who asked may
    /// refuse such an answer like any other bad one.
    #[must_use]
    pub fn answer_fault(&self) -> Option<AnswerFault> {
        match self {
            Self::ProviderOutage(fault) => fault.answer,
            Self::Transport(_)
            | Self::ProviderAuth(_)
            | Self::ProviderQuota(_)
            | Self::Timeout { .. }
            | Self::BudgetExceeded { .. }
            | Self::Misconfiguration(_)
            | Self::Unsupported(_) => None,
        }
    }

    /// Whether a secret was found in what was to be sent.
    #[must_use]
    pub fn holds_secret(&self) -> bool {
        self.fault().is_some_and(|fault| fault.request == Some(RequestFault::Secret))
    }

    /// The class of the error as one word, for records and statistics.
    #[must_use]
    pub const fn class(&self) -> &'static str {
        match self {
            Self::Transport(_) => "transport",
            Self::ProviderAuth(_) => "provider_auth",
            Self::ProviderQuota(_) => "provider_quota",
            Self::ProviderOutage(_) => "provider_outage",
            Self::Timeout { .. } => "timeout",
            Self::BudgetExceeded { .. } => "budget_exceeded",
            Self::Misconfiguration(_) => "misconfiguration",
            Self::Unsupported(_) => "unsupported",
        }
    }

    /// Whether the attempt reached a provider, or may have: the budget did not refuse it, and neither did a setting or the request
    /// itself before anything was sent.
    #[must_use]
    pub fn was_sent(&self) -> bool {
        match self {
            Self::BudgetExceeded { .. } => false,
            Self::Misconfiguration(fault) | Self::Unsupported(fault) => fault.status.is_some(),
            Self::Transport(_)
            | Self::ProviderAuth(_)
            | Self::ProviderQuota(_)
            | Self::ProviderOutage(_)
            | Self::Timeout { .. } => true,
        }
    }

    /// Whether the provider certainly did no work for this attempt, so that its tokens can be given back.
    #[must_use]
    pub(crate) fn did_no_work(&self) -> bool {
        matches!(
            self,
            Self::ProviderAuth(_)
                | Self::ProviderQuota(_)
                | Self::Misconfiguration(_)
                | Self::Unsupported(_)
                | Self::BudgetExceeded { .. }
        )
    }
}

/// Where in a request a secret stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretPlace {
    /// In this message, counted from 0.
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

/// A request holds a secret and was not sent. The value itself is nowhere in here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "nothing was sent: {place} of the request holds a secret (rule {rule}, line {line}); remove it from the \
     source it came from, or exclude that file"
)]
pub struct SecretInRequest {
    /// The rule that found it.
    pub rule: String,
    /// Where it stands.
    pub place: SecretPlace,
    /// The line within that place, counted from 1.
    pub line: u64,
}

/// Why a call through a [`crate::ModelClient`] has no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The request holds a secret; nothing was sent.
    #[error(transparent)]
    Secret(#[from] SecretInRequest),
    /// The backend has no answer.
    #[error(transparent)]
    Llm(#[from] LlmError),
    /// The call was made, but its record cannot be written; so its answer is not used.
    #[error(transparent)]
    Record(#[from] CassetteError),
}
