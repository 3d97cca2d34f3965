//! Receipts from elsewhere with correct digests.

use crucible_model::Digest;
use crucible_spec::{
    FixedFile, FixupReceipt, FixupStage, LockClaim, PhaseId, PhaseStatus, ReceiptId, ReceiptLink,
    ReceiptProblemKind, SpecReceipt, SpecState,
};

use super::common::{Fixture, desk_at, document, draft, fixture, now};

fn kinds(state: &SpecState) -> Vec<(String, ReceiptProblemKind)> {
    state
        .problems
        .iter()
        .map(|problem| (problem.file.clone(), problem.kind.clone()))
        .collect()
}

fn name(receipt: &SpecReceipt) -> String {
    format!("{}.json", receipt.receipt_id)
}

fn remove(fixture: &Fixture, receipt: &SpecReceipt) {
    std::fs::remove_file(fixture.path("receipts").join(name(receipt))).unwrap();
}

fn link(receipt: &SpecReceipt) -> Option<ReceiptLink> {
    Some(ReceiptLink {
        receipt_id: receipt.receipt_id.clone(),
        digest: receipt.digest.unwrap(),
    })
}

/// Copies a receipt to another sequence number, changed and with a correct digest.
fn forge(
    fixture: &Fixture,
    copied: &SpecReceipt,
    sequence: u64,
    change: impl FnOnce(&mut SpecReceipt),
) -> SpecReceipt {
    let mut spec_receipt = copied.clone();
    let phase = copied.phases[0].phase_id.parse().unwrap();
    spec_receipt.receipt_id = ReceiptId::new(phase, now(), sequence).to_string();
    spec_receipt.sequence = sequence;
    change(&mut spec_receipt);
    spec_receipt.digest = None;
    spec_receipt.digest = Some(Digest::of_canonical(&spec_receipt).unwrap());
    std::fs::write(
        fixture.path("receipts").join(name(&spec_receipt)),
        serde_json::to_string(&spec_receipt).unwrap(),
    )
    .unwrap();
    spec_receipt
}

#[test]
fn forged_success_in_old_place_is_detected() {
    let fixture = fixture();
    let requirements = fixture.success(PhaseId::Requirements);
    fixture.success(PhaseId::Design);
    let tasks = fixture.success(PhaseId::Tasks);
    let failed = fixture.run(PhaseId::Tasks, PhaseStatus::Failed, "");
    let replaced = fixture.success(PhaseId::Design);
    fixture.success(PhaseId::Design);
    fixture.success(PhaseId::Design);
    let forged = forge(&fixture, &tasks, 5, |spec_receipt| {
        (spec_receipt.previous, spec_receipt.last_real) = (link(&failed), link(&failed));
        spec_receipt.last_success = link(&tasks);
    });
    remove(&fixture, &replaced);
    let told = kinds(&fixture.state());
    assert!(
        told.contains(&(name(&forged), ReceiptProblemKind::LedgerDiffers)),
        "{told:?}"
    );
    // In CI only the next receipt shows what was there.
    let told = kinds(&fixture.store.state(None).unwrap());
    assert!(
        told.contains(&(name(&forged), ReceiptProblemKind::ChainBroken)),
        "{told:?}"
    );
    // A later run does not make the ledger trust it.
    fixture.success(PhaseId::Design);
    let told = kinds(&fixture.state());
    assert!(
        told.contains(&(name(&forged), ReceiptProblemKind::LedgerDiffers)),
        "{told:?}"
    );
    // Running the phase again repairs it.
    fixture.success(PhaseId::Tasks);
    assert_eq!(kinds(&fixture.state()), []);
    assert_eq!(requirements.sequence, 1);
}

#[test]
fn foreign_receipt_stays_reported_after_recording() {
    let fixture = fixture();
    let first = fixture.success(PhaseId::Requirements);
    let pulled = forge(&fixture, &first, 2, |spec_receipt| {
        spec_receipt.previous = link(&first)
    });
    assert_eq!(fixture.state().not_from_here, [name(&pulled)]);
    let design = fixture.success(PhaseId::Design);
    fixture.success(PhaseId::Tasks);
    let state = fixture.state();
    assert_eq!(
        (kinds(&state), state.not_from_here),
        (vec![], vec![name(&pulled)])
    );
    assert_eq!(design.sequence, 3);
    // The same on a machine that did not know the spec before.
    std::fs::remove_dir_all(fixture.home.join("data")).unwrap();
    assert_eq!(fixture.state().not_from_here, [""; 0]);
    fixture.success(PhaseId::Tasks);
    let state = fixture.state();
    assert_eq!((kinds(&state), state.not_from_here.len()), (vec![], 2));
    fixture.success(PhaseId::Requirements);
    fixture.success(PhaseId::Design);
    assert_eq!(fixture.state().not_from_here, [""; 0]);
    assert!(fixture.ledger().verify(&[]).unwrap().passes());
}

