//! The bytes of a schema in a request: a server that enforces it lets the model write the keys in this
//! order.

use crucible_llm::LlmBackend;
use crucible_model::strict_json::closed;
use crucible_testkit::{FakeApi, Family, Reply};
use serde_json::{Value, json};

use crate::support::{ask, context, http_backend, http_providers};

/// Two objects and a list, with keys that are not in alphabetical order.
fn schema() -> Value {
    let issue = closed([
        ("where", json!({"type": "string"})),
        ("how", json!({"type": "string"})),
    ]);
    closed([
        (
            "seats",
            json!({"type": "array", "items": issue, "minItems": 3, "maxItems": 7}),
        ),
        ("reason", json!({"type": "string"})),
        ("approved", json!({"type": "boolean"})),
    ])
}

/// The schema as this provider sends it: its bytes and its value.
async fn sent(provider: &str) -> (String, Value) {
    let server = FakeApi::start([Reply::Answer("{}".to_owned())]);
    let backend = http_backend(provider, &server.base_url(), &context(&[("TEST_KEY", "k")]));
    let mut inv = ask("text");
    let format = json!({"name": "verdict", "strict": true, "schema": schema()});
    let format = json!({"type": "json_schema", "json_schema": format});
    inv.metadata.insert("response_format".to_owned(), format);
    backend.invoke(inv).await.unwrap();
    let mut requests = server.requests();
    assert_eq!(requests.len(), 1);
    let request = requests.remove(0);
    let at = match request.family {
        Family::Anthropic => "/output_config/format/schema",
        Family::OpenAi | Family::Gemini => "/response_format/json_schema/schema",
    };
    (request.raw, request.body.pointer(at).unwrap().clone())
}

#[tokio::test]
async fn every_provider_sends_required_order() {
    for provider in http_providers() {
        let (raw, _) = sent(provider).await;
        // Only as a key of `properties` does one of these stand before an object.
        let places: Vec<usize> = ["seats", "where", "how", "reason", "approved"]
            .map(|key| place(&raw, key))
            .into();
        assert!(places.is_sorted(), "{provider}: {raw}");
    }
}

#[tokio::test]
async fn only_own_servers_get_list_bounds() {
    let mut unbounded = schema();
    for bound in ["minItems", "maxItems"] {
        unbounded["properties"]["seats"]
            .as_object_mut()
            .unwrap()
            .remove(bound)
            .unwrap();
    }
    for provider in http_providers() {
        let expected = if ["gateway", "ollama"].contains(&provider) {
            schema()
        } else {
            unbounded.clone()
        };
        assert_eq!(sent(provider).await.1, expected, "{provider}");
    }
}

fn place(raw: &str, key: &str) -> usize {
    let key = format!("\"{key}\":{{");
    assert_eq!(raw.matches(&key).count(), 1, "{raw}");
    raw.find(&key).unwrap()
}
