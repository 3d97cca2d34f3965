//! The published schema describes exactly what is written.

use crucible_attest::{
    CHANGE_PREDICATE, CHANGE_PREDICATE_V2, GateVerdict, SpecProof, Statement, statements,
};
use serde_json::Value;

use crate::sample::{AT, Sample, change, codes, instant, judge, new_signer, policy_of};

const SCHEMA: &str = include_str!("../../../../docs/schemas/crucible-change-v1.schema.json");
const SCHEMA_V2: &str = include_str!("../../../../docs/schemas/crucible-change-v2.schema.json");

fn predicate(payload: &[u8]) -> Value {
    let statement: Statement = serde_json::from_slice(payload).unwrap();
    statement.predicate
}

#[test]
fn predicate_follows_the_published_schema() {
    let schema = |text| jsonschema::validator_for(&serde_json::from_str(text).unwrap()).unwrap();
    let (first, second) = (schema(SCHEMA), schema(SCHEMA_V2));
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
    let mut of_spec = all.clone();
    of_spec.spec = Some(spec_proof());
    let mut approved = change();
    approved.approvals.push(crucible_attest::Approval {
        keyid: "SHA256:x".to_owned(),
        sig: "AAAA".to_owned(),
    });
    let mut accepted = change();
    accepted.accepted = vec!["verify-nothing-fixed".to_owned()];
    for change in [change(), all, least, of_spec, approved, accepted] {
        let (schema, other) = match change.predicate_type() {
            CHANGE_PREDICATE => (&first, &second),
            _ => (&second, &first),
        };
        let [payload, ..] = statements(&change, &"a".repeat(40), &"7".repeat(40)).unwrap();
        let document = predicate(&payload);
        let problem = schema
            .iter_errors(&document)
            .next()
            .map(|error| error.to_string());
        assert_eq!(problem, None, "{document:#}");
        assert!(
            !other.is_valid(&document),
            "each version has its own fields"
        );
        let mut wrong = document.clone();
        wrong["prompt"] = "text".into();
        assert!(!schema.is_valid(&wrong));
    }
}

fn spec_proof() -> SpecProof {
    SpecProof {
        spec: "area".to_owned(),
        format: "crucible".to_owned(),
        task: "T-001".to_owned(),
        requirements: vec!["R-001".to_owned()],
        matrix: change().patch,
        proven: 1,
        partial: 0,
        none: 0,
    }
}

#[tokio::test]
async fn version_of_the_predicate_follows_its_fields() {
    let mut change = change();
    change.spec = Some(spec_proof());
    let sample = Sample::new(change).await;
    assert_eq!(codes(&sample.judge()), Vec::<String>::new());
    // A signer states the wrong version: the fields of one under the name of the other.
    let signer = new_signer(&sample.room.path().join("other")).await;
    for (has_spec, from, to) in [
        (true, CHANGE_PREDICATE_V2, CHANGE_PREDICATE),
        (false, CHANGE_PREDICATE, CHANGE_PREDICATE_V2),
        (true, CHANGE_PREDICATE_V2, "urn:crucible:change:v3"),
    ] {
        let mut change = sample.change.clone();
        change.spec = change.spec.filter(|_| has_spec);
        let payloads = statements(&change, &sample.id, &sample.tree).unwrap();
        let payloads = payloads.map(|payload| {
            let text = String::from_utf8(payload).unwrap();
            text.replace(from, to).into_bytes()
        });
        let note = signer.sign_all(&payloads).await.unwrap();
        let judged = judge(&policy_of(&signer), &sample.commit, &note, instant(AT));
        let expected = match to {
            CHANGE_PREDICATE | CHANGE_PREDICATE_V2 => "attest-statement-broken",
            _ => "attest-format-unknown",
        };
        assert_eq!(codes(&judged), [expected], "{from} {to}");
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
