//! The published schema describes exactly what is written.

use crucible_attest::{GateVerdict, Statement, statements};
use serde_json::Value;

use crate::sample::change;

const SCHEMA: &str = include_str!("../../../../docs/schemas/crucible-change-v1.schema.json");

fn predicate(payload: &[u8]) -> Value {
    let statement: Statement = serde_json::from_slice(payload).unwrap();
    statement.predicate
}

#[test]
fn predicate_follows_the_published_schema() {
    let schema = jsonschema::validator_for(&serde_json::from_str(SCHEMA).unwrap()).unwrap();
    let mut all = change();
    all.agents = vec!["claude".to_owned()];
    all.carried_from = Some(crucible_attest::CarriedFrom {
        commit: "c".repeat(40),
        statement: all.patch,
    });
    let mut least = change();
    (least.request, least.pack) = (None, None);
    least.calls.clear();
    (
        least.verification.strength,
        least.verification.broken_change,
    ) = (None, None);
    for change in [change(), all, least] {
        let [payload, ..] = statements(&change, &"a".repeat(40), &"7".repeat(40)).unwrap();
        let document = predicate(&payload);
        let problem = schema
            .iter_errors(&document)
            .next()
            .map(|error| error.to_string());
        assert_eq!(problem, None, "{document:#}");
        let mut wrong = document.clone();
        wrong["prompt"] = "text".into();
        assert!(!schema.is_valid(&wrong));
    }
}

#[test]
fn only_a_pass_is_summarised_as_one() {
    for verdict in [
        GateVerdict::Failed,
        GateVerdict::Skipped,
        GateVerdict::Neutral,
    ] {
        let mut change = change();
        change.verification.result = verdict;
        change.verification.gates[1].result = verdict;
        let [_, result, summary] = statements(&change, &"a".repeat(40), &"7".repeat(40)).unwrap();
        assert_eq!(predicate(&result)["result"], "FAILED");
        assert_eq!(predicate(&result)["failedTests"][0], "tests");
        assert_eq!(predicate(&summary)["verificationResult"], "FAILED");
        assert_eq!(predicate(&summary)["verifiedLevels"][0], "FAILED");
    }
}
