//! `gateway` with a server that simulates chat completions.

use std::time::Duration;

use crucible_llm::{Finish, LlmBackend, LlmError, LlmResult};
use crucible_testkit::{FakeApi, Reply, RetryAfter};
use serde_json::json;

use crate::support::{ask, gateway};

const KEY: &str = "gateway-key-0123456789";

async fn outcome(reply: Reply) -> Result<LlmResult, LlmError> {
    let server = FakeApi::start([reply]);
    gateway(&server.base_url(), Some(KEY))
        .invoke(ask("words of the prompt"))
        .await
}

#[tokio::test]
async fn request_follows_format_and_answer_is_read() {
    let server = FakeApi::start([Reply::Answer("fine".to_owned())]);
    let mut inv = ask("text");
    inv.metadata.insert("max_tokens".to_owned(), json!(77));
    inv.metadata.insert("seed".to_owned(), json!(5));
    inv.metadata
        .insert("response_format".to_owned(), json!({"type": "json_object"}));
    inv.metadata.insert("unheard_of".to_owned(), json!(1));
    let result = gateway(&server.base_url(), Some(KEY))
        .invoke(inv.clone())
        .await
        .unwrap();

    assert_eq!(result.raw_response, "fine");
    assert_eq!(
        (result.provider.as_str(), result.model_used.as_str()),
        ("gateway", "test-model")
    );
    assert!(result.tokens_input.unwrap() > 0 && result.tokens_output == Some(1));
    assert_eq!(result.finish(), Finish::Complete);
    assert_eq!(
        result.extensions[LlmResult::IGNORED_METADATA],
        json!(["unheard_of"])
    );

    let seen = server.requests();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].path, "/v1/chat/completions");
    assert_eq!(
        seen[0].header("authorization"),
        Some(format!("Bearer {KEY}").as_str())
    );
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
    let server = FakeApi::start([Reply::Answer("fine".to_owned())]);
    gateway(&format!("{}/", server.base_url()), None)
        .invoke(ask("x"))
        .await
        .unwrap();
    assert_eq!(server.requests()[0].header("authorization"), None);
}

#[tokio::test]
async fn a_429_hands_on_how_long_to_wait() {
    for (value, seconds) in [
        (RetryAfter::Absent, None),
        (RetryAfter::Value("3".to_owned()), Some(3)),
        (RetryAfter::Value("31536000".to_owned()), Some(31_536_000)),
        (
            RetryAfter::Value("Wed, 21 Oct 2099 07:28:00 GMT".to_owned()),
            None,
        ),
    ] {
        let Err(LlmError::ProviderQuota(fault)) = outcome(Reply::RateLimited(value)).await else {
            panic!("429 is a quota");
        };
        assert_eq!(fault.retry_after_seconds, seconds);
    }
}

#[tokio::test]
async fn slow_answer_within_limit_is_accepted() {
    let result = outcome(Reply::SlowAnswer(
        "slow".to_owned(),
        Duration::from_millis(5),
    ))
    .await
    .unwrap();
    assert_eq!(result.raw_response, "slow");
}

#[tokio::test]
async fn answer_cut_at_token_limit_is_marked() {
    let result = outcome(Reply::CutAnswer("half a".to_owned()))
        .await
        .unwrap();
    assert_eq!(result.finish(), Finish::Truncated);
    assert!(result.complete_answer().is_err());
}
