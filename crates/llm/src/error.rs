//! Why a call has no answer.
//!
//! [`LlmError`] has eight variants. Each message names the provider, the model, the class
//! of failure and what to do next. No message contains text of a request, a response, a header or a key.
//! There is one deliberate exception: a request that is missing in a recording is shown as a diff to the
//! nearest one, because the user needs to compare them. The messages of [`LlmError`] are in `error_text.rs`.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What is wrong with an unusable answer. Nothing of the answer is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerFault {
    /// It contains no text.
    Empty,
    /// It exceeds the size limit; the rest was not read.
    TooLarge,
}

/// Why a request was refused before sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestFault {
    /// It contains a secret.
    Secret,
}

/// A failure at a provider, in our own words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The provider.
    pub provider: String,
    /// The requested model.
    pub model: String,
    /// What happened.
    pub what: String,
    /// What the user can do next.
    pub next: String,
    /// The HTTP status, if any.
    #[serde(default)]
    pub status: Option<u16>,
    /// The time that the provider asks to wait, in seconds.
    #[serde(default)]
    pub retry_after_seconds: Option<u64>,
    /// The end of a client program's standard error: redacted, at most 2 KiB.
    #[serde(default)]
    pub stderr: Option<String>,
    /// What is wrong with an unusable answer; absent if the provider itself failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerFault>,
    /// What is wrong with the request, if a backend that makes other calls refused to pass it on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestFault>,
}

impl Fault {
    /// Creates a fault without status or details, boxed as in the errors.
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

/// Why a backend has no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LlmError {
    /// The provider cannot be reached or the connection broke, according to the system or a client
    /// program; or the sandbox around that program failed.
    Transport(Box<Fault>),
    /// The provider refused the key: 401, 403.
    ProviderAuth(Box<Fault>),
    /// A rate limit or quota is exhausted: 429.
    ProviderQuota(Box<Fault>),
    /// The provider failed (5xx), broke off during the answer, or sent something that is not a valid
    /// answer.
    ProviderOutage(Box<Fault>),
    /// No answer within the time limit.
    Timeout {
        /// The provider.
        provider: String,
        /// The model.
        model: String,
        /// The limit that applied: the smaller of the next two.
        duration: Duration,
        /// The limit of the call.
        call: Duration,
        /// The cap for calls of this provider.
        cap: Duration,
    },
    /// The budget does not cover this attempt; nothing was sent.
    BudgetExceeded {
        /// The exhausted resource.
        resource: Resource,
        /// The limit.
        limit: u64,
        /// The usage that the attempt would have reached.
        attempted: u64,
    },
    /// A setting is missing or invalid.
    Misconfiguration(Box<Fault>),
    /// The provider does not support the request.
    Unsupported(Box<Fault>),
}

impl LlmError {
    /// Whether the same call may succeed shortly afterwards: after network errors and statuses 500 to
    /// 599.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Transport(_) => true,
            Self::ProviderOutage(fault) => fault
                .status
                .is_some_and(|status| (500..600).contains(&status)),
            Self::ProviderAuth(_)
            | Self::ProviderQuota(_)
            | Self::Timeout { .. }
            | Self::BudgetExceeded { .. }
            | Self::Misconfiguration(_)
            | Self::Unsupported(_) => false,
        }
    }

    /// The fault in this error, if any.
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

    /// The fault in this error, mutable.
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

    /// What is wrong with an unusable answer, if the provider did its work. The caller may refuse such an
    /// answer like any other invalid one.
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

    /// Whether a secret was found in the request.
    #[must_use]
    pub fn holds_secret(&self) -> bool {
        self.fault()
            .is_some_and(|fault| fault.request == Some(RequestFault::Secret))
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

    /// Whether the attempt reached a provider, or may have: it was not refused by the budget, a setting
    /// or the request itself.
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

    /// Whether the provider certainly did no work for this attempt, so that its tokens can be returned.
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
