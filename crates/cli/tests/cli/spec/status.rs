//! `crucible status` as people and programs meet it.

use std::time::Duration;

use crucible_spec::PhaseId;
use serde_json::{Value, json};

use super::written::{SPEC, WrittenSpec};
use crate::support::{Fixture, Ran, Snapshot};

const HOUR: Duration = Duration::from_secs(3_600);

/// The document, checked against its schema and for its size.
#[track_caller]
fn document(ran: Ran) -> Value {
    let ran = ran.ok();
    assert!(ran.stdout.len() < 8_192, "{} bytes", ran.stdout.len());
    let document = ran.json();
    let schema = include_str!("../../../../../docs/schemas/status-json.v1.schema.json");
    let schema = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
    let problem = schema
        .iter_errors(&document)
        .next()
        .map(|error| error.to_string());
    assert_eq!(problem, None, "{document:#}");
    document
}

#[test]
fn status_shows_phases_usage_and_next_step() {
    let fixture = Fixture::new();
    let mut spec = WrittenSpec::new(fixture.path("project"));
    spec.success(PhaseId::Requirements, 49 * HOUR);
    spec.success(PhaseId::Design, 3 * HOUR);
    spec.failure(PhaseId::Tasks, 2 * HOUR);
    spec.dry_run(PhaseId::Review, HOUR);
    let before = Snapshot::take([spec.root(), &fixture.home()]);
    let ran = spec.call(&fixture, ["status", SPEC]).run().ok();
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(
        lines,
        [
            "export-data",
            " phase         state    age    model    tokens            cost                warnings",
            " requirements  done     2d 1h  model-1  1200 in, 340 out  $0.0015 (estimate)",
            " design        done     3h     model-1  1200 in, 340 out  $0.0015 (estimate)",
            " tasks         failed   2h",
            " review        dry run  1h",
            " fixup         not run",
            " final         not run",
            "",
            "tasks failed: provider: the model is out of reach",
            "the runs above, together: 2400 in, 680 out, $0.003",
            "next: crucible resume export-data --phase tasks (it failed)",
        ]
    );
    before.is_still(&Snapshot::take([spec.root(), &fixture.home()]));
    assert!(!fixture.data().exists(), "no ledger is made");
}

#[test]
fn programs_read_the_fields_of_the_seed() {
    let fixture = Fixture::new();
    let mut spec = WrittenSpec::done(&fixture, PhaseId::Review);
    let receipt = spec.success_with(PhaseId::Fixup, HOUR, |value| {
        value["phases"][0]["fixups"] = json!({ "stage": "pending", "files": [{ "path": "a.rs" }] });
    });
    let document = document(spec.call(&fixture, ["status", SPEC, "--json"]).run());
    assert_eq!(document["schema_version"], "status-json.v1");
    assert_eq!(document["spec_id"], SPEC);
    assert_eq!(
        (&document["pending_fixups"], &document["has_errors"]),
        (&json!(1), &json!(false))
    );
    let phases = document["phase_statuses"].as_array().unwrap();
    assert_eq!(
        (&phases[4]["phase_id"], &phases[4]["status"]),
        (&json!("fixup"), &json!("success"))
    );
    let id = phases[4]["receipt_id"].as_str().unwrap();
    assert!(receipt.ends_with(format!("{id}.json")));
    assert_eq!(
        (&phases[5]["status"], &phases[5]["receipt_id"]),
        (&json!("not_run"), &Value::Null)
    );
    assert_eq!(
        document["next"]["command"],
        "crucible resume export-data --phase fixup --apply-fixups"
    );
}

