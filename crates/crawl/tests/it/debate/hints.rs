//! The hints for a backend, by its capabilities.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use crucible_crawl::{DebateRounds, PlanAuthor, PlanCritic, debate};
use crucible_llm::{
    Backend, BackendParts, BudgetLimits, CallBudget, Capabilities, ClientExtra, ClientOptions,
    Limit, LlmBackend, LlmError, LlmInvocation, LlmResult, ModelClient, Origin, Recording,
    RetryAllowance, RetryPolicy, Speaker, StructuredOutput,
};
use crucible_model::EditFormat;
use crucible_secrets::Scanner;
use serde_json::{Value, json};

use super::support::{Kept, TIMEOUT, critique, inspection, plan, step, synthesis};
use crate::ears::Ears;

/// Plays both roles, records the hints of each call, and supports none.
struct Deaf(Arc<Mutex<Vec<BTreeMap<String, Value>>>>);

impl LlmBackend for Deaf {
    fn invoke<'s, 'f>(
        &'s self,
        inv: LlmInvocation,
    ) -> Pin<Box<dyn Future<Output = Result<LlmResult, LlmError>> + Send + 'f>>
    where
        's: 'f,
        Self: 'f,
    {
        let steps = [step("build", "cargo build")];
        let answer = match inv.phase_id.as_str() {
            "crawl-draft" => plan(&steps),
            "crawl-critique" => critique(&[], true),
            "crawl-synthesis" => synthesis(&steps),
            other => json!(other),
        };
        assert_eq!(inv.spec_id, "crawl-7");
        let ignored: Vec<&String> = inv.metadata.keys().collect();
        let result = LlmResult {
            raw_response: answer.to_string(),
            provider: "deaf".to_owned(),
            model_used: "m".to_owned(),
            tokens_input: None,
            tokens_output: None,
            timed_out: None,
            extensions: BTreeMap::from([(LlmResult::IGNORED_METADATA.to_owned(), json!(ignored))]),
        };
        self.0.lock().unwrap().push(inv.metadata);
        Box::pin(async move { Ok(result) })
    }
}

fn client(form: StructuredOutput, seen: &Arc<Mutex<Vec<BTreeMap<String, Value>>>>) -> ModelClient {
    let parts = BackendParts {
        provider: "deaf",
        default_model: "m".to_owned(),
        max_output_tokens: 9,
        extra: ClientExtra::NONE,
        capabilities: Capabilities {
            edit_format: EditFormat::WholeFile,
            structured_output: form,
        },
        speaker: Speaker {
            provider: "deaf".to_owned(),
            model: "m".to_owned(),
        },
        origin: Origin::Live,
        parameters: BTreeMap::new(),
        inner: Box::new(Deaf(Arc::clone(seen))),
    };
    let limits = BudgetLimits {
        calls: Limit::Unlimited,
        tokens: Limit::Unlimited,
        micro_dollars: Limit::Unlimited,
    };
    let options = ClientOptions {
        scanner: Scanner::builtin(),
        recording: Recording::Off,
        retry: RetryPolicy::NEVER,
        retries: RetryAllowance::unlimited(),
        budget: CallBudget::new(limits),
        prices: Arc::default(),
    };
    ModelClient::new(Backend::new(parts), options)
}

#[tokio::test]
async fn backend_without_token_limit_is_noted() {
    for (form, question) in [
        (StructuredOutput::JsonSchema, Some("json_schema")),
        (StructuredOutput::JsonMode, Some("json_object")),
        (StructuredOutput::None, None),
    ] {
        let seen = Arc::default();
        let (gpt, claude) = (
            PlanAuthor::new(client(form, &seen)),
            PlanCritic::new(client(form, &seen)),
        );
        let (about, mut kept, heard) = (inspection(), Kept::default(), Ears::default());
        let rounds = DebateRounds::default();
        let outcome = debate(
            &gpt, &claude, &about, rounds, TIMEOUT, "crawl-7", &mut kept, &heard,
        )
        .await
        .unwrap();
        let told = |owner: &str| {
            format!(
                "deaf does not support a token limit: the budget of {owner}'s answers was checked only afterwards"
            )
        };
        assert_eq!(outcome.warnings, [told("gpt"), told("claude")]);
        let hints = seen.lock().unwrap();
        let budgets: Vec<&Value> = hints.iter().map(|hints| &hints["max_tokens"]).collect();
        assert_eq!(budgets, [&json!(2000), &json!(2000), &json!(4000)]);
        for hints in hints.iter() {
            assert_eq!(
                hints
                    .get("response_format")
                    .map(|format| format["type"].clone()),
                question.map(Value::from)
            );
        }
    }
}
