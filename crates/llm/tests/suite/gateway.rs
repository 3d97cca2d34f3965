//! The gateway against a server in every mode that has been seen, and some that have not.

use std::time::{Duration, Instant};

use crucible_llm::{AnswerFault, Finish, LlmBackend, LlmError, LlmResult};
use crucible_testkit::{FakeOpenAi, Reply, RetryAfter};
use serde_json::json;

use crate::support::{ask, gateway};

const KEY: &str = "gateway-key-0123456789";

/// Asks a server that replies so, giving it little time, and checks that no error tells the key or the prompt.
async fn outcome(reply: Reply) -> Result<LlmResult, LlmError> {
    let server = FakeOpenAi::start([reply]);
    let mut inv = ask("words of the prompt");
    inv.timeout = Duration::from_millis(1500);
    let outcome = gateway(&server.base_url(), Some(KEY)).invoke(inv).await;
    if let Err(error) = &outcome {
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains(KEY) && !shown.contains("words of the prompt"), "{shown}");
        assert!(shown.contains("gateway"), "{shown}");
    }
    outcome
}

async fn class(reply: Reply) -> &'static str {
    outcome(reply).await.unwrap_err().class()
}

#[tokio::test]
async fn asks_as_the_format_wants_and_reads_the_answer() {
    let server = FakeOpenAi::start([Reply::Answer("fine".to_owned())]);
    let mut inv = ask("text");
    inv.metadata.insert("max_tokens".to_owned(), json!(77));
    inv.metadata.insert("seed".to_owned(), json!(5));
    inv.metadata.insert("response_format".to_owned(), json!({"type": "json_object"}));
    inv.metadata.insert("unheard_of".to_owned(), json!(1));
    let result = gateway(&server.base_url(), Some(KEY)).invoke(inv.clone()).await.unwrap();

    assert_eq!(result.raw_response, "fine");
    assert_eq!((result.provider.as_str(), result.model_used.as_str()), ("gateway", "test-model"));
    assert!(result.tokens_input.unwrap() > 0 && result.tokens_output == Some(1));
    assert_eq!(result.finish(), Finish::Complete);
    assert_eq!(result.extensions[LlmResult::IGNORED_METADATA], json!(["unheard_of"]));

    let seen = server.requests();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].path, "/v1/chat/completions");
    assert_eq!(seen[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(seen[0].header("content-type"), Some("application/json"));
    assert_eq!(
        seen[0].body,
        json!({
            "model": "test-model", "stream": false, "max_tokens": 77, "temperature": 0.2, "seed": 5,
            "response_format": {"type": "json_object"},
            "messages": [
                {"role": "system", "content": inv.messages[0].content.as_str()},
                {"role": "user", "content": inv.messages[1].content.as_str()},
            ],
        })
    );
}

#[tokio::test]
async fn without_a_key_no_header_is_sent() {
    let server = FakeOpenAi::start([Reply::Answer("fine".to_owned())]);
    gateway(&format!("{}/", server.base_url()), None).invoke(ask("x")).await.unwrap();
    assert_eq!(server.requests()[0].header("authorization"), None);
}

#[tokio::test]
async fn each_status_becomes_its_variant() {
    let expected = [
        (400, "unsupported"),
        (401, "provider_auth"),
        (403, "provider_auth"),
        (404, "misconfiguration"),
        (413, "unsupported"),
        (429, "provider_quota"),
        (500, "provider_outage"),
        (503, "provider_outage"),
        (529, "provider_outage"),
        (204, "provider_outage"),
    ];
    for (status, expected) in expected {
        let error = outcome(Reply::Status(status)).await.unwrap_err();
        assert_eq!(error.class(), expected, "{status}");
        assert!(error.to_string().contains(&status.to_string()) && error.to_string().contains("test-model"));
    }
}

#[tokio::test]
async fn a_429_hands_on_how_long_to_wait() {
    for (value, seconds) in [
        (RetryAfter::Absent, None),
        (RetryAfter::Value("3".to_owned()), Some(3)),
        (RetryAfter::Value("31536000".to_owned()), Some(31_536_000)),
        (RetryAfter::Value("Wed, 21 Oct 2099 07:28:00 GMT".to_owned()), None),
    ] {
        let Err(LlmError::ProviderQuota(fault)) = outcome(Reply::RateLimited(value)).await else {
            panic!("429 is a quota");
        };
        assert_eq!(fault.retry_after_seconds, seconds);
    }
}

#[tokio::test]
async fn what_is_no_answer_is_a_typed_error_that_is_not_retried() {
    for reply in [
        Reply::BadJson,
        Reply::Html,
        Reply::EmptyChoices,
        Reply::NullContent,
        Reply::Answer("  \n".to_owned()),
        Reply::InvalidUtf8,
        Reply::Huge(50_000_000),
        Reply::Raw(200, Vec::new()),
        Reply::Raw(200, b"null".to_vec()),
        Reply::Raw(200, b"{}".to_vec()),
        Reply::Raw(200, br#"{"choices":[{"message":{"content":["parts"]}}]}"#.to_vec()),
        Reply::Raw(200, br#"{"choices":[{}]}"#.to_vec()),
        Reply::Raw(200, vec![b'['; 200_000]),
    ] {
        let error = outcome(reply.clone()).await.unwrap_err();
        assert_eq!(error.class(), "provider_outage", "{reply:?}");
        assert!(!error.is_transient(), "{reply:?}");
        let fault = match &reply {
            Reply::EmptyChoices | Reply::NullContent | Reply::Answer(_) => Some(AnswerFault::Empty),
            Reply::Huge(_) => Some(AnswerFault::TooLarge),
            _ => None,
        };
        assert_eq!(error.answer_fault(), fault, "{reply:?}");
    }
}

#[tokio::test]
async fn network_faults_are_transport() {
    assert_eq!(class(Reply::Drop).await, "transport");
    assert_eq!(class(Reply::DropHalfway).await, "transport");
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = gateway(&format!("http://{free}/v1"), Some(KEY)).invoke(ask("x")).await.unwrap_err();
    assert_eq!(error.class(), "transport");
    assert!(error.to_string().contains("base_url"), "{error}");
}

#[tokio::test]
async fn what_takes_too_long_is_a_timeout_and_ends_in_time() {
    for reply in [
        Reply::Hang,
        Reply::Endless,
        Reply::SlowAnswer("slow".repeat(40), Duration::from_millis(100)),
        Reply::LateAnswer("late".to_owned(), Duration::from_secs(60)),
    ] {
        let begun = Instant::now();
        let error = outcome(reply.clone()).await.unwrap_err();
        assert!(matches!(error, LlmError::Timeout { .. }), "{reply:?}: {error}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{reply:?}");
    }
}

#[tokio::test]
async fn a_slow_answer_within_the_time_is_an_answer() {
    let result = outcome(Reply::SlowAnswer("slow".to_owned(), Duration::from_millis(5))).await.unwrap();
    assert_eq!(result.raw_response, "slow");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = FakeOpenAi::start([Reply::Answer("stolen".to_owned())]);
    let target = format!("{}/chat/completions", elsewhere.base_url());
    assert_eq!(class(Reply::Redirect(target)).await, "misconfiguration");
    assert_eq!(elsewhere.requests().len(), 0);
}

#[tokio::test]
async fn an_answer_cut_at_the_token_limit_says_so() {
    let result = outcome(Reply::CutAnswer("half a".to_owned())).await.unwrap();
    assert_eq!(result.finish(), Finish::CutShort);
    assert!(result.whole_answer().is_err());
}

#[tokio::test]
async fn sixty_four_calls_at_once_take_little_longer_than_one() {
    let server = FakeOpenAi::start([Reply::LateAnswer("ok".to_owned(), Duration::from_millis(200))]);
    let backend = std::sync::Arc::new(gateway(&server.base_url(), None));
    let begun = Instant::now();
    let calls: Vec<_> = (0..64)
        .map(|_| {
            let backend = std::sync::Arc::clone(&backend);
            tokio::spawn(async move { backend.invoke(ask("x")).await })
        })
        .collect();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    // One after the other they would take 12.8 s; the generous bound keeps a loaded machine from failing this.
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    assert_eq!(server.requests().len(), 64);
}
