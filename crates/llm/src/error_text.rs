//! The text of [`LlmError`]. One message names the setting to change, which depends on the kind of provider.

use std::cmp::Ordering;
use std::fmt;
use std::time::Duration;

use crate::error::LlmError;
use crate::provider_kind::ProviderClass;
use crate::registry::provider;

impl std::error::Error for LlmError {}

impl fmt::Display for LlmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transport(fault)
            | Self::ProviderAuth(fault)
            | Self::ProviderQuota(fault)
            | Self::ProviderOutage(fault)
            | Self::Misconfiguration(fault)
            | Self::Unsupported(fault) => fault.fmt(f),
            Self::Timeout {
                provider,
                model,
                duration,
                call,
                cap,
            } => write!(
                f,
                "{provider} ({model}): no answer within {duration:?} (the call allows {call:?}, the provider at \
                 most {cap:?}); raise {}, ask for less, or choose a faster model",
                settings_of_time(provider, call, cap)
            ),
            Self::BudgetExceeded {
                resource,
                limit,
                attempted,
            } => write!(
                f,
                "LLM budget exhausted: this attempt would raise usage to {attempted} {resource}; the limit is \
                 {limit}; raise the budget or split the work"
            ),
        }
    }
}

/// The setting that ended a call: the smaller of the two, or both if they are equal.
fn settings_of_time(name: &str, call: &Duration, cap: &Duration) -> String {
    const CALL: &str = "llm.timeout_s";
    // Programs that serve a role are not providers and have their own time limits.
    const PROGRAMS: [(&str, &str); 2] = [
        ("api_agent", "dispatch.agent_timeout_s"),
        ("agent", "run.agent_timeout_s"),
    ];
    if let Some((_, setting)) = PROGRAMS.iter().find(|(program, _)| *program == name) {
        return (*setting).to_owned();
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
