//! `anthropic` with a server that simulates the messages API.

use crucible_llm::{Finish, LlmBackend, LlmError, LlmResult, ProviderSettings, construct};
use crucible_testkit::{Endpoint, FakeApi, Family, Reply};
use serde_json::json;

use crate::support::{ask, context, http_backend, http_settings};

const KEY: &str = "anthropic-key-0123456789";

#[tokio::test]
async fn request_follows_api_and_answer_is_read() {
    let server = FakeApi::start([Reply::Answer("fine".to_owned())]);
    let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let mut inv = ask("text");
    inv.metadata.insert("max_tokens".to_owned(), json!(77));
    inv.metadata.insert("seed".to_owned(), json!(5));
    inv.metadata.insert(
        "response_format".to_owned(),
        json!({"type": "json_schema", "json_schema": {"name": "x", "strict": true, "schema": schema}}),
    );
    let backend = http_backend(
        "anthropic",
        &server.origin(),
        &context(&[("TEST_KEY", KEY)]),
    );
    let result = backend.invoke(inv.clone()).await.unwrap();

    assert_eq!(result.raw_response, "fine");
    assert_eq!(
        (result.provider.as_str(), result.model_used.as_str()),
        ("anthropic", "test-model")
    );
    assert!(result.tokens_input.unwrap() > 0 && result.tokens_output == Some(1));
    assert_eq!(result.finish(), Finish::Complete);
    assert_eq!(
        result.extensions[LlmResult::IGNORED_METADATA],
        json!(["seed"])
    );

    let seen = server.requests();
    assert_eq!(seen.len(), 1);
    assert_eq!(
        (seen[0].family, seen[0].endpoint),
        (Family::Anthropic, Endpoint::Completion)
    );
    assert_eq!(
        (seen[0].method.as_str(), seen[0].path.as_str()),
        ("POST", "/v1/messages")
    );
    assert_eq!(seen[0].header("x-api-key"), Some(KEY));
    assert_eq!(seen[0].header("authorization"), None);
    assert_eq!(seen[0].header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(seen[0].header("content-type"), Some("application/json"));
    assert_eq!(
        seen[0].body,
        json!({
            "model": "test-model", "max_tokens": 77, "temperature": 0.2,
            "system": inv.messages[0].content.as_str(),
            "messages": [{"role": "user", "content": inv.messages[1].content.as_str()}],
            "output_config": {"format": {"type": "json_schema", "schema": schema}},
        })
    );
}

#[tokio::test]
async fn base_url_may_include_version() {
    let server = FakeApi::start([Reply::Answer("fine".to_owned())]);
    let context = context(&[("TEST_KEY", KEY)]);
    for base in ["", "/", "/v1", "/v1/"] {
        let backend = http_backend("anthropic", &format!("{}{base}", server.origin()), &context);
        backend.invoke(ask("x")).await.unwrap();
    }
    assert!(
        server
            .requests()
            .iter()
            .all(|request| request.path == "/v1/messages")
    );
}

#[tokio::test]
async fn call_model_is_used_and_cut_reported() {
    let server = FakeApi::start([Reply::CutAnswer("half a".to_owned())]);
    let backend = http_backend(
        "anthropic",
        &server.origin(),
        &context(&[("TEST_KEY", KEY)]),
    );
    let mut inv = ask("x");
    inv.model = "other-model".to_owned();
    let result = backend.invoke(inv).await.unwrap();
    assert_eq!(server.requests()[0].body["model"], "other-model");
    assert_eq!(result.model_used, "other-model");
    assert!(result.complete_answer().is_err());
}

#[test]
fn without_a_key_it_cannot_be_made() {
    let settings = http_settings("https://api.anthropic.com");
    for variables in [&[][..], &[("TEST_KEY", "")], &[("TEST_KEY", " \n")]] {
        let error = construct("anthropic", &settings, &context(variables))
            .err()
            .unwrap();
        assert!(matches!(error, LlmError::Misconfiguration(_)));
        assert!(error.to_string().contains("TEST_KEY"), "{error}");
    }
    let unnamed = ProviderSettings {
        api_key_env: None,
        ..settings
    };
    let error = construct("anthropic", &unnamed, &context(&[("TEST_KEY", KEY)]))
        .err()
        .unwrap();
    assert!(
        error
            .to_string()
            .contains("set [llm.anthropic] api_key_env"),
        "{error}"
    );
}
