//! Seed 002, property 8: for any server behaviour, no text of ours contains the key or the prompt.

use std::sync::{Arc, Mutex};

use crucible_host::env::Environment;
use crucible_llm::{Context, LlmBackend, offered};
use crucible_testkit::{FakeApi, Reply, RetryAfter, SeenRequest};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::json;
use std::time::Duration;

use crate::support::{ask, context, http_backend, http_providers, http_settings};

/// Where a server may put the key and the prompt.
#[derive(Debug, Clone, Copy)]
enum Quoting {
    ErrorObject,
    ErrorCode,
    Refusal,
    Page,
    PlainText,
    Answer,
    FinishReason,
    RetryAfter,
    Location,
    Models,
}

const QUOTINGS: [Quoting; 10] = [
    Quoting::ErrorObject,
    Quoting::ErrorCode,
    Quoting::Refusal,
    Quoting::Page,
    Quoting::PlainText,
    Quoting::Answer,
    Quoting::FinishReason,
    Quoting::RetryAfter,
    Quoting::Location,
    Quoting::Models,
];

fn reply(request: &SeenRequest, status: u16, quoting: Quoting) -> Reply {
    let key = request.key().unwrap_or_default().to_owned();
    let quote = format!("{key} {}", request.conversation());
    let raw = |body: serde_json::Value| Reply::Raw(status, body.to_string().into_bytes());
    match quoting {
        Quoting::ErrorObject => raw(
            json!({"type": "error", "error": {"type": "api_error", "code": status, "message": quote}}),
        ),
        Quoting::ErrorCode => raw(json!({"type": quote, "error": {"type": quote, "code": quote}})),
        Quoting::Refusal => raw(json!({
            "choices": [{"message": {"content": null, "refusal": quote}, "error": {"message": quote}}],
            "content": [{"type": quote, "text": quote}], "stop_reason": "refusal",
        })),
        Quoting::Page => Reply::Raw(status, format!("<html>{quote}").into_bytes()),
        Quoting::PlainText => Reply::Raw(status, quote.into_bytes()),
        Quoting::Answer => Reply::Answer(quote),
        Quoting::FinishReason => raw(json!({
            "choices": [{"message": {"content": ""}, "finish_reason": quote}],
            "content": [], "stop_reason": quote,
        })),
        Quoting::RetryAfter => Reply::RateLimited(RetryAfter::Value(key)),
        Quoting::Location => Reply::Redirect(format!("http://127.0.0.1:1/?{key}")),
        Quoting::Models => Reply::Raw(status, json!({"data": quote}).to_string().into_bytes()),
    }
}

mod properties {
    use super::*;

    #[test]
    fn no_text_tells_the_key_or_the_prompt() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let now = Arc::new(Mutex::new((200, Quoting::Answer)));
        let plan = Arc::clone(&now);
        let server = FakeApi::answering(move |request| {
            let (status, quoting) = *plan.lock().unwrap();
            reply(request, status, quoting)
        });
        let shared = context(&[]);
        let statuses = [
            200u16, 200, 200, 400, 401, 402, 403, 404, 408, 413, 418, 422, 429, 500, 502, 503, 529,
            599,
        ];
        let cases = (
            prop::sample::select(http_providers()),
            "[!-~]{16,40}",
            "[a-zA-Z0-9 äöü\"\\\\]{16,60}",
            prop::sample::select(statuses.to_vec()),
            prop::sample::select(QUOTINGS.to_vec()),
        );
        let config = ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::default()
        };
        TestRunner::new(config)
            .run(&cases, |(provider, key, prompt, status, quoting)| {
                *now.lock().unwrap() = (status, quoting);
                let env = Environment::from_pairs([("TEST_KEY", key.as_str())], "/");
                let context = Context {
                    env,
                    ..shared.clone()
                };
                let backend = http_backend(provider, &server.base_url(), &context);
                let text = runtime.block_on(async {
                    let outcome = backend.invoke(ask(&prompt)).await;
                    match outcome {
                        Ok(result) => format!("{result:?}"),
                        Err(error) => format!("{error} {error:?}"),
                    }
                });
                for secret in [&key, &prompt] {
                    for form in [
                        secret.to_owned(),
                        format!("{secret:?}"),
                        json!(secret).to_string(),
                    ] {
                        // A part is enough to detect it.
                        let piece: String = form.trim_matches('"').chars().take(12).collect();
                        prop_assert!(
                            !text.contains(&piece),
                            "{provider} {status} {quoting:?}: {text}"
                        );
                    }
                }
                Ok(())
            })
            .unwrap();
    }
}

/// A list of models contains no prompt, but is requested with the key.
#[tokio::test]
async fn model_list_error_hides_key() {
    let key = "list-key-0123456789";
    for status in [200, 302, 401, 429, 500] {
        let body = json!({"data": [{"id": 1, "object": key}], "error": {"message": key}});
        let server = crate::raw_server::RawServer::json(status, &body.to_string());
        for provider in http_providers() {
            let settings = http_settings(&server.base_url());
            let context = context(&[("TEST_KEY", key)]);
            let error = offered(provider, &settings, &context, Duration::from_secs(20))
                .await
                .unwrap_err();
            assert!(
                !format!("{error} {error:?}").contains("0123456789"),
                "{error:?}"
            );
        }
    }
}
