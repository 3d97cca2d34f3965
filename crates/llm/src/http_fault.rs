//! Maps HTTP failures to errors, for every HTTP provider.
//!
//! Nothing here reads a response's body: a server's error text may quote the request or the key.

use std::collections::BTreeMap;
use std::time::Duration;

use crucible_host::http::HttpError;

use crate::error::{AnswerFault, Fault, LlmError};

/// The provider and model of a call, for errors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallTarget<'a> {
    pub(crate) provider: &'static str,
    pub(crate) model: &'a str,
}

/// The time limits of one call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallTime {
    /// The limit of the call.
    pub(crate) call: Duration,
    /// The cap for calls of this provider.
    pub(crate) cap: Duration,
}

impl CallTime {
    /// The limit that applies.
    pub(crate) fn effective(self) -> Duration {
        self.call.min(self.cap)
    }
}

/// Why an answer contains no text.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Silence {
    /// The token limit was reached before any text.
    TokenLimit,
    /// The model refuses to answer.
    Refusal,
    /// Unknown.
    Unexplained,
}

impl CallTarget<'_> {
    pub(crate) fn fault(self, what: impl Into<String>, next: impl Into<String>) -> Box<Fault> {
        Fault::new(self.provider, self.model, what, next)
    }

    pub(crate) fn timeout(self, time: CallTime) -> LlmError {
        LlmError::Timeout {
            provider: self.provider.to_owned(),
            model: self.model.to_owned(),
            duration: time.effective(),
            call: time.call,
            cap: time.cap,
        }
    }

    /// The error for an answer that cannot be parsed. It is not transient: the same request would reach
    /// the same server.
    pub(crate) fn unreadable(self, what: impl Into<String>, next: &'static str) -> LlmError {
        LlmError::ProviderOutage(self.fault(what, next))
    }

    /// The error for an unusable answer, caused by the model and not by the provider.
    pub(crate) fn unusable(
        self,
        answer: AnswerFault,
        what: impl Into<String>,
        next: &'static str,
    ) -> LlmError {
        LlmError::ProviderOutage(Box::new(Fault {
            answer: Some(answer),
            ..*self.fault(what, next)
        }))
    }

    /// The error for an answer without text.
    pub(crate) fn wordless(self, why: Silence) -> LlmError {
        let (what, next) = match why {
            Silence::TokenLimit => (
                "the token limit was reached before any text",
                "raise max_tokens",
            ),
            Silence::Refusal => (
                "the model refuses to answer",
                "rephrase the request or choose another model",
            ),
            Silence::Unexplained => (
                "the answer contains no text",
                "try again or choose another model",
            ),
        };
        self.unusable(AnswerFault::Empty, what, next)
    }

    pub(crate) fn on_http_error(self, error: &HttpError, time: CallTime) -> LlmError {
        match error {
            HttpError::Connect { .. } => LlmError::Transport(self.fault(
                error.to_string(),
                "check that the server runs and that base_url names it",
            )),
            HttpError::Broken { .. } => LlmError::Transport(self.fault(
                error.to_string(),
                "try again; if it persists, check the server's log",
            )),
            HttpError::Timeout { .. } => self.timeout(time),
            HttpError::TooLarge { .. } => self.unusable(
                AnswerFault::TooLarge,
                error.to_string(),
                "lower max_tokens, or check that base_url names a model server",
            ),
            HttpError::BadUrl { .. } => {
                LlmError::Misconfiguration(self.fault(error.to_string(), "correct base_url"))
            }
            HttpError::BadHeader { .. } => self.unsendable(error),
            HttpError::Setup { .. } => LlmError::Misconfiguration(self.fault(
                error.to_string(),
                "install TLS certificates on this machine",
            )),
        }
    }

    /// The error for a header that cannot be sent.
    pub(crate) fn unsendable(self, error: &HttpError) -> LlmError {
        LlmError::Misconfiguration(self.fault(
            error.to_string(),
            "remove line breaks and non-ASCII characters from the variable that holds the key, and from the \
            settings that are sent as headers",
        ))
    }

    /// The error for a status; every status except 200 is one.
    pub(crate) fn on_status(self, status: u16, headers: &BTreeMap<String, String>) -> LlmError {
        let fault = |what: &str, next: &str| {
            Box::new(Fault {
                status: Some(status),
                ..*self.fault(format!("{what} (HTTP {status})"), next)
            })
        };
        match status {
            401 | 403 => LlmError::ProviderAuth(fault(
                "the provider refuses the key",
                "check the variable that api_key_env names, and the key's permissions",
            )),
            402 => LlmError::ProviderQuota(fault(
                "the provider's credit is used up",
                "add credit at the provider, or choose a cheaper model",
            )),
            429 => {
                // A date instead of seconds would need a clock.
                let seconds: Option<u64> = headers
                    .get("retry-after")
                    .and_then(|value| value.trim().parse().ok());
                let wait = seconds
                    .filter(|seconds| *seconds > 0)
                    .map(|seconds| format!(" {}", span(seconds)));
                let what = "the provider's rate limit or quota is exhausted";
                let next = format!(
                    "wait{} and try again, or raise it",
                    wait.unwrap_or_default()
                );
                LlmError::ProviderQuota(Box::new(Fault {
                    retry_after_seconds: seconds,
                    ..*fault(what, &next)
                }))
            }
            300..=399 => LlmError::Misconfiguration(fault(
                "the server points to another address, and redirects are not followed",
                "set base_url to the final address",
            )),
            404 => LlmError::Misconfiguration(fault(
                "the server does not know this address or this model",
                "check the model's name, and that base_url omits the API path (/chat/completions, /messages); \
                a router also answers so when no server supports every hint",
            )),
            408 => LlmError::ProviderOutage(fault(
                "the provider gave up before the model had answered",
                "try again, ask for less, or choose a faster model",
            )),
            400..=499 => LlmError::Unsupported(fault(
                "the provider rejects this request",
                "check that the prompt fits into the model's context and that the model takes the hints given",
            )),
            500..=599 => LlmError::ProviderOutage(fault(
                "the provider fails",
                "try again later, or look at the provider's status page",
            )),
            _ => LlmError::ProviderOutage(fault(
                "the server answered with an unexpected status",
                "check that base_url names a model server",
            )),
        }
    }
}

