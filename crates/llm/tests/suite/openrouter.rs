//! `openrouter` against a server that plays its chat completions.

use crucible_llm::{LlmBackend, LlmError, LlmResult, ProviderSettings, construct};
use crucible_testkit::{FakeApi, Reply};
use serde_json::{Value, json};

use crate::support::{ask, context, http_backend, http_settings};

const KEY: &str = "openrouter-key-0123456789";

fn raw(body: &Value) -> Reply {
    Reply::Raw(200, body.to_string().into_bytes())
}

#[tokio::test]
async fn asks_as_the_api_wants_and_says_who_asks() {
    let server = FakeApi::start([Reply::Answer("fine".to_owned())]);
    let backend = http_backend("openrouter", &server.base_url(), &context(&[("TEST_KEY", KEY)]));
    let inv = ask("text");
    let result = backend.invoke(inv.clone()).await.unwrap();
    assert_eq!((result.provider.as_str(), result.model_used.as_str()), ("openrouter", "test-model"));

    let seen = server.requests();
    assert_eq!(seen.len(), 1);
    assert_eq!((seen[0].method.as_str(), seen[0].path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(seen[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(seen[0].header("http-referer"), Some("https://program.invalid"));
    assert_eq!(seen[0].header("x-title"), Some("program"));
    assert_eq!(
        seen[0].body,
        json!({
            "model": "test-model", "stream": false, "max_tokens": 4096, "temperature": 0.2,
            "messages": [
                {"role": "system", "content": inv.messages[0].content.as_str()},
                {"role": "user", "content": inv.messages[1].content.as_str()},
            ],
        })
    );
}

#[tokio::test]
async fn a_form_of_answer_is_only_routed_to_who_follows_it() {
    let server = FakeApi::start([Reply::Answer("{}".to_owned())]);
    let backend = http_backend("openrouter", &server.base_url(), &context(&[("TEST_KEY", KEY)]));
    let mut inv = ask("text");
    inv.metadata.insert("response_format".to_owned(), json!({"type": "json_object"}));
    inv.metadata.insert("seed".to_owned(), json!(1));
    let result = backend.invoke(inv).await.unwrap();
    assert_eq!(result.extensions[LlmResult::IGNORED_METADATA], json!(["seed"]));
    let body = &server.requests()[0].body;
    assert_eq!(body["response_format"], json!({"type": "json_object"}));
    assert_eq!(body.get("seed"), None, "a seed would leave nobody to route to");
    assert_eq!(body["provider"], json!({"require_parameters": true}));
}

#[tokio::test]
async fn the_answer_brings_its_cost_and_the_model_that_gave_it() {
    let answer = json!({
        "model": "maker/model-7", "choices": [{"message": {"content": "fine"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 4, "cost": 0.00014},
    });
    let server = FakeApi::start([raw(&answer)]);
    let backend = http_backend("openrouter", &server.base_url(), &context(&[("TEST_KEY", KEY)]));
    let result = backend.invoke(ask("x")).await.unwrap();
    assert_eq!(result.model_used, "maker/model-7");
    assert_eq!((result.tokens_input, result.tokens_output), (Some(10), Some(4)));
    assert_eq!(result.extensions["cost_micro_dollars"], 140);
}

/// Who sends no bill does not say what is on it.
#[tokio::test]
async fn a_cost_that_another_server_states_is_not_taken() {
    let answer = json!({"choices": [{"message": {"content": "fine"}}], "usage": {"cost": 0}});
    for provider in ["gateway", "openai"] {
        let server = FakeApi::start([raw(&answer)]);
        let backend = http_backend(provider, &server.base_url(), &context(&[("TEST_KEY", KEY)]));
        let result = backend.invoke(ask("x")).await.unwrap();
        assert_eq!(result.extensions.get("cost_micro_dollars"), None);
    }
}

#[tokio::test]
async fn an_error_inside_a_200_is_an_error() {
    for (body, class) in [
        (json!({"error": {"code": 402, "message": KEY}}), "provider_quota"),
        (json!({"error": {"code": 429, "message": KEY}}), "provider_quota"),
        (
            json!({"choices": [{"message": {"content": "half"}, "finish_reason": "error",
                "error": {"code": 502, "message": KEY}}]}),
            "provider_outage",
        ),
    ] {
        let server = FakeApi::start([raw(&body)]);
        let backend = http_backend("openrouter", &server.base_url(), &context(&[("TEST_KEY", KEY)]));
        let error = backend.invoke(ask("x")).await.unwrap_err();
        assert_eq!(error.class(), class);
        assert!(!format!("{error} {error:?}").contains(KEY));
    }
}

#[test]
fn what_is_missing_or_cannot_be_sent_is_found_before_anything_runs() {
    let settings = http_settings("https://openrouter.ai/api/v1");
    let with_key = context(&[("TEST_KEY", KEY)]);
    assert!(construct("openrouter", &settings, &with_key).is_ok());
    let named = |settings: &ProviderSettings| {
        let error = construct("openrouter", settings, &with_key).err().unwrap();
        assert!(matches!(error, LlmError::Misconfiguration(_)));
        error.to_string()
    };
    for (without, key) in [
        (ProviderSettings { api_key_env: None, ..settings.clone() }, "api_key_env"),
        (ProviderSettings { referer: None, ..settings.clone() }, "referer"),
        (ProviderSettings { title: None, ..settings.clone() }, "title"),
        (ProviderSettings { base_url: None, ..settings.clone() }, "base_url"),
        (ProviderSettings { model: None, ..settings.clone() }, "model"),
        (ProviderSettings { max_tokens: None, ..settings.clone() }, "max_tokens"),
    ] {
        let text = named(&without);
        assert!(text.contains(&format!("set [llm.openrouter] {key}")), "{text}");
    }
    let text = named(&ProviderSettings { title: Some("two\nlines".to_owned()), ..settings.clone() });
    assert!(text.contains("x-title") && !text.contains("two"), "{text}");
    let error = construct("openrouter", &settings, &context(&[("TEST_KEY", "")])).err().unwrap();
    assert!(error.to_string().contains("TEST_KEY"), "{error}");
}
