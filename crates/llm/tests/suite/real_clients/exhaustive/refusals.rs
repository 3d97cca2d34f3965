//! The handling of a server's refusals, whatever the program does with them: its own exit codes,
//! truncated statuses, quoted bodies, and errors marked as success.

use crucible_llm::LlmError;
use crucible_testkit::{Reply, RetryAfter};

use crate::real_clients::support::{Claude, Codex, Gemini, PROGRAMS, Program, assert_says_nothing};

/// Always gives this reply; returns the error's class and status, and the number of requests.
async fn refused(program: Program, reply: Reply) -> (&'static str, Option<u16>, usize) {
    let stand = program.against([reply]);
    let error = stand.call("a file").await.expect_err("a refusal");
    assert_says_nothing(&error);
    assert!(error.to_string().contains(program.provider()), "{error}");
    let status = match &error {
        LlmError::Transport(fault)
        | LlmError::ProviderAuth(fault)
        | LlmError::ProviderQuota(fault)
        | LlmError::ProviderOutage(fault)
        | LlmError::Misconfiguration(fault)
        | LlmError::Unsupported(fault) => fault.status,
        LlmError::Timeout { .. } | LlmError::BudgetExceeded { .. } => None,
    };
    (error.class(), status, stand.api.completions().len())
}

#[tokio::test]
async fn rejected_key_is_classified() {
    for program in PROGRAMS {
        for status in [401, 403] {
            let seen = refused(program, Reply::Status(status)).await;
            assert_eq!(seen, ("provider_auth", Some(status), 1), "{program:?}");
        }
    }
}

/// One request each: no program retries on its own.
#[tokio::test]
async fn rate_limit_is_reported_unretried() {
    for program in PROGRAMS {
        for retry_after in [RetryAfter::Absent, RetryAfter::Value("1".to_owned())] {
            let seen = refused(program, Reply::RateLimited(retry_after)).await;
            assert_eq!(seen, ("provider_quota", Some(429), 1), "{program:?}");
        }
    }
}

#[tokio::test]
async fn a_rate_limit_passes() {
    for program in PROGRAMS {
        let stand = program.against([
            Reply::RateLimited(RetryAfter::Absent),
            Reply::Answer("later".to_owned()),
        ]);
        assert_eq!(
            stand.call("x").await.expect_err("a refusal").class(),
            "provider_quota",
            "{program:?}"
        );
        assert_eq!(
            stand.call("x").await.expect("an answer").raw_response,
            "later",
            "{program:?}"
        );
    }
}

#[tokio::test]
async fn outage_is_classified() {
    for program in PROGRAMS {
        for status in [500, 503, 529] {
            let seen = refused(program, Reply::Status(status)).await;
            assert_eq!(seen, ("provider_outage", Some(status), 1), "{program:?}");
        }
    }
}

/// One request each: `claude` has nothing left to omit in a second one.
#[tokio::test]
async fn invalid_request_is_classified() {
    for program in PROGRAMS {
        let seen = refused(program, Reply::Status(400)).await;
        assert_eq!(seen, ("unsupported", Some(400), 1), "{program:?}");
    }
}

/// `codex` passes on the server's message about a model, without the status.
#[tokio::test]
async fn unknown_model_is_reported_if_stated() {
    for program in [Claude, Gemini] {
        let (class, status, _) = refused(program, Reply::Status(404)).await;
        assert_eq!(
            (class, status),
            ("misconfiguration", Some(404)),
            "{program:?}"
        );
    }
    assert_eq!(
        refused(Codex, Reply::Status(404)).await,
        ("provider_outage", None, 1)
    );
}

#[tokio::test]
async fn a_dropped_connection_is_one() {
    for program in PROGRAMS {
        let (class, status, requests) = refused(program, Reply::Drop).await;
        assert!(
            ["transport", "provider_outage"].contains(&class),
            "{program:?}: {class}"
        );
        assert_eq!((status, requests), (None, 1), "{program:?}");
    }
}