/// A time rounded up to a convenient unit.
fn span(seconds: u64) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    match seconds {
        0..=120 => format!("{seconds} s"),
        121..=7_200 => format!("{} minutes", seconds.div_ceil(MINUTE)),
        7_201..=172_800 => format!("{} hours", seconds.div_ceil(HOUR)),
        172_801..=31_622_400 => format!("{} days", seconds.div_ceil(DAY)),
        _ => "more than a year".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ASKED: CallTarget<'static> = CallTarget {
        provider: "gateway",
        model: "m",
    };

    mod properties {
        use super::*;

        proptest! {
            /// Seed 002, property 7.
            #[test]
            fn every_status_has_its_variant(status in 100u16..1000) {
                let error = ASKED.on_status(status, &BTreeMap::new());
                let expected = match status {
                    401 | 403 => "provider_auth",
                    402 | 429 => "provider_quota",
                    408 => "provider_outage",
                    404 | 300..=399 => "misconfiguration",
                    400..=499 => "unsupported",
                    _ => "provider_outage",
                };
                prop_assert_eq!(error.class(), expected);
                prop_assert_eq!(error.is_transient(), (500..600).contains(&status));
                let text = error.to_string();
                prop_assert!(text.starts_with("gateway (m): ") && text.contains(&status.to_string()));
            }
        }
    }

    #[test]
    fn retry_after_in_seconds_is_parsed() {
        for (value, seconds) in [
            ("7", Some(7)),
            (" 31536000 ", Some(31_536_000)),
            ("soon", None),
            ("-1", None),
        ] {
            let headers = BTreeMap::from([("retry-after".to_owned(), value.to_owned())]);
            let LlmError::ProviderQuota(fault) = ASKED.on_status(429, &headers) else {
                panic!("429 is a quota")
            };
            assert_eq!(fault.retry_after_seconds, seconds);
        }
    }

    #[test]
    fn retry_delay_is_human_readable() {
        let wait_text = |value: &str| {
            let headers = BTreeMap::from([("retry-after".to_owned(), value.to_owned())]);
            ASKED.on_status(429, &headers).to_string()
        };
        for (value, wait) in [
            ("7", "wait 7 s and"),
            ("120", "wait 120 s and"),
            ("121", "wait 3 minutes and"),
            ("7201", "wait 3 hours and"),
            ("172801", "wait 3 days and"),
            ("31536000", "wait 365 days and"),
            ("18446744073709551615", "wait more than a year and"),
            ("0", "wait and"),
            ("18446744073709551616", "wait and"),
            ("Wed, 21 Oct 2099 07:28:00 GMT", "wait and"),
        ] {
            assert!(
                wait_text(value).contains(wait),
                "{value}: {}",
                wait_text(value)
            );
        }
    }

    #[test]
    fn a_timeout_names_both_times() {
        let time = CallTime {
            call: Duration::from_secs(900),
            cap: Duration::from_secs(300),
        };
        let text = ASKED.timeout(time).to_string();
        assert!(
            text.contains("within 300s") && text.contains("900s"),
            "{text}"
        );
    }

    #[test]
    fn timeout_names_the_setting_that_caused_it() {
        let text = |provider, call, cap| {
            let time = CallTime {
                call: Duration::from_secs(call),
                cap: Duration::from_secs(cap),
            };
            CallTarget {
                provider,
                model: "m",
            }
            .timeout(time)
            .to_string()
        };
        for (provider, call, cap, named) in [
            ("gateway", 1, 300, "raise llm.timeout_s, ask"),
            ("gateway", 900, 300, "raise llm.max_http_timeout_s, ask"),
            ("claude-cli", 900, 600, "raise llm.max_cli_timeout_s, ask"),
            (
                "openai",
                300,
                300,
                "raise llm.timeout_s and llm.max_http_timeout_s, ask",
            ),
            ("nobody", 900, 300, "raise the provider's limit, ask"),
        ] {
            let text = text(provider, call, cap);
            assert!(text.contains(named), "{text}");
        }
    }
}
