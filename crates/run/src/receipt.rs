//! `receipt.json`: the models called, the cost, and the end of the run. Derived from the events;
//! edits have no effect.

use crucible_ledger::EventRecord;
use crucible_llm::{Cost, LlmReceipt, PipelineReceipt, ReceiptWarning};
use crucible_model::RunId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::contract::{COUNCIL, RunRecord};
use crate::error::RunError;
use crate::event_kind::EventKind;
use crate::layout::{self, RunDir};

/// The event field with a call's receipt data.
pub(crate) const LLM: &str = "llm";

/// The receipt of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunReceipt {
    /// `crucible-receipt-v1`.
    pub schema_version: String,
    /// The run, under the two names that receipts use for their subject.
    pub receipt_id: RunId,
    /// The run.
    pub spec_id: RunId,
    /// Every call in order.
    pub phases: Vec<PhaseReceipt>,
    /// How the work was done.
    pub pipeline: PipelineReceipt,
}

/// One call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PhaseReceipt {
    /// The role that asked.
    pub phase_id: String,
    /// `success` when the model answered, whatever became of the answer; otherwise `failed`.
    pub status: String,
    /// What is known of the call.
    pub llm: LlmReceipt,
    /// What there is to warn of.
    pub warnings: Vec<ReceiptWarning>,
}

impl RunReceipt {
    /// The receipt of a run with these events.
    pub(crate) fn new(record: &RunRecord, events: &[EventRecord]) -> Self {
        let phases = events
            .iter()
            .filter_map(|event| phase(record, event))
            .collect();
        Self {
            schema_version: "crucible-receipt-v1".to_owned(),
            receipt_id: record.run_id.clone(),
            spec_id: record.run_id.clone(),
            phases,
            pipeline: PipelineReceipt::default(),
        }
    }
}

/// Writes the receipt of a run.
pub(crate) fn write(
    dir: &RunDir,
    record: &RunRecord,
    events: &[EventRecord],
) -> Result<(), RunError> {
    dir.write_json_recorded(layout::RECEIPT, &RunReceipt::new(record, events))
        .map(drop)
}

/// Returns what is known of the call that an event ends, if it ends one.
pub(crate) fn phase(record: &RunRecord, event: &EventRecord) -> Option<PhaseReceipt> {
    let role = || {
        event
            .body
            .get("role")
            .and_then(Value::as_str)
            .unwrap_or(&event.role)
            .to_owned()
    };
    let phase_id = match EventKind::parse(&event.event) {
        Some(EventKind::ModelAnswered | EventKind::ModelFailed) => role(),
        _ => return None,
    };
    let mut llm: LlmReceipt = serde_json::from_value(event.body.get(LLM)?.clone()).ok()?;
    llm.cost = llm.cost.or_else(|| cost_of_council(&event.body));
    let status = if llm.error.is_none() {
        "success"
    } else {
        "failed"
    }
    .to_owned();
    let mut warnings = record.warnings.clone();
    warnings.extend(ReceiptWarning::exhausted_budget(&llm));
    let of_council = event
        .body
        .get(COUNCIL)
        .and_then(|phase_object| phase_object.get("warnings"))
        .and_then(Value::as_array);
    warnings.extend(
        of_council
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(|message| ReceiptWarning {
                kind: "council_degraded".to_owned(),
                message: message.to_owned(),
            }),
    );
    Some(PhaseReceipt {
        phase_id,
        status,
        llm,
        warnings,
    })
}

