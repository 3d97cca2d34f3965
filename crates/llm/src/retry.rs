//! Retries failed calls if that can help and time is left.
//!
//! The caller chooses the policy: phases retry transient errors at most twice, after
//! one second and two. The council retries three times, and also waits for rate limits. All attempts and
//! pauses share the call's time limit. The attempts are returned with the outcome, so that the record
//! shows each of them.
//!
//! Calls that share a budget can also share a [`RetryAllowance`], so that the retries of one call do not
//! use up the first attempts of others.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use backon::{BackoffBuilder, ExponentialBuilder};
use tokio::time::Instant;

use crate::backend::LlmBackend;
use crate::budget::Limit;
use crate::cassette::Attempt;
use crate::error::LlmError;
use crate::invocation::{LlmInvocation, LlmResult};

/// How often and when to retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The most attempts after the first.
    pub max_retries: u32,
    /// The pause before the first retry; it doubles for each later one.
    pub first_pause: Duration,
    /// How to handle a rate limit (429).
    pub on_rate_limit: OnRateLimit,
}

/// How to handle a rate limit (429).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnRateLimit {
    /// Report it at once.
    Report,
    /// Retry after the time that the provider asks for (`Retry-After`), or else after the usual pause. If
    /// that exceeds the call's remaining time, report it at once.
    Wait,
}

impl RetryPolicy {
    /// For phases and roles: two retries, after 1 s and 2 s; 429 is reported.
    pub const PHASES: Self = Self {
        max_retries: 2,
        first_pause: Duration::from_secs(1),
        on_rate_limit: OnRateLimit::Report,
    };

    /// For the council, whose concurrent seats hit rate limits: three retries, after 1 s, 2 s and 4 s;
    /// after a 429 as long as the provider asks.
    pub const COUNCIL: Self = Self {
        max_retries: 3,
        first_pause: Duration::from_secs(1),
        on_rate_limit: OnRateLimit::Wait,
    };

    /// One attempt.
    pub const NEVER: Self = Self {
        max_retries: 0,
        first_pause: Duration::ZERO,
        on_rate_limit: OnRateLimit::Report,
    };

    fn pauses(&self) -> impl Iterator<Item = Duration> {
        let retries = usize::try_from(self.max_retries).unwrap_or(usize::MAX);
        ExponentialBuilder::new()
            .with_min_delay(self.first_pause)
            .with_max_times(retries)
            .build()
    }

    /// The pause after this error, given the usual one; none if a retry makes no sense.
    fn pause_after(&self, error: &LlmError, usual: Duration) -> Option<Duration> {
        if error.is_transient() {
            return Some(usual);
        }
        match (self.on_rate_limit, error) {
            // An exhausted quota (402) does not come back by waiting.
            (OnRateLimit::Wait, LlmError::ProviderQuota(fault)) if fault.status == Some(429) => {
                // Retrying without a pause would overload the server.
                let retry_after = fault.retry_after_seconds.filter(|seconds| *seconds > 0);
                Some(retry_after.map_or(usual, Duration::from_secs))
            }
            (OnRateLimit::Wait | OnRateLimit::Report, _) => None,
        }
    }
}

/// The number of retries that several calls share. Copies share the same counter.
#[derive(Debug, Clone)]
pub struct RetryAllowance(Arc<AtomicU64>);

impl RetryAllowance {
    /// The value for no limit; it is never used up.
    const UNLIMITED: u64 = u64::MAX;

    /// Creates an allowance without a limit.
    #[must_use]
    pub fn unlimited() -> Self {
        Self(Arc::new(AtomicU64::new(Self::UNLIMITED)))
    }

    /// Sets the number of remaining retries.
    pub fn set(&self, retries: Limit) {
        let left = match retries {
            Limit::Unlimited => Self::UNLIMITED,
            Limit::At(left) => left,
        };
        self.0.store(left, Ordering::SeqCst);
    }

    /// Takes one retry, if any is left. Callers may also use it for repeated calls for other reasons.
    #[must_use]
    pub fn take(&self) -> bool {
        let less = |left| match left {
            Self::UNLIMITED => Some(left),
            left => left.checked_sub(1),
        };
        self.0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less)
            .is_ok()
    }
}

impl Default for RetryAllowance {
    /// No limit.
    fn default() -> Self {
        Self::unlimited()
    }
}

/// A call with its attempts.
#[derive(Debug)]
pub struct Attempted {
    /// The outcome of the last attempt.
    pub outcome: Result<LlmResult, LlmError>,
    /// All attempts in order, including the last.
    pub attempts: Vec<Attempt>,
}

