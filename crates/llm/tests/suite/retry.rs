//! Retries: when, how often, and how long they take, with tokio's paused clock.

use std::time::Duration;

use crucible_llm::{
    Attempt, BudgetLimits, CallBudget, CallError, ClientOptions, Fault, Limit, LlmError,
    ModelClient, Recording, Retried, RetryAllowance, RetryPolicy,
};
use crucible_testkit::{FakeApi, Reply, RetryAfter};
use tokio::time::Instant;

use crate::support::{
    NO_LIMITS, Scripted, Shared, answer, ask, client, gateway, outage, unreachable,
};

fn quota(retry_after_seconds: Option<u64>) -> LlmError {
    LlmError::ProviderQuota(Box::new(Fault {
        status: Some(429),
        retry_after_seconds,
        ..*Fault::new("p", "m", "limited", "wait")
    }))
}

#[tokio::test(start_paused = true)]
async fn transient_faults_retry_after_1_and_2_seconds() {
    for error in [outage(500), outage(503), outage(529), unreachable()] {
        let backend = Scripted::new([
            Err(error.clone()),
            Err(error.clone()),
            Ok(answer("at last")),
        ]);
        let begun = Instant::now();
        let attempted = Retried::new(Shared(backend.clone()), RetryPolicy::PHASES)
            .attempt(ask("x"))
            .await;
        assert_eq!(attempted.outcome.unwrap().raw_response, "at last");
        assert_eq!(
            attempted.attempts,
            [
                Attempt::Failed(error.clone()),
                Attempt::Failed(error),
                Attempt::Answered
            ]
        );
        assert_eq!(begun.elapsed(), Duration::from_secs(3));
    }
}

#[tokio::test(start_paused = true)]
async fn two_retries_are_the_most() {
    let backend = Scripted::new((0..10).map(|_| Err(outage(500))));
    let attempted = Retried::new(Shared(backend.clone()), RetryPolicy::PHASES)
        .attempt(ask("x"))
        .await;
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
        let attempted = Retried::new(Shared(backend.clone()), RetryPolicy::PHASES)
            .attempt(ask("x"))
            .await;
        assert_eq!(attempted.outcome.unwrap_err(), error);
        assert_eq!((backend.calls(), begun.elapsed()), (1, Duration::ZERO));
    }
}

#[tokio::test(start_paused = true)]
async fn call_timeout_bounds_attempts_and_pauses() {
    let backend = Scripted::new((0..10).map(|_| Err(outage(500))));
    let mut inv = ask("x");
    inv.timeout = Duration::from_millis(2500);
    let begun = Instant::now();
    let attempted = Retried::new(Shared(backend.clone()), RetryPolicy::PHASES)
        .attempt(inv)
        .await;
    // The second pause would exceed the call's time.
    assert_eq!(attempted.attempts.len(), 2);
    assert_eq!(begun.elapsed(), Duration::from_secs(1));
    assert_eq!(
        *backend.timeouts.lock().unwrap(),
        [Duration::from_millis(2500), Duration::from_millis(1500)]
    );
}

/// The result of the council's policy for these outcomes and this time limit, and the elapsed time.
async fn council(
    outcomes: impl IntoIterator<Item = LlmError>,
    seconds: u64,
) -> (Result<String, LlmError>, usize, Duration) {
    let backend = Scripted::new(outcomes.into_iter().map(Err));
    let begun = Instant::now();
    let inv = crucible_llm::LlmInvocation {
        timeout: Duration::from_secs(seconds),
        ..ask("x")
    };
    let attempted = Retried::new(Shared(backend), RetryPolicy::COUNCIL)
        .attempt(inv)
        .await;
    (
        attempted.outcome.map(|answer| answer.raw_response),
        attempted.attempts.len(),
        begun.elapsed(),
    )
}