/// Returns the total cost of a council's calls, if each is known. They are booked separately from its answer.
fn cost_of_council(body: &Value) -> Option<Cost> {
    let usage = body.get(COUNCIL)?.get("usage")?;
    if usage.get("calls_without_cost")?.as_u64()? > 0 {
        return None;
    }
    let basis = serde_json::from_value(usage.get("cost_basis")?.clone()).ok()?;
    Some(Cost {
        micro_dollars: usage.get("micro_dollars")?.as_u64()?,
        basis,
        price_date: None,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use crucible_llm::{Fault, LlmError, Resource};
    use crucible_model::Digest;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::gatekeeper::tests::record;

    fn event(kind: &str, body: Value) -> EventRecord {
        EventRecord {
            seq: 1,
            run: "r".parse().unwrap(),
            ts: "2026-01-31T09:30:00Z".parse().unwrap(),
            role: "fixer".to_owned(),
            event: kind.to_owned(),
            path: None,
            key: None,
            artifacts: Vec::new(),
            body,
            prev: Digest::ZERO,
            hash: Digest::ZERO,
        }
    }

    /// An event of a run: an answer, a failure, something else, or an unreadable body.
    fn events() -> impl Strategy<Value = EventRecord> {
        let answer = (
            "[a-z-]{1,12}",
            "[a-z./-]{1,12}",
            proptest::option::of(0u64..9999),
        )
            .prop_map(|(provider, model, tokens)| {
                let llm = LlmReceipt {
                    provider: Some(provider),
                    model_used: Some(model),
                    tokens_input: tokens,
                    ..LlmReceipt::default()
                };
                event("MODEL_ANSWERED", json!({ "role": "patchmaker", LLM: llm }))
            });
        let failure = (0u8..3).prop_map(|which| {
            let error = match which {
                0 => LlmError::BudgetExceeded {
                    resource: Resource::Calls,
                    limit: 1,
                    attempted: 2,
                },
                1 => LlmError::ProviderAuth(Fault::new("p", "m", "w", "n")),
                _ => LlmError::ProviderOutage(Fault::new("p", "m", "w", "n")),
            };
            let llm = LlmReceipt::of_failure("p", "m", &error, Duration::from_secs(3));
            event("MODEL_FAILED", json!({ LLM: llm }))
        });
        let other = "[A-Z_]{1,20}".prop_map(|kind| event(&kind, json!({})));
        let unread = Just(event("MODEL_ANSWERED", json!({ LLM: "words" })));
        prop_oneof![answer, failure, other, unread]
    }

    mod properties {
        use super::*;

        proptest! {
            /// Seed 002, properties 2 and 10.
            #[test]
            fn receipt_names_strategy_and_models(
                events in proptest::collection::vec(events(), 0..12),
            ) {
                let receipt = RunReceipt::new(&record(Path::new("/r"), &[]), &events);
                let document = serde_json::to_value(&receipt).unwrap();
                prop_assert_eq!(&document["pipeline"]["execution_strategy"], "controlled");
                let reported_count = events.iter().filter(|event| event.body.get(LLM).is_some_and(Value::is_object)).count();
                prop_assert_eq!(receipt.phases.len(), reported_count);
                for phase in document["phases"].as_array().unwrap() {
                    let llm = &phase["llm"];
                    prop_assert!(llm["provider"].is_string() && llm["model_used"].is_string());
                    prop_assert_eq!(phase["status"] == "failed", llm["error"].is_string());
                    prop_assert_eq!(llm["budget_exhausted"] == true, llm["error"] == "budget_exceeded");
                    let warns = phase["warnings"].as_array().unwrap().iter();
                    let warned = warns.filter(|warning| warning["type"] == "llm_budget_exhausted").count();
                    prop_assert_eq!(warned == 1, llm["budget_exhausted"] == true);
                }
                // An older or newer reader gets the fields it knows.
                prop_assert_eq!(serde_json::from_value::<RunReceipt>(document).unwrap(), receipt);
            }
        }
    }

    #[test]
    fn later_receipt_version_is_read_partially() {
        let text = r#"{"provider":"p","model_used":"m","tokens_cached":7,"timed_out":null}"#;
        let llm: LlmReceipt = serde_json::from_str(text).unwrap();
        assert_eq!((llm.provider.as_deref(), llm.timed_out), (Some("p"), None));
    }
}