/// Retries by a policy.
pub struct Retried<B> {
    inner: B,
    policy: RetryPolicy,
    allowance: RetryAllowance,
}

impl<B: LlmBackend> Retried<B> {
    /// Wraps `inner` with `policy`.
    pub fn new(inner: B, policy: RetryPolicy) -> Self {
        Self {
            inner,
            policy,
            allowance: RetryAllowance::unlimited(),
        }
    }

    /// Limits the retries by an allowance. If none is left, a failed attempt ends its call.
    #[must_use]
    pub fn within(self, allowance: RetryAllowance) -> Self {
        Self { allowance, ..self }
    }

    /// Makes a call with as many attempts as the policy, the allowance and the time limit allow.
    pub async fn attempt(&self, mut inv: LlmInvocation) -> Attempted {
        let begun = Instant::now();
        let allowed = inv.timeout;
        let mut pauses = self.policy.pauses();
        let mut attempts = Vec::new();
        loop {
            // A request can be hundreds of kilobytes: copy it only if another attempt is possible.
            let next_try = pauses.next().map(|pause| (pause, inv.clone()));
            let left = allowed.saturating_sub(begun.elapsed());
            let outcome = self
                .inner
                .invoke(LlmInvocation {
                    timeout: left,
                    ..inv
                })
                .await;
            attempts.push(match &outcome {
                Ok(_) => Attempt::Answered,
                Err(error) => Attempt::Failed(error.clone()),
            });
            let error = match outcome {
                Ok(result) => {
                    return Attempted {
                        outcome: Ok(result),
                        attempts,
                    };
                }
                Err(error) => error,
            };
            let left = allowed.saturating_sub(begun.elapsed());
            let next_try = next_try
                .and_then(|(usual, same)| Some((self.policy.pause_after(&error, usual)?, same)));
            match next_try {
                Some((pause, same)) if pause < left && self.allowance.take() => {
                    tokio::time::sleep(pause).await;
                    inv = same;
                }
                Some(_) | None => {
                    return Attempted {
                        outcome: Err(with_whole_time(error, allowed)),
                        attempts,
                    };
                }
            }
        }
    }
}

#[async_trait]
impl<B: LlmBackend> LlmBackend for Retried<B> {
    async fn invoke(&self, inv: LlmInvocation) -> Result<LlmResult, LlmError> {
        self.attempt(inv).await.outcome
    }
}

/// A late attempt had only the remaining time; its error names the limit of the whole call.
fn with_whole_time(mut error: LlmError, allowed: Duration) -> LlmError {
    if let LlmError::Timeout {
        call,
        duration,
        cap,
        ..
    } = &mut error
    {
        *call = allowed;
        *duration = allowed.min(*cap);
    }
    error
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    use crucible_model::PromptBuilder;

    use super::*;
    use crate::error::Fault;
    use crate::invocation::Message;

    /// Fails each time, and records the address of the request's text.
    #[derive(Default)]
    struct Places(Mutex<Vec<usize>>);

    #[async_trait]
    impl LlmBackend for Places {
        async fn invoke(&self, inv: LlmInvocation) -> Result<LlmResult, LlmError> {
            self.0
                .lock()
                .unwrap()
                .push(inv.messages[0].content.as_str().as_ptr() as usize);
            let fault = Fault {
                status: Some(503),
                ..*Fault::new("p", "m", "down", "wait")
            };
            Err(LlmError::ProviderOutage(Box::new(fault)))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn last_attempt_moves_the_request() {
        for (policy, attempts) in [(RetryPolicy::NEVER, 1), (RetryPolicy::PHASES, 3)] {
            let inv = LlmInvocation {
                spec_id: String::new(),
                phase_id: String::new(),
                model: "m".to_owned(),
                timeout: Duration::from_secs(60),
                messages: vec![Message::user(
                    PromptBuilder::new().fixed_text("question").build(),
                )],
                metadata: BTreeMap::new(),
            };
            let original = inv.messages[0].content.as_str().as_ptr() as usize;
            let retried = Retried::new(Places::default(), policy);
            assert!(retried.attempt(inv).await.outcome.is_err());
            let places = retried.inner.0.into_inner().unwrap();
            assert_eq!(places.len(), attempts);
            if policy == RetryPolicy::NEVER {
                assert_eq!(places, [original]);
            }
        }
    }
}