#[test]
fn status_document_stays_small_with_huge_inputs() {
    let fixture = Fixture::new();
    let mut spec = WrittenSpec::new(fixture.path("project"));
    for phase in PhaseId::ALL {
        spec.success_with(phase, HOUR, |value| {
            let entry = &mut value["phases"][0];
            entry["llm"]["model_used"] = json!("\u{1b}[2J\u{202e}\"\\".repeat(5_000));
            entry["warnings"] = json!(vec![
                json!({ "type": "x", "message": "\"".repeat(5_000) });
                20
            ]);
            entry["error"] =
                json!({ "class": "x".repeat(5_000), "message": "\u{1f6d1}".repeat(5_000) });
        });
    }
    let large = "a line of an artifact\n".repeat(200_000);
    for phase in PhaseId::ALL {
        std::fs::write(
            spec.path(&format!("artifacts/{}", phase.artifact())),
            &large,
        )
        .unwrap();
    }
    for place in 0..200 {
        std::fs::write(
            spec.path(&format!("receipts/{place}-{}.json", "\u{202e}".repeat(60))),
            "{}",
        )
        .unwrap();
    }
    let document = document(spec.call(&fixture, ["status", SPEC, "--json"]).run());
    assert_eq!(document["has_errors"], true);
    assert_eq!(document["problems"].as_array().unwrap().len(), 4);
    assert!(
        document["problems_left_out"].as_u64().unwrap() > 10,
        "{document:#}"
    );
    let ran = spec.call(&fixture, ["status", SPEC]).run().ok();
    assert!(
        !ran.stdout.contains(['\u{1b}', '\u{202e}']),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.len() < 8_192);
}

#[test]
fn invalid_phase_is_reported_and_comes_next() {
    let fixture = Fixture::new();
    let spec = WrittenSpec::done(&fixture, PhaseId::Tasks);
    let status = || document(spec.call(&fixture, ["status", SPEC, "--json"]).run());
    let words = |document: &Value| -> Vec<String> {
        let phases = document["phase_statuses"].as_array().unwrap();
        phases
            .iter()
            .map(|phase| phase["status"].as_str().unwrap().to_owned())
            .collect()
    };
    std::fs::write(spec.path("artifacts/10-design.md"), "edited\n").unwrap();
    let document = status();
    assert_eq!(
        words(&document),
        [
            "success", "changed", "stale", "not_run", "not_run", "not_run"
        ]
    );
    assert_eq!(
        (&document["has_errors"], &document["next"]["phase_id"]),
        (&json!(true), &json!("design"))
    );
    let receipt = std::fs::read_dir(spec.path("receipts"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let receipt = receipt
        .into_iter()
        .find(|path| path.to_string_lossy().contains("/requirements-"))
        .unwrap();
    std::fs::write(&receipt, "{}").unwrap();
    let document = status();
    assert_eq!(
        (words(&document)[0].as_str(), &document["next"]["phase_id"]),
        ("damaged", &json!("requirements"))
    );
    assert_eq!(document["problems"][0]["code"], "gate-receipt-unreadable");
    let ran = spec.call(&fixture, ["status", SPEC]).run().ok();
    assert!(
        ran.stdout.contains("gate-receipt-unreadable"),
        "{}",
        ran.stdout
    );
}

#[test]
fn unknown_spec_is_a_usage_error() {
    let fixture = Fixture::new();
    let spec = WrittenSpec::new(fixture.path("project"));
    let error = spec
        .call(&fixture, ["status", "other", "--json"])
        .run()
        .exits(2)
        .error();
    assert!(
        error["error"].as_str().unwrap().contains("no spec other"),
        "{error}"
    );
    for bad in ["..", "a/b", "ä", &"a".repeat(300)] {
        spec.call(&fixture, ["status", bad, "--json"])
            .run()
            .exits(2)
            .error();
    }
}

#[test]
fn fixup_usage_remains_shown_after_applying() {
    let fixture = Fixture::new();
    let mut spec = WrittenSpec::done(&fixture, PhaseId::Review);
    let stage = |stage: &'static str| {
        move |value: &mut Value| {
            value["phases"][0]["fixups"] = json!({ "stage": stage, "files": [{ "path": "a.rs" }] });
            if stage == "applied" {
                value["phases"][0]["attempts"] = 0.into();
                value["phases"][0].as_object_mut().unwrap().remove("llm");
            }
        }
    };
    spec.success_with(PhaseId::Fixup, HOUR, stage("pending"));
    let proposed = document(spec.call(&fixture, ["status", SPEC, "--json"]).run());
    let applied = spec.success_with(PhaseId::Fixup, HOUR / 2, stage("applied"));
    let status = document(spec.call(&fixture, ["status", SPEC, "--json"]).run());
    let fixup = &status["phase_statuses"][4];
    let id = applied.file_stem().unwrap().to_str().unwrap();
    assert_eq!(
        (&fixup["receipt_id"], &fixup["tokens_input"]),
        (&json!(id), &json!(1200)),
        "{status:#}"
    );
    assert_eq!(
        (&status["tokens_input"], &status["pending_fixups"]),
        (&proposed["tokens_input"], &json!(0))
    );
}
