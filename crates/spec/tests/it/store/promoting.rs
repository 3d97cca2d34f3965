//! Promotion: what is written, where, and what is refused before that.

use crucible_model::{Digest, UniqueJson, to_canonical_json};
use crucible_spec::{FileState, PhaseId, PhaseOutput, PhaseStatus, SpecError};
use serde_json::Value;

use super::common::{Fixture, document, draft, fixture};

fn value(fixture: &Fixture, id: &str) -> Value {
    let UniqueJson(value) =
        serde_json::from_str(&fixture.text(&format!("receipts/{id}.json"))).unwrap();
    value
}

#[test]
fn outputs_and_receipt_are_promoted_together() {
    let fixture = fixture();
    assert!(!fixture.store.exists().unwrap());
    assert!(matches!(
        fixture.store.state(None),
        Err(SpecError::Unknown { .. })
    ));
    let written = fixture.success(PhaseId::Requirements);
    assert_eq!(written.receipt_id, "requirements-20260131-093000-0001");
    assert_eq!(
        (written.spec_id.as_str(), written.sequence),
        ("export-data", 1)
    );
    assert_eq!(fixture.names("."), ["artifacts", "lock", "receipts"]);
    assert_eq!(fixture.text("artifacts/00-requirements.md"), "requirements");
    assert_eq!(
        fixture
            .store
            .read("artifacts/00-requirements.md")
            .unwrap()
            .unwrap(),
        b"requirements"
    );
    assert_eq!(fixture.store.read("artifacts/10-design.md").unwrap(), None);

    let state = fixture.state();
    assert_eq!((state.problems.as_slice(), state.receipts), (&[][..], 1));
    let phase = state.phase(PhaseId::Requirements).unwrap();
    assert_eq!(phase.newest.as_ref(), Some(&written));
    assert_eq!(phase.last_success.as_ref(), Some(&written));
    assert_eq!(phase.outputs.len(), 1);
    assert_eq!(phase.outputs[0].found, FileState::Same);
    assert_eq!(
        phase.outputs[0].record.sha256,
        Digest::compute(b"requirements")
    );
    assert!(state.phase(PhaseId::Design).unwrap().newest.is_none());
    assert!(fixture.ledger().verify(&[]).unwrap().passes());
}

#[test]
fn receipt_is_canonical_json_with_full_digest() {
    let fixture = fixture();
    let id = fixture.success(PhaseId::Design).receipt_id;
    let mut value = value(&fixture, &id);
    let text = fixture.text(&format!("receipts/{id}.json"));
    assert_eq!(
        text.into_bytes(),
        [to_canonical_json(&value).unwrap(), b"\n".to_vec()].concat()
    );
    let stated = value.as_object_mut().unwrap().remove("digest").unwrap();
    assert_eq!(stated, Digest::of_canonical(&value).unwrap().to_string());
    assert_eq!(value["schema_version"], "receipt.v1");
    assert_eq!(value["pipeline"]["execution_strategy"], "controlled");
}

#[test]
fn receipt_links_to_predecessors() {
    let fixture = fixture();
    let first = fixture.success(PhaseId::Design);
    let failed = fixture.run(PhaseId::Design, PhaseStatus::Failed, "");
    let dry = fixture.run(PhaseId::Design, PhaseStatus::DryRun, "");
    let other = fixture.success(PhaseId::Tasks);
    let last = fixture.success(PhaseId::Design);
    let link = |of: &crucible_spec::SpecReceipt| {
        Some(crucible_spec::ReceiptLink {
            receipt_id: of.receipt_id.clone(),
            digest: of.digest.unwrap(),
        })
    };
    assert_eq!(
        (&first.previous, &first.last_real, &first.last_success),
        (&None, &None, &None)
    );
    assert_eq!(
        (&failed.previous, &failed.last_success),
        (&link(&first), &link(&first))
    );
    assert_eq!(
        (&dry.last_real, &dry.last_success),
        (&link(&failed), &link(&first))
    );
    assert_eq!((&other.previous, &other.last_real), (&link(&dry), &None));
    assert_eq!(
        (&last.previous, &last.last_real),
        (&link(&other), &link(&failed))
    );
    assert_eq!(fixture.state().problems, []);
}

#[test]
fn failure_leaves_receipt_and_previous_artifact() {
    let fixture = fixture();
    let success = fixture.success(PhaseId::Design);
    let failed = fixture.run(PhaseId::Design, PhaseStatus::Failed, "");
    assert_eq!(fixture.text("artifacts/10-design.md"), "design");
    let state = fixture.state();
    let phase = state.phase(PhaseId::Design).unwrap();
    assert_eq!(
        (phase.newest_real.as_ref(), phase.last_success.as_ref()),
        (Some(&failed), Some(&success))
    );
    assert_eq!(phase.outputs[0].found, FileState::Same);
    assert_eq!(failed.phases[0].outputs, []);
}