/// A spec with a complete `staging/` from another machine: a design that would replace the existing one.
fn with_a_strangers_staging() -> (Fixture, SpecReceipt) {
    let here = fixture();
    here.success(PhaseId::Design);
    let elsewhere = desk_at(&here.home.join("elsewhere"));
    elsewhere.success(PhaseId::Design);
    let lock = elsewhere.lock();
    let spec_receipt = draft(PhaseId::Design, PhaseStatus::Success, 2);
    let promoted = lock.promote(
        spec_receipt,
        vec![document(PhaseId::Design, "forged")],
        &mut elsewhere.ledger(),
    );
    let staged = promoted.unwrap().receipt;
    std::fs::create_dir_all(here.path("staging/artifacts")).unwrap();
    std::fs::rename(
        elsewhere.path("receipts").join(name(&staged)),
        here.path("staging/receipt.json"),
    )
    .unwrap();
    std::fs::rename(
        elsewhere.path("artifacts/10-design.md"),
        here.path("staging/artifacts/10-design.md"),
    )
    .unwrap();
    (here, staged)
}

#[test]
fn foreign_staging_is_not_promoted() {
    let (fixture, staged) = with_a_strangers_staging();
    let replaces = vec!["artifacts/10-design.md".to_owned()];
    let foreign = (
        name(&staged),
        ReceiptProblemKind::PromotionForeign { replaces },
    );
    assert_eq!(kinds(&fixture.state()), std::slice::from_ref(&foreign));
    assert_eq!(
        kinds(&fixture.store.state(None).unwrap()),
        std::slice::from_ref(&foreign)
    );
    for claim in [LockClaim::IfFree, LockClaim::Force] {
        let refused = fixture.store.lock("test", claim).unwrap_err().to_string();
        for part in ["staging", "artifacts/10-design.md", "delete the directory"] {
            assert!(refused.contains(part), "{refused}");
        }
    }
    // A mark of another receipt does not allow it.
    fixture.mark(Digest::compute(b"another"));
    assert!(fixture.store.lock("test", LockClaim::IfFree).is_err());
    assert_eq!(
        (
            fixture.text("artifacts/10-design.md").as_str(),
            fixture.names("receipts").len()
        ),
        ("design", 1)
    );
    std::fs::remove_dir_all(fixture.path("staging")).unwrap();
    fixture.success(PhaseId::Design);
    assert_eq!(kinds(&fixture.state()), []);
}

#[test]
fn own_staging_is_finished_and_recorded() {
    let (fixture, staged) = with_a_strangers_staging();
    fixture.mark(staged.digest.unwrap());
    assert_eq!(
        kinds(&fixture.state()),
        [(name(&staged), ReceiptProblemKind::PromotionUnfinished)]
    );
    drop(fixture.lock());
    assert_eq!(fixture.text("artifacts/10-design.md"), "forged");
    fixture.success(PhaseId::Tasks);
    let state = fixture.state();
    assert_eq!((kinds(&state), state.not_from_here), (vec![], vec![]));
    // A finished promotion leaves no mark.
    let records = std::fs::read_dir(fixture.home.join("data/records")).unwrap();
    assert_eq!(records.count(), 0);
}

