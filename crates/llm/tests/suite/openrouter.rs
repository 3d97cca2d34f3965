//! `openrouter` with a server that simulates its chat completions.

use std::collections::BTreeMap;
use std::sync::Arc;

use crucible_llm::{
    BudgetLimits, CallBudget, CallError, ClientOptions, Limit, ListedPrice, LlmBackend, LlmError,
    LlmResult, ModelClient, Price, PriceTable, ProviderSettings, Resource, construct,
};
use crucible_testkit::{FakeApi, Reply};
use serde_json::{Value, json};

use crate::support::{NO_LIMITS, ask, context, http_backend, http_providers, http_settings};

const KEY: &str = "openrouter-key-0123456789";

fn raw(body: &Value) -> Reply {
    Reply::Raw(200, body.to_string().into_bytes())
}

#[tokio::test]
async fn request_follows_api_and_identifies_the_client() {
    let server = FakeApi::start([Reply::Answer("fine".to_owned())]);
    let backend = http_backend(
        "openrouter",
        &server.base_url(),
        &context(&[("TEST_KEY", KEY)]),
    );
    let inv = ask("text");
    let result = backend.invoke(inv.clone()).await.unwrap();
    assert_eq!(
        (result.provider.as_str(), result.model_used.as_str()),
        ("openrouter", "test-model")
    );

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
        seen[0].header("http-referer"),
        Some("https://program.invalid")
    );
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
async fn response_format_requires_supporting_servers() {
    let server = FakeApi::start([Reply::Answer("{}".to_owned())]);
    let backend = http_backend(
        "openrouter",
        &server.base_url(),
        &context(&[("TEST_KEY", KEY)]),
    );
    let mut inv = ask("text");
    inv.metadata
        .insert("response_format".to_owned(), json!({"type": "json_object"}));
    inv.metadata.insert("seed".to_owned(), json!(1));
    let result = backend.invoke(inv).await.unwrap();
    assert_eq!(
        result.extensions[LlmResult::IGNORED_METADATA],
        json!(["seed"])
    );
    let body = &server.requests()[0].body;
    assert_eq!(body["response_format"], json!({"type": "json_object"}));
    assert_eq!(
        body.get("seed"),
        None,
        "a seed would leave nobody to route to"
    );
    assert_eq!(body["provider"], json!({"require_parameters": true}));
}

#[tokio::test]
async fn fallback_models_go_only_to_openrouter() {
    for provider in http_providers() {
        let server = FakeApi::start([Reply::Answer("fine".to_owned())]);
        let backend = http_backend(provider, &server.base_url(), &context(&[("TEST_KEY", KEY)]));
        let mut inv = ask("text");
        inv.metadata
            .insert("models".to_owned(), json!(["maker/second", "maker/third"]));
        let result = backend.invoke(inv).await.unwrap();
        let body = &server.requests()[0].body;
        assert_eq!(body["model"], "test-model");
        let ignored = result.extensions.get(LlmResult::IGNORED_METADATA);
        if provider == "openrouter" {
            assert_eq!(body["models"], json!(["maker/second", "maker/third"]));
            assert_eq!(ignored, None);
        } else {
            assert_eq!(body.get("models"), None, "{provider}");
            assert_eq!(ignored, Some(&json!(["models"])), "{provider}");
        }
    }
}

#[tokio::test]
async fn invalid_fallback_list_is_refused_unsent() {
    let server = FakeApi::start([Reply::Answer("fine".to_owned())]);
    let backend = http_backend(
        "openrouter",
        &server.base_url(),
        &context(&[("TEST_KEY", KEY)]),
    );
    for bad in [
        json!("maker/second"),
        json!(["maker/second", 3]),
        json!([""]),
        json!({"a": 1}),
        json!(null),
    ] {
        let mut inv = ask("text");
        inv.metadata.insert("models".to_owned(), bad.clone());
        let error = backend.invoke(inv).await.unwrap_err();
        assert!(matches!(error, LlmError::Unsupported(_)), "{bad}: {error}");
    }
    assert!(server.requests().is_empty());
    let mut inv = ask("text");
    inv.metadata.insert("models".to_owned(), json!([]));
    backend.invoke(inv).await.unwrap();
    assert_eq!(server.requests()[0].body.get("models"), None);
}