#[tokio::test(start_paused = true)]
async fn council_policy_retries_three_times() {
    for error in [outage(500), outage(503), unreachable(), quota(None)] {
        let failing = |times: usize| vec![error.clone(); times];
        assert_eq!(
            council(failing(3), 60).await,
            (Ok("more".to_owned()), 4, Duration::from_secs(7))
        );
        assert_eq!(
            council(failing(4), 60).await,
            (Err(error.clone()), 4, Duration::from_secs(7))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn council_waits_as_long_as_provider_asks() {
    let waits = |seconds| council([quota(seconds)], 60);
    assert_eq!(
        waits(Some(1)).await,
        (Ok("more".to_owned()), 2, Duration::from_secs(1))
    );
    assert_eq!(
        waits(Some(17)).await,
        (Ok("more".to_owned()), 2, Duration::from_secs(17))
    );
    // A wait of zero would only overload the server.
    assert_eq!(
        waits(Some(0)).await,
        (Ok("more".to_owned()), 2, Duration::from_secs(1))
    );
    // Each time again, and the usual pauses keep growing.
    let mixed = [quota(Some(5)), outage(503), quota(Some(1))];
    assert_eq!(
        council(mixed, 60).await,
        (Ok("more".to_owned()), 4, Duration::from_secs(5 + 2 + 1))
    );
}

#[tokio::test(start_paused = true)]
async fn too_long_rate_limit_wait_is_reported() {
    for seconds in [20, 21, 3600, u64::MAX] {
        let error = quota(Some(seconds));
        assert_eq!(
            council([error.clone()], 20).await,
            (Err(error), 1, Duration::ZERO)
        );
    }
    // The time of an earlier wait is used up.
    let late = quota(Some(12));
    assert_eq!(
        council([late.clone(), late.clone()], 20).await,
        (Err(late), 2, Duration::from_secs(12))
    );
}

#[tokio::test(start_paused = true)]
async fn the_council_retries_no_other_refusal() {
    let fault = |status| {
        Box::new(Fault {
            status: Some(status),
            ..*Fault::new("p", "m", "w", "n")
        })
    };
    for error in [
        // An exhausted credit does not come back by waiting.
        LlmError::ProviderQuota(fault(402)),
        LlmError::ProviderQuota(Fault::new("p", "m", "w", "n")),
        LlmError::ProviderAuth(fault(401)),
        LlmError::Unsupported(fault(400)),
        LlmError::Misconfiguration(fault(404)),
        LlmError::ProviderOutage(fault(408)),
    ] {
        assert_eq!(
            council([error.clone()], 60).await,
            (Err(error), 1, Duration::ZERO)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn shared_allowance_limits_retries() {
    let backend = Scripted::new((0..20).map(|_| Err(outage(503))));
    let retries = RetryAllowance::unlimited();
    let options = ClientOptions {
        retry: RetryPolicy::COUNCIL,
        retries: retries.clone(),
        ..ClientOptions::new(CallBudget::new(NO_LIMITS))
    };
    let client = ModelClient::new(backend.backend(), options);
    let asked = async || {
        let before = backend.calls();
        // The provider's error, not one about exhausted retries.
        let CallError::Llm(error) = client.call(ask("x")).await.unwrap_err() else {
            panic!()
        };
        assert_eq!(error, outage(503));
        backend.calls() - before
    };
    assert_eq!(asked().await, 4, "as the policy has it");
    retries.set(Limit::At(4));
    assert_eq!([asked().await, asked().await, asked().await], [4, 2, 1]);
    retries.set(Limit::At(0));
    let begun = Instant::now();
    assert_eq!(
        (asked().await, begun.elapsed()),
        (1, Duration::ZERO),
        "nobody waits for nothing"
    );
    retries.set(Limit::Unlimited);
    assert_eq!(asked().await, 4);
    assert!(retries.take() && RetryAllowance::default().take());
}

#[tokio::test(start_paused = true)]
async fn only_sent_attempts_are_counted() {
    let fault = |status| {
        Box::new(Fault {
            status,
            ..*Fault::new("p", "m", "w", "n")
        })
    };
    let limited = CallBudget::new(BudgetLimits::calls(2));
    for (script, budget, sent) in [
        (vec![], CallBudget::new(NO_LIMITS), 1),
        (
            vec![outage(503), outage(503)],
            CallBudget::new(NO_LIMITS),
            3,
        ),
        (vec![outage(503); 9], CallBudget::new(NO_LIMITS), 4),
        (
            vec![LlmError::Misconfiguration(fault(Some(404)))],
            CallBudget::new(NO_LIMITS),
            1,
        ),
        (
            vec![LlmError::Misconfiguration(fault(None))],
            CallBudget::new(NO_LIMITS),
            0,
        ),
        (
            vec![LlmError::Unsupported(fault(None))],
            CallBudget::new(NO_LIMITS),
            0,
        ),
        (vec![outage(503); 9], limited.clone(), 2),
        (vec![], limited, 0),
    ] {
        let backend = Scripted::new(script.clone().into_iter().map(Err));
        let options = ClientOptions {
            retry: RetryPolicy::COUNCIL,
            ..ClientOptions::new(budget)
        };
        let (_, counted) = ModelClient::new(backend.backend(), options)
            .call_counted(ask("x"))
            .await;
        assert_eq!(counted, sent, "{script:?}");
    }
}

#[tokio::test]
async fn rate_limit_is_awaited_or_reported() {
    let limited = |after: &str| Reply::RateLimited(RetryAfter::Value(after.to_owned()));
    let asked = |replies: Vec<Reply>, policy| async move {
        let server = FakeApi::start(replies);
        let begun = std::time::Instant::now();
        let outcome = client(gateway(&server.base_url(), None), Recording::Off, policy)
            .call(ask("x"))
            .await;
        (
            outcome.map(|answer| answer.raw_response),
            server.completions().len(),
            begun.elapsed(),
        )
    };
    let then_fine = || vec![limited("1"), Reply::Answer("fine".to_owned())];

    let (outcome, requests, took) = asked(then_fine(), RetryPolicy::COUNCIL).await;
    assert_eq!((outcome.unwrap(), requests), ("fine".to_owned(), 2));
    assert!(took >= Duration::from_secs(1), "{took:?}");

    for (replies, policy) in [
        (then_fine(), RetryPolicy::PHASES),
        // An hour exceeds the call's time.
        (
            vec![limited("3600"), Reply::Answer("fine".to_owned())],
            RetryPolicy::COUNCIL,
        ),
    ] {
        let (outcome, requests, _) = asked(replies, policy).await;
        let error = outcome.unwrap_err();
        assert!(
            matches!(error, CallError::Llm(LlmError::ProviderQuota(_))),
            "{error}"
        );
        assert_eq!(requests, 1);
    }
}