#[test]
fn receipt_stripped_of_schema_is_edited() {
    type Change = fn(&mut serde_json::Map<String, serde_json::Value>);
    let changes: [Change; 5] = [
        |fields| {
            fields.insert("dry_run".to_owned(), true.into());
            fields.remove("schema_version");
        },
        |fields| {
            fields["phases"][0]["status"] = "dry_run".into();
            fields.remove("schema_version");
        },
        |fields| fields["schema_version"] = "".into(),
        |fields| {
            fields["phases"][0]["status"] = "success".into();
            fields.remove("schema_version");
        },
        |fields| {
            fields.retain(|name, _| ["receipt_id", "spec_id", "phases"].contains(&name.as_str()));
            fields["phases"] = serde_json::json!([{ "phase_id": "tasks", "status": "dry_run" }]);
        },
    ];
    for (place, change) in changes.into_iter().enumerate() {
        let fixture = fixture();
        fixture.success(PhaseId::Design);
        fixture.success(PhaseId::Tasks);
        let failed = fixture.run(PhaseId::Tasks, PhaseStatus::Failed, "");
        let path = fixture.path("receipts").join(name(&failed));
        let mut fields = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        change(&mut fields);
        fields.remove("digest");
        std::fs::write(&path, serde_json::to_string(&fields).unwrap()).unwrap();
        let state = fixture.store.state(None).unwrap();
        assert_eq!(
            kinds(&state),
            [(name(&failed), ReceiptProblemKind::DigestDiffers)],
            "{place}"
        );
        assert!(state.phase(PhaseId::Tasks).unwrap().newest_real.is_none());
        // Even if nothing before it can be read, but it names its predecessor.
        if place < 4 {
            for before in [
                "design-20260131-093000-0001.json",
                "tasks-20260131-093000-0002.json",
            ] {
                std::fs::write(fixture.path("receipts").join(before), "x").unwrap();
            }
            let edited = (name(&failed), ReceiptProblemKind::DigestDiffers);
            assert!(
                kinds(&fixture.store.state(None).unwrap()).contains(&edited),
                "{place}"
            );
        }
    }
}

#[test]
fn stripped_receipts_are_traced_to_first() {
    let fixture = fixture();
    fixture.success(PhaseId::Design);
    for place in 2..=6 {
        let id = ReceiptId::new(PhaseId::Tasks, now(), place);
        let text = format!(
            r#"{{"receipt_id": "{id}", "spec_id": "export-data", "phases": [{{"phase_id": "tasks", "status": "dry_run"}}]}}"#
        );
        std::fs::write(fixture.path("receipts").join(id.file_name()), text).unwrap();
    }
    let last = ReceiptId::new(PhaseId::Tasks, now(), 6).file_name();
    assert_eq!(
        kinds(&fixture.store.state(None).unwrap()),
        [(last, ReceiptProblemKind::DigestDiffers)]
    );
}

#[test]
fn reverted_fixup_is_reported_undone() {
    let fixture = fixture();
    let project = fixture.home.join("project");
    std::fs::create_dir_all(project.join("src")).unwrap();
    let digest = |text: &str| Some(Digest::compute(text.as_bytes()));
    let fixed = |path: &str, before, after| FixedFile {
        path: path.to_owned(),
        before,
        after,
    };
    let files = vec![
        fixed("src/changed.rs", digest("old"), digest("new")),
        fixed("src/made.rs", None, digest("new")),
        fixed("src/removed.rs", digest("old"), None),
        fixed("../outside.rs", digest("old"), digest("new")),
    ];
    std::fs::write(fixture.home.join("outside.rs"), "old").unwrap();
    let promote = |stage, place| {
        let mut spec_receipt = draft(PhaseId::Fixup, PhaseStatus::Success, place);
        spec_receipt.phases[0].fixups = Some(FixupReceipt {
            stage,
            patch: None,
            files: files.clone(),
        });
        fixture
            .lock()
            .promote(
                spec_receipt,
                vec![document(PhaseId::Fixup, "x")],
                &mut fixture.ledger(),
            )
            .unwrap();
    };
    promote(FixupStage::Pending, 1);
    std::fs::write(project.join("src/changed.rs"), "old").unwrap();
    std::fs::write(project.join("src/removed.rs"), "old").unwrap();
    assert_eq!(fixture.state().fixups_undone, [""; 0], "it is not applied");
    promote(FixupStage::Applied, 2);
    assert_eq!(
        fixture.state().fixups_undone,
        ["src/changed.rs", "src/made.rs", "src/removed.rs"]
    );
    std::fs::write(project.join("src/changed.rs"), "new").unwrap();
    std::fs::write(project.join("src/made.rs"), "changed since").unwrap();
    std::fs::remove_file(project.join("src/removed.rs")).unwrap();
    assert_eq!(fixture.state().fixups_undone, [""; 0]);
}
