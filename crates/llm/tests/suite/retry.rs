//! When calls are tried again, how often, and how much time that takes. The clock is tokio's, paused.

use std::time::Duration;

use crucible_llm::{Attempt, Fault, LlmError, Retried, RetryPolicy};
use tokio::time::Instant;

use crate::support::{Scripted, Shared, answer, ask, outage, unreachable};

fn quota(retry_after_seconds: Option<u64>) -> LlmError {
    LlmError::ProviderQuota(Box::new(Fault {
        status: Some(429),
        retry_after_seconds,
        ..*Fault::new("p", "m", "limited", "wait")
    }))
}

#[tokio::test(start_paused = true)]
async fn transient_faults_are_retried_after_one_second_and_two() {
    for error in [outage(500), outage(503), outage(529), unreachable()] {
        let backend = Scripted::new([Err(error.clone()), Err(error.clone()), Ok(answer("at last"))]);
        let begun = Instant::now();
        let attempted = Retried::new(Shared(backend.clone()), RetryPolicy::PHASES).attempt(ask("x")).await;
        assert_eq!(attempted.outcome.unwrap().raw_response, "at last");
        assert_eq!(
            attempted.attempts,
            [Attempt::Failed(error.clone()), Attempt::Failed(error), Attempt::Answered]
        );
        assert_eq!(begun.elapsed(), Duration::from_secs(3));
    }
}

#[tokio::test(start_paused = true)]
async fn two_retries_are_the_most() {
    let backend = Scripted::new((0..10).map(|_| Err(outage(500))));
    let attempted = Retried::new(Shared(backend.clone()), RetryPolicy::PHASES).attempt(ask("x")).await;
    assert_eq!(attempted.outcome.unwrap_err(), outage(500));
    assert_eq!((backend.calls(), attempted.attempts.len()), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn nothing_else_is_retried() {
    let fault = || Fault::new("p", "m", "w", "n");
    let second = Duration::from_secs(1);
    let timeout = || LlmError::Timeout {
        provider: "p".to_owned(),
        model: "m".to_owned(),
        duration: second,
        call: Duration::from_secs(20),
        cap: second,
    };
    for error in [
        LlmError::ProviderAuth(fault()),
        quota(Some(1)),
        LlmError::ProviderOutage(fault()),
        LlmError::Misconfiguration(fault()),
        LlmError::Unsupported(fault()),
        timeout(),
    ] {
        let backend = Scripted::new([Err(error.clone())]);
        let begun = Instant::now();
        let attempted = Retried::new(Shared(backend.clone()), RetryPolicy::PHASES).attempt(ask("x")).await;
        assert_eq!(attempted.outcome.unwrap_err(), error);
        assert_eq!((backend.calls(), begun.elapsed()), (1, Duration::ZERO));
    }
}

#[tokio::test(start_paused = true)]
async fn the_calls_own_time_bounds_attempts_and_pauses() {
    let backend = Scripted::new((0..10).map(|_| Err(outage(500))));
    let mut inv = ask("x");
    inv.timeout = Duration::from_millis(2500);
    let begun = Instant::now();
    let attempted = Retried::new(Shared(backend.clone()), RetryPolicy::PHASES).attempt(inv).await;
    // The second pause would end after the call's time.
    assert_eq!(attempted.attempts.len(), 2);
    assert_eq!(begun.elapsed(), Duration::from_secs(1));
    assert_eq!(*backend.timeouts.lock().unwrap(), [Duration::from_millis(2500), Duration::from_millis(1500)]);
}