#[tokio::test]
async fn cost_limit_assumes_most_expensive_model() {
    let line = |input: u64| ListedPrice {
        price: Price::PerMillionTokens {
            input: input * 1_000_000,
            output: 0,
        },
        date: "2026-01-01".to_owned(),
        source: "a test".to_owned(),
    };
    let prices = BTreeMap::from([
        ("openrouter/test-model".to_owned(), line(1)),
        ("openrouter/maker/dear".to_owned(), line(1_000_000)),
    ]);
    let prices = Arc::new(PriceTable::new(prices));
    let document = json!({
        "model": "maker/dear", "choices": [{"message": {"content": "fine"}}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 4},
    });
    let server = FakeApi::start([raw(&document)]);
    let context = context(&[("TEST_KEY", KEY)]);
    let asked = |models: Option<Value>, dollars: u64| {
        let budget = CallBudget::new(BudgetLimits {
            micro_dollars: Limit::At(dollars * 1_000_000),
            ..NO_LIMITS
        });
        let options = ClientOptions {
            prices: Arc::clone(&prices),
            ..ClientOptions::new(Arc::clone(&budget))
        };
        let client = ModelClient::new(
            http_backend("openrouter", &server.base_url(), &context),
            options,
        );
        let mut inv = ask("text");
        inv.metadata
            .extend(models.map(|models| ("models".to_owned(), models)));
        async move {
            client
                .call(inv)
                .await
                .map(|_| budget.used().unwrap().micro_dollars)
        }
    };
    // The question has some hundred bytes, and a token is reserved for each: cents, or some hundred
    // dollars.
    assert!(asked(None, 10).await.is_ok());
    let refused = asked(Some(json!(["maker/dear"])), 10).await.unwrap_err();
    let CallError::Llm(LlmError::BudgetExceeded {
        resource: Resource::MicroDollars,
        ..
    }) = refused
    else {
        panic!("{refused}")
    };
    let unpriced = asked(Some(json!(["maker/dear", "maker/unheard-of"])), 1_000_000)
        .await
        .unwrap_err();
    assert!(
        matches!(unpriced, CallError::Llm(LlmError::Misconfiguration(_))),
        "{unpriced}"
    );
    assert!(
        unpriced.to_string().contains("openrouter/maker/unheard-of"),
        "{unpriced}"
    );
    assert_eq!(server.requests().len(), 1);
    // The answering model is charged: ten tokens at a dollar.
    assert_eq!(
        asked(Some(json!(["maker/dear"])), 1_000_000).await.unwrap(),
        10 * 1_000_000
    );
}

#[tokio::test]
async fn receipt_and_budget_agree_on_fallback_cost() {
    let line = |input: u64, date: &str| ListedPrice {
        price: Price::PerMillionTokens {
            input: input * 1_000_000,
            output: 0,
        },
        date: date.to_owned(),
        source: "a test".to_owned(),
    };
    for (provider, answer, micro_dollars, date) in [
        ("openrouter", "test-model", 10, "2026-01-01"),
        ("openrouter", "maker/dear", 50, "2026-02-02"),
        // A service may report a more specific name than requested; then the answering model is unknown.
        ("openrouter", "test-model-2026-05-01", 50, "2026-02-02"),
        // A service without fallback support uses no other model.
        ("gateway", "test-model-2026-05-01", 10, "2026-01-01"),
    ] {
        let body = json!({
            "model": answer, "choices": [{"message": {"content": "fine"}}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 4},
        });
        let server = FakeApi::start([raw(&body)]);
        let prices = [
            ("test-model", line(1, "2026-01-01")),
            ("maker/dear", line(5, "2026-02-02")),
        ]
        .map(|(model, line)| (format!("{provider}/{model}"), line));
        let budget = CallBudget::new(NO_LIMITS);
        let options = ClientOptions {
            prices: Arc::new(PriceTable::new(prices.into())),
            ..ClientOptions::new(Arc::clone(&budget))
        };
        let context = context(&[("TEST_KEY", KEY)]);
        let client = ModelClient::new(
            http_backend(provider, &server.base_url(), &context),
            options,
        );
        let mut inv = ask("text");
        inv.metadata
            .insert("models".to_owned(), json!(["maker/dear"]));
        let (models, allowed) = (client.may_answer(&inv), inv.timeout);
        let result = client.call(inv).await.unwrap();
        let cost = client.receipt(&result, &models, allowed).cost.unwrap();
        assert_eq!(
            (cost.micro_dollars, cost.price_date.as_deref()),
            (micro_dollars, Some(date)),
            "{answer}"
        );
        assert_eq!(
            budget.used().unwrap().micro_dollars,
            micro_dollars,
            "{answer}"
        );
    }
}

