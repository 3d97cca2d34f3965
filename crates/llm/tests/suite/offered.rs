//! The model lists of real servers on loopback.

use std::time::Duration;

use crucible_llm::{
    Availability, ListExtent, LlmError, Offered, OfferedModel, Price, ProviderSettings,
    availability, offered,
};
use crucible_testkit::{Endpoint, FakeApi, Reply};
use serde_json::json;

use crate::raw_server::RawServer;
use crate::support::{client_settings, context, http_providers, http_settings};

const TIME: Duration = Duration::from_secs(20);
const KEY: &str = "list-key-0123456789";

fn settings(base_url: &str) -> ProviderSettings {
    // A user who looks for a model has not configured one.
    ProviderSettings {
        model: None,
        max_tokens: None,
        ..http_settings(base_url)
    }
}

#[tokio::test]
async fn http_providers_list_models_without_calls() {
    for provider in http_providers() {
        let server = FakeApi::start([Reply::Hang]);
        let context = context(&[("TEST_KEY", KEY)]);
        let list = offered(provider, &settings(&server.base_url()), &context, TIME)
            .await
            .unwrap();
        let model = OfferedModel {
            id: "fake-model".to_owned(),
            context_tokens: None,
            price: Price::Unknown,
        };
        assert_eq!(
            list,
            Offered {
                models: vec![model],
                extent: ListExtent::Whole
            },
            "{provider}"
        );

        let seen = server.requests();
        assert_eq!(seen.len(), 1);
        assert_eq!(
            (seen[0].method.as_str(), seen[0].endpoint),
            ("GET", Endpoint::Models)
        );
        assert_eq!(seen[0].key(), Some(KEY), "{provider}");
    }
}

#[tokio::test]
async fn openrouter_tells_prices_and_contexts() {
    let list = json!({"data": [
        {"id": "maker/one", "context_length": 200_000,
            "pricing": {"prompt": "0.000003", "completion": "0.000015", "request": "0"}},
        {"id": "router/auto", "context_length": 2_000_000, "pricing": {"prompt": "-1", "completion": "-1"}},
    ]});
    let server = RawServer::json(200, &list.to_string());
    let context = context(&[("TEST_KEY", KEY)]);
    let list = offered("openrouter", &settings(&server.base_url()), &context, TIME)
        .await
        .unwrap();
    let price = Price::PerMillionTokens {
        input: 3_000_000,
        output: 15_000_000,
    };
    assert_eq!(
        list.models,
        [
            OfferedModel {
                id: "maker/one".to_owned(),
                context_tokens: Some(200_000),
                price
            },
            OfferedModel {
                id: "router/auto".to_owned(),
                context_tokens: Some(2_000_000),
                price: Price::Unknown
            },
        ]
    );
}

#[tokio::test]
async fn invalid_model_list_is_typed_error() {
    for (status, body, class) in [
        (200, "<html>list-key-0123456789</html>", "provider_outage"),
        (200, "{}", "provider_outage"),
        (200, r#"{"data":null}"#, "provider_outage"),
        (
            200,
            r#"{"data":[{"name":"list-key-0123456789"}]}"#,
            "provider_outage",
        ),
        (401, r#"{"error":"list-key-0123456789"}"#, "provider_auth"),
        (404, "", "misconfiguration"),
        (503, "", "provider_outage"),
    ] {
        let server = RawServer::json(status, body);
        for provider in http_providers() {
            let context = context(&[("TEST_KEY", KEY)]);
            let error = offered(provider, &settings(&server.base_url()), &context, TIME)
                .await
                .unwrap_err();
            assert_eq!(error.class(), class, "{provider}: {body}");
            let text = format!("{error} {error:?}");
            assert!(text.contains(provider) && !text.contains(KEY), "{text}");
        }
    }
}

#[tokio::test]
async fn who_has_no_server_has_no_list() {
    for provider in ["claude-cli", "replay"] {
        let error = offered(provider, &client_settings(), &context(&[]), TIME)
            .await
            .unwrap_err();
        assert!(matches!(error, LlmError::Unsupported(_)), "{error}");
    }
}

#[tokio::test]
async fn server_listing_its_models_is_available() {
    let context = context(&[("TEST_KEY", KEY)]);
    let server = FakeApi::start([Reply::Hang]);
    let settings = |base_url: &str| settings(base_url);
    let current_availability =
        availability("gateway", &settings(&server.base_url()), &context, TIME).await;
    assert_eq!(current_availability, Availability::Available);
    let address = server.base_url();
    drop(server);
    let missing_availability = availability("gateway", &settings(&address), &context, TIME).await;
    assert!(
        matches!(
            missing_availability,
            Availability::Unavailable(LlmError::Transport(_))
        ),
        "{missing_availability:?}"
    );
    let mute = RawServer::mute();
    let silent = availability(
        "gateway",
        &settings(&mute.base_url()),
        &context,
        Duration::from_millis(200),
    )
    .await;
    assert!(
        matches!(silent, Availability::Unavailable(LlmError::Timeout { .. })),
        "{silent:?}"
    );
}
