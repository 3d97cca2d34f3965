//! `openai` with a server that simulates chat completions.

use crucible_llm::{Finish, LlmBackend, LlmError, ProviderSettings, construct};
use crucible_testkit::{FakeApi, Reply};
use serde_json::json;

use crate::support::{ask, context, http_backend, http_settings};

const KEY: &str = "openai-key-0123456789";

#[tokio::test]
async fn request_follows_api_and_answer_is_read() {
    let server = FakeApi::start([Reply::Answer("fine".to_owned())]);
    let format =
        json!({"type": "json_schema", "json_schema": {"name": "x", "strict": true, "schema": {}}});
    let mut inv = ask("text");
    inv.metadata.insert("max_tokens".to_owned(), json!(77));
    inv.metadata
        .insert("response_format".to_owned(), format.clone());
    let backend = http_backend("openai", &server.base_url(), &context(&[("TEST_KEY", KEY)]));
    let result = backend.invoke(inv.clone()).await.unwrap();

    assert_eq!(result.raw_response, "fine");
    assert_eq!(
        (result.provider.as_str(), result.model_used.as_str()),
        ("openai", "test-model")
    );
    assert_eq!(result.finish(), Finish::Complete);

    let seen = server.requests();
    assert_eq!(seen.len(), 1);
    assert_eq!(
        (seen[0].method.as_str(), seen[0].path.as_str()),
        ("POST", "/v1/chat/completions")
    );
    assert_eq!(
        seen[0].header("authorization"),
        Some(format!("Bearer {KEY}").as_str())
    );
    assert_eq!(
        seen[0].body,
        json!({
            "model": "test-model", "stream": false, "max_completion_tokens": 77, "temperature": 0.2,
            "response_format": format,
            "messages": [
                {"role": "system", "content": inv.messages[0].content.as_str()},
                {"role": "user", "content": inv.messages[1].content.as_str()},
            ],
        })
    );
}

#[tokio::test]
async fn unset_parameters_are_omitted() {
    let server = FakeApi::start([Reply::Answer("fine".to_owned())]);
    let settings = ProviderSettings {
        temperature: None,
        ..http_settings(&server.base_url())
    };
    let backend = construct("openai", &settings, &context(&[("TEST_KEY", KEY)])).unwrap();
    backend.invoke(ask("x")).await.unwrap();
    let body = &server.requests()[0].body;
    assert_eq!(body.get("temperature"), None);
    assert_eq!(body.get("max_tokens"), None);
    assert_eq!(body["max_completion_tokens"], 4096);
}

#[test]
fn without_a_key_it_cannot_be_made() {
    let settings = http_settings("https://api.openai.com/v1");
    for variables in [&[][..], &[("TEST_KEY", "")], &[("TEST_KEY", " \n")]] {
        let error = construct("openai", &settings, &context(variables))
            .err()
            .unwrap();
        assert!(matches!(error, LlmError::Misconfiguration(_)));
        assert!(error.to_string().contains("TEST_KEY"), "{error}");
    }
    let unnamed = ProviderSettings {
        api_key_env: None,
        ..settings
    };
    let error = construct("openai", &unnamed, &context(&[("TEST_KEY", KEY)]))
        .err()
        .unwrap();
    assert!(
        error.to_string().contains("set [llm.openai] api_key_env"),
        "{error}"
    );
}
