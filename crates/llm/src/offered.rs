//! Lists the models of a provider's server, with their context sizes and prices.
//!
//! It takes one `GET` and no model call. The lists of OpenAI, OpenRouter, Anthropic and local servers
//! have the same outline (`data`, each with an `id`). Other fields differ, and missing ones are not
//! guessed.
//!
//! Invariants: nothing here is requested unless the caller needs the list or the availability. At most
//! [`Offered::LIMIT`] models are kept, and a longer list is reported as cut.

use std::time::Duration;

use crucible_host::http::Payload;
use serde::Deserialize;
use serde_json::Value;

use crate::answer_body::{self, Expected};
use crate::endpoint::Endpoint;
use crate::error::LlmError;
use crate::http_fault::CallTarget;
use crate::price::{Price, micro_dollars};

/// The models of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    /// The models, in the server's order.
    pub models: Vec<OfferedModel>,
    /// Whether the list is complete.
    pub extent: ListExtent,
}

/// Whether a list is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListExtent {
    /// It is.
    Whole,
    /// The server has more models.
    Cut,
}

/// A model of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedModel {
    /// The value for `model`: one line of at most 200 characters.
    pub id: String,
    /// The context size in tokens, if the server states it.
    pub context_tokens: Option<u64>,
    /// The price, if the server states it.
    pub price: Price,
}

/// The model list of a server.
pub struct ModelCatalogue {
    provider: &'static str,
    endpoint: Endpoint,
}

impl Offered {
    /// The most models that are kept.
    pub const LIMIT: usize = 2_000;
}

impl ModelCatalogue {
    /// Creates the list at this address.
    pub(crate) fn new(provider: &'static str, endpoint: Endpoint) -> Self {
        Self { provider, endpoint }
    }

    /// Requests the list.
    ///
    /// # Errors
    ///
    /// The error for the connection or the status; [`LlmError::ProviderOutage`] if the answer is not a list of models.
    pub async fn models(&self, timeout: Duration) -> Result<Offered, LlmError> {
        let target = CallTarget {
            provider: self.provider,
            model: "list of models",
        };
        let body = self
            .endpoint
            .send(target, self.endpoint.time(timeout), Payload::Nothing)
            .await?;
        let expected = Expected {
            what: "a list of models",
            next: "check that base_url names a model server that lists them",
        };
        answer_body::read(target, &body, expected).map(Listing::offered)
    }
}

#[derive(Deserialize)]
struct Listing {
    data: Vec<Entry>,
    /// Anthropic's field for further pages.
    #[serde(default)]
    has_more: Value,
}

/// Only the fields that are used.
#[derive(Deserialize)]
struct Entry {
    id: String,
    /// The fields of OpenRouter, vLLM and Anthropic, in this order.
    #[serde(default)]
    context_length: Value,
    #[serde(default)]
    max_model_len: Value,
    #[serde(default)]
    max_input_tokens: Value,
    #[serde(default)]
    pricing: Value,
}

impl Listing {
    fn offered(self) -> Offered {
        let cut = self.data.len() > Offered::LIMIT || self.has_more == true;
        Offered {
            models: self
                .data
                .into_iter()
                .take(Offered::LIMIT)
                .map(Entry::model)
                .collect(),
            extent: if cut {
                ListExtent::Cut
            } else {
                ListExtent::Whole
            },
        }
    }
}

impl Entry {
    fn model(self) -> OfferedModel {
        let contexts = [
            &self.context_length,
            &self.max_model_len,
            &self.max_input_tokens,
        ];
        OfferedModel {
            id: answer_body::model_id(&self.id),
            context_tokens: contexts
                .into_iter()
                .find_map(Value::as_u64)
                .filter(|tokens| *tokens > 0),
            price: price(&self.pricing),
        }
    }
}

/// A price in OpenRouter's form, in dollars per token. It is -1 if the price depends on the request.
fn price(pricing: &Value) -> Price {
    let price_of = |name: &str| micro_dollars_per_million(pricing[name].as_str()?);
    match price_of("prompt").zip(price_of("completion")) {
        Some((input, output)) => Price::PerMillionTokens { input, output },
        None => Price::Unknown,
    }
}

fn micro_dollars_per_million(dollars_per_token: &str) -> Option<u64> {
    let dollars: f64 = dollars_per_token.parse().ok()?;
    // A dollar per token is a thousand times the price of the most expensive model.
    micro_dollars(dollars * 1e6).filter(|_| dollars <= 1.0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn listing(body: Value) -> Offered {
        serde_json::from_value::<Listing>(body).unwrap().offered()
    }

    #[test]
    fn prices_become_whole_numbers_without_loss() {
        for (stated, micro) in [
            ("0.000003", Some(3_000_000)),
            ("0.000015", Some(15_000_000)),
            ("0.00000005", Some(50_000)),
            ("0.000000000001", Some(1)),
            ("0.0000000000011", Some(2)),
            ("3e-6", Some(3_000_000)),
            ("0", Some(0)),
            ("-1", None),
            ("NaN", None),
            ("inf", None),
            ("2", None),
            ("free", None),
            ("", None),
        ] {
            assert_eq!(micro_dollars_per_million(stated), micro, "{stated}");
        }
    }

    #[test]
    fn incomplete_price_is_ignored() {
        for pricing in [
            json!({"prompt": "0.1"}),
            json!({"prompt": "0.1", "completion": 0.1}),
            json!(["0.1"]),
            json!(7),
        ] {
            assert_eq!(price(&pricing), Price::Unknown, "{pricing}");
        }
    }

    #[test]
    fn context_size_is_read_from_any_server_field() {
        let models = listing(json!({"data": [
            {"id": "a", "context_length": 1000}, {"id": "b", "max_model_len": 2000},
            {"id": "c", "max_input_tokens": 3000}, {"id": "d", "context_length": null},
            {"id": "e", "context_length": -1}, {"id": "f", "context_length": 0},
        ]}));
        let contexts: Vec<_> = models
            .models
            .iter()
            .map(|model| model.context_tokens)
            .collect();
        assert_eq!(
            contexts,
            [Some(1000), Some(2000), Some(3000), None, None, None]
        );
    }

    #[test]
    fn model_list_is_cut_at_limit() {
        let entries = |count: usize| json!({"data": vec![json!({"id": "m"}); count]});
        let full_offer = listing(entries(Offered::LIMIT));
        assert_eq!(
            (full_offer.models.len(), full_offer.extent),
            (Offered::LIMIT, ListExtent::Whole)
        );
        let cut = listing(entries(Offered::LIMIT + 1));
        assert_eq!(
            (cut.models.len(), cut.extent),
            (Offered::LIMIT, ListExtent::Cut)
        );
        assert_eq!(
            listing(json!({"data": [], "has_more": true})).extent,
            ListExtent::Cut
        );
    }

    #[test]
    fn model_ids_stay_whole_on_one_line() {
        let id = |id: &str| listing(json!({"data": [{"id": id}]})).models.remove(0).id;
        assert_eq!(id("/models/q.gguf"), "/models/q.gguf");
        assert_eq!(id("a\u{1b}[2J\nb\u{202e}"), "a[2Jb");
        assert_eq!(id(&"x".repeat(9_999)).len(), 200);
    }
}