#[tokio::test]
async fn answer_has_cost_and_model() {
    let answer = json!({
        "model": "maker/model-7", "choices": [{"message": {"content": "fine"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 4, "cost": 0.00014},
    });
    let server = FakeApi::start([raw(&answer)]);
    let backend = http_backend(
        "openrouter",
        &server.base_url(),
        &context(&[("TEST_KEY", KEY)]),
    );
    let result = backend.invoke(ask("x")).await.unwrap();
    assert_eq!(result.model_used, "maker/model-7");
    assert_eq!(
        (result.tokens_input, result.tokens_output),
        (Some(10), Some(4))
    );
    assert_eq!(result.extensions["cost_micro_dollars"], 140);
}

/// A server that does not charge cannot state the cost.
#[tokio::test]
async fn cost_stated_by_another_server_is_ignored() {
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
        (
            json!({"error": {"code": 402, "message": KEY}}),
            "provider_quota",
        ),
        (
            json!({"error": {"code": 429, "message": KEY}}),
            "provider_quota",
        ),
        (
            json!({"choices": [{"message": {"content": "half"}, "finish_reason": "error",
                "error": {"code": 502, "message": KEY}}]}),
            "provider_outage",
        ),
    ] {
        let server = FakeApi::start([raw(&body)]);
        let backend = http_backend(
            "openrouter",
            &server.base_url(),
            &context(&[("TEST_KEY", KEY)]),
        );
        let error = backend.invoke(ask("x")).await.unwrap_err();
        assert_eq!(error.class(), class);
        assert!(!format!("{error} {error:?}").contains(KEY));
    }
}

#[test]
fn missing_settings_are_found_before_sending() {
    let settings = http_settings("https://openrouter.ai/api/v1");
    let with_key = context(&[("TEST_KEY", KEY)]);
    assert!(construct("openrouter", &settings, &with_key).is_ok());
    let named = |settings: &ProviderSettings| {
        let error = construct("openrouter", settings, &with_key).err().unwrap();
        assert!(matches!(error, LlmError::Misconfiguration(_)));
        error.to_string()
    };
    for (without, key) in [
        (
            ProviderSettings {
                api_key_env: None,
                ..settings.clone()
            },
            "api_key_env",
        ),
        (
            ProviderSettings {
                referer: None,
                ..settings.clone()
            },
            "referer",
        ),
        (
            ProviderSettings {
                title: None,
                ..settings.clone()
            },
            "title",
        ),
        (
            ProviderSettings {
                base_url: None,
                ..settings.clone()
            },
            "base_url",
        ),
        (
            ProviderSettings {
                model: None,
                ..settings.clone()
            },
            "model",
        ),
        (
            ProviderSettings {
                max_tokens: None,
                ..settings.clone()
            },
            "max_tokens",
        ),
    ] {
        let text = named(&without);
        assert!(
            text.contains(&format!("set [llm.openrouter] {key}")),
            "{text}"
        );
    }
    let text = named(&ProviderSettings {
        title: Some("two\nlines".to_owned()),
        ..settings.clone()
    });
    assert!(text.contains("x-title") && !text.contains("two"), "{text}");
    let error = construct("openrouter", &settings, &context(&[("TEST_KEY", "")]))
        .err()
        .unwrap();
    assert!(error.to_string().contains("TEST_KEY"), "{error}");
}