#[test]
fn forbidden_output_is_refused_and_leaves_nothing() {
    let fixture = fixture();
    let (lock, mut ledger) = (fixture.lock(), fixture.ledger());
    let output = |path: &str| PhaseOutput {
        path: path.to_owned(),
        bytes: b"x".to_vec(),
    };
    let bad_outputs = [
        vec![output("artifacts/../lock")],
        vec![output("../x")],
        vec![output("/tmp/x")],
        vec![output("receipts/design-20260131-093000-0001.json")],
        vec![output("context/idea.md")],
        vec![output("artifacts/a/b")],
        vec![output("artifacts/")],
        vec![output("artifacts/.tmp-x")],
        vec![
            document(PhaseId::Design, "a"),
            document(PhaseId::Design, "b"),
        ],
        vec![PhaseOutput {
            path: "artifacts/large".to_owned(),
            bytes: vec![0; (16 << 20) + 1],
        }],
    ];
    for outputs in bad_outputs {
        let named = format!("{:?}", outputs[0].path);
        let receipt = draft(PhaseId::Design, PhaseStatus::Success, 1);
        assert!(
            lock.promote(receipt, outputs, &mut ledger).is_err(),
            "{named}"
        );
    }
    let mut bad = Vec::new();
    bad.push(draft(PhaseId::Design, PhaseStatus::Success, 2));
    for id in ["design-1", "../../x", "", "tasks-20260131-093000-0001"] {
        let mut receipt = draft(PhaseId::Design, PhaseStatus::Success, 1);
        receipt.receipt_id = id.to_owned();
        bad.push(receipt);
    }
    let mut timeless = draft(PhaseId::Design, PhaseStatus::Success, 1);
    timeless.emitted_at = None;
    bad.push(timeless);
    let mut endless = draft(PhaseId::Design, PhaseStatus::Success, 1);
    endless.crucible_version = Some("9".repeat(1 << 20));
    bad.push(endless);
    for receipt in bad {
        let named = receipt.receipt_id.clone();
        let outputs = vec![document(PhaseId::Design, "x")];
        assert!(
            lock.promote(receipt, outputs, &mut ledger).is_err(),
            "{named}"
        );
    }
    assert_eq!(fixture.names("artifacts"), Vec::<String>::new());
    assert_eq!(fixture.names("receipts"), Vec::<String>::new());
    assert!(!fixture.path("staging").exists() && !fixture.path("staging.new").exists());
    assert_eq!(fixture.ledger().head().unwrap().seq, 0);
}

#[test]
fn context_files_are_written_atomically_under_plain_names() {
    let fixture = fixture();
    let lock = fixture.lock();
    lock.write_context("idea.md", "größer\n".as_bytes())
        .unwrap();
    assert_eq!(
        fixture.store.read("context/idea.md").unwrap().unwrap(),
        "größer\n".as_bytes()
    );
    for bad in ["", "../idea.md", "a/b", ".tmp-x", "/tmp/x", "ä"] {
        assert!(lock.write_context(bad, b"x").is_err(), "{bad:?}");
    }
    for bad in [
        "lock",
        "receipts/x.json",
        "../x",
        "context/../lock",
        "/etc/passwd",
        "artifacts",
    ] {
        assert!(fixture.store.read(bad).is_err(), "{bad:?}");
    }
    assert_eq!(fixture.names("context"), ["idea.md"]);
}

#[test]
fn every_receipt_fits_its_published_schema() {
    let schema = include_str!("../../../../../docs/schemas/receipt.v1.schema.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    jsonschema::meta::validate(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let fixture = fixture();
    for status in [
        PhaseStatus::Success,
        PhaseStatus::Failed,
        PhaseStatus::DryRun,
    ] {
        let id = fixture.run(PhaseId::Tasks, status, "text").receipt_id;
        let value = value(&fixture, &id);
        assert!(
            validator.is_valid(&value),
            "{:?}",
            validator.iter_errors(&value).next().map(|e| e.to_string())
        );
    }
    let full_json = value(&fixture, "tasks-20260131-093000-0003");
    for (field, wrong) in [
        ("receipt_id", Value::Null),
        ("digest", Value::from("x")),
        ("sequence", Value::from("1")),
        (
            "phases",
            serde_json::json!([{"phase_id": "tasks", "status": "wonderful"}]),
        ),
        ("emitted_at", Value::from("yesterday")),
        ("clock", Value::from("broken")),
        ("previous", serde_json::json!({"receipt_id": "x"})),
    ] {
        let mut bad = full_json.clone();
        bad[field] = wrong;
        assert!(!validator.is_valid(&bad), "{field}");
    }
}
