//! The state of a spec, and how few files are read for it.

use crucible_model::Digest;
use crucible_spec::{
    FileRecord, FileState, PhaseId, PhaseStatus, ReceiptId, ReceiptLink, ReceiptProblem,
    ReceiptProblemKind, SpecReceipt, SpecState,
};

use super::common::{Fixture, document, draft, fixture, now, run_under};

fn kinds(state: &SpecState) -> Vec<(&str, ReceiptProblemKind)> {
    state
        .problems
        .iter()
        .map(|problem| (problem.file.as_str(), problem.kind.clone()))
        .collect()
}

fn file(receipt: &SpecReceipt) -> String {
    format!("receipts/{}.json", receipt.receipt_id)
}

/// Writes invalid files under the names of this many receipts of a phase.
fn plant_garbage(fixture: &Fixture, phase: PhaseId, places: std::ops::RangeInclusive<u64>) {
    std::fs::create_dir_all(fixture.path("receipts")).unwrap();
    for place in places {
        let name = ReceiptId::new(phase, now(), place).file_name();
        std::fs::write(fixture.path("receipts").join(name), "garbage").unwrap();
    }
}

#[test]
fn only_needed_receipts_of_thousand_are_read() {
    let fixture = fixture();
    plant_garbage(&fixture, PhaseId::Review, 1..=400);
    let success = fixture.success(PhaseId::Review);
    let failed = fixture.run(PhaseId::Review, PhaseStatus::Failed, "");
    let dry = fixture.run(PhaseId::Review, PhaseStatus::DryRun, "");
    // As if more dry runs had been made; reading any of them would report it as unreadable.
    for round in 0..3u64 {
        plant_garbage(
            &fixture,
            PhaseId::Review,
            404 + round * 200..=404 + round * 200 + 198,
        );
        let second_spec_lock = fixture.lock();
        let sequence = second_spec_lock.next_sequence().unwrap();
        let mut receipt = draft(PhaseId::Review, PhaseStatus::DryRun, sequence);
        receipt.last_real.clone_from(&dry.last_real);
        receipt.last_success.clone_from(&dry.last_success);
        write_sealed(&fixture, receipt);
    }
    let state = fixture.state();
    assert_eq!(state.receipts, 1003);
    assert_eq!(kinds(&state), [], "something else was read");
    let phase = state.phase(PhaseId::Review).unwrap();
    assert_eq!(
        (phase.newest_real.as_ref(), phase.last_success.as_ref()),
        (Some(&failed), Some(&success))
    );
    assert!(phase.newest.as_ref().unwrap().dry_run);
}

/// Writes a receipt as another version of Crucible would.
fn write_sealed(fixture: &Fixture, mut receipt: SpecReceipt) -> SpecReceipt {
    receipt.schema_version = "receipt.v1".to_owned();
    receipt.spec_id = "export-data".to_owned();
    receipt.sequence = receipt.receipt_id.parse::<ReceiptId>().unwrap().sequence();
    receipt.digest = None;
    receipt.digest = Some(Digest::of_canonical(&receipt).unwrap());
    std::fs::create_dir_all(fixture.path("receipts")).unwrap();
    std::fs::write(
        fixture.path(&file(&receipt)),
        serde_json::to_string_pretty(&receipt).unwrap(),
    )
    .unwrap();
    receipt
}

#[test]
fn dry_run_neither_counts_nor_hides_results() {
    let fixture = fixture();
    fixture.run(PhaseId::Design, PhaseStatus::DryRun, "");
    let state = fixture.state();
    let phase = state.phase(PhaseId::Design).unwrap();
    assert!(phase.newest.is_some() && phase.newest_real.is_none() && phase.last_success.is_none());
    let success = fixture.success(PhaseId::Design);
    fixture.run(PhaseId::Design, PhaseStatus::DryRun, "");
    let dry = fixture.run(PhaseId::Design, PhaseStatus::DryRun, "");
    let state = fixture.state();
    let phase = state.phase(PhaseId::Design).unwrap();
    assert_eq!(
        (phase.newest.as_ref(), phase.newest_real.as_ref()),
        (Some(&dry), Some(&success))
    );
    // A receipt marked as a dry run that records a real one is neither a dry run nor a success.
    let failed: fn(&mut SpecReceipt) = |spec_receipt| {
        spec_receipt.phases[0].status = PhaseStatus::Failed;
        (spec_receipt.exit_code, spec_receipt.phases[0].attempts) = (Some(3), 2);
    };
    let lies: [fn(&mut SpecReceipt); 5] = [
        failed,
        |made| made.phases[0].status = PhaseStatus::Success,
        |made| made.phases[0].attempts = 1,
        |made| made.exit_code = Some(3),
        |made| made.dry_run = false,
    ];
    for (place, lie) in (5..).zip(lies) {
        let mut marked = draft(PhaseId::Design, PhaseStatus::DryRun, place);
        lie(&mut marked);
        let lock = fixture.lock();
        let marked = lock
            .promote(marked, Vec::new(), &mut fixture.ledger())
            .unwrap()
            .receipt;
        drop(lock);
        let state = fixture.state();
        let phase = state.phase(PhaseId::Design).unwrap();
        assert_eq!(phase.newest_real.as_ref(), Some(&marked), "{place}");
        assert_eq!(phase.last_success.as_ref(), Some(&success), "{place}");
    }
    // A failed dry run states the reason.
    let mut failed = draft(PhaseId::Design, PhaseStatus::DryRun, 10);
    failed.exit_code = Some(8);
    failed.phases[0].error = Some(crucible_spec::PhaseFailure {
        class: "secret".to_owned(),
        message: "one".to_owned(),
    });
    let lock = fixture.lock();
    lock.promote(failed, Vec::new(), &mut fixture.ledger())
        .unwrap();
    drop(lock);
    assert_eq!(
        fixture
            .state()
            .phase(PhaseId::Design)
            .unwrap()
            .newest_real
            .as_ref()
            .unwrap()
            .sequence,
        9
    );
}

#[test]
fn untrusted_receipt_hides_older_success() {
    type Damage = fn(&str) -> String;
    let damages: [(Damage, &str); 6] = [
        (
            |text| text.replace("\"failed\"", "\"success\""),
            "DigestDiffers",
        ),
        (
            |text| text.replace("\"exit_code\":0", "\"exit_code\":3"),
            "DigestDiffers",
        ),
        (|text| text[..text.len() / 2].to_owned(), "Unreadable"),
        (|_| String::new(), "Unreadable"),
        (
            |text| text.replace("{\"clock\"", "{\"clock\":\"system\",\"clock\""),
            "Unreadable",
        ),
        (|text| "[".repeat(100_000) + text, "Unreadable"),
    ];
    for (damage, expected) in damages {
        let fixture = fixture();
        let other = fixture.success(PhaseId::Requirements);
        fixture.success(PhaseId::Design);
        let failed = fixture.run(PhaseId::Design, PhaseStatus::Failed, "");
        let text = fixture.text(&file(&failed));
        let damaged = damage(&text);
        assert_ne!(text, damaged);
        std::fs::write(fixture.path(&file(&failed)), damaged).unwrap();
        let state = fixture.state();
        let phase = state.phase(PhaseId::Design).unwrap();
        assert!(
            phase.newest_real.is_none() && phase.last_success.is_none(),
            "{expected}"
        );
        let problem = &state.problems[0];
        assert_eq!(problem.file, format!("{}.json", failed.receipt_id));
        assert_eq!(problem.phase, Some(PhaseId::Design));
        assert!(
            format!("{:?}", problem.kind).starts_with(expected),
            "{problem:?}"
        );
        assert_eq!(
            state
                .phase(PhaseId::Requirements)
                .unwrap()
                .newest_real
                .as_ref(),
            Some(&other)
        );
        // Running the phase again repairs it.
        let healed = fixture.success(PhaseId::Design);
        let state = fixture.state();
        assert_eq!(
            state.phase(PhaseId::Design).unwrap().newest_real.as_ref(),
            Some(&healed)
        );
        assert_eq!(kinds(&state), []);
    }
}

#[test]
fn receipt_under_another_name_is_rejected() {
    let fixture = fixture();
    let design = fixture.success(PhaseId::Design);
    let text = fixture.text(&file(&design));
    let as_tasks = ReceiptId::new(PhaseId::Tasks, now(), 2).file_name();
    let later = ReceiptId::new(PhaseId::Design, now(), 3).file_name();
    for name in [&as_tasks, &later] {
        std::fs::write(fixture.path("receipts").join(name), &text).unwrap();
    }
    let state = fixture.state();
    let disagrees = ReceiptProblemKind::NameDisagrees;
    assert_eq!(
        kinds(&state),
        [
            (later.as_str(), disagrees.clone()),
            (as_tasks.as_str(), disagrees)
        ]
    );
    assert!(state.phase(PhaseId::Tasks).unwrap().newest.is_none());
    // Of another spec, with a correct digest.
    std::fs::remove_file(fixture.path("receipts").join(&later)).unwrap();
    let mut other = design;
    other.spec_id = "another-spec".to_owned();
    other.digest = None;
    other.digest = Some(Digest::of_canonical(&other).unwrap());
    std::fs::write(
        fixture.path(&file(&other)),
        serde_json::to_string(&other).unwrap(),
    )
    .unwrap();
    assert!(kinds(&fixture.state()).contains(&(
        "design-20260131-093000-0001.json",
        ReceiptProblemKind::NameDisagrees
    )));
}

#[test]
fn foreign_missing_and_duplicate_names_are_detected() {
    let fixture = fixture();
    for _ in 0..6 {
        fixture.success(PhaseId::Design);
    }
    let name = |place| {
        format!(
            "receipts/{}",
            ReceiptId::new(PhaseId::Design, now(), place).file_name()
        )
    };
    // Pruned at the beginning: nothing to report.
    std::fs::remove_file(fixture.path(&name(1))).unwrap();
    assert_eq!(kinds(&fixture.state()), []);
    // A missing receipt before the newest of the only phase is superseded.
    std::fs::remove_file(fixture.path(&name(3))).unwrap();
    assert_eq!(kinds(&fixture.state()), []);
    fixture.success(PhaseId::Tasks);
    fixture.success(PhaseId::Tasks);
    let tasks = |place| {
        format!(
            "receipts/{}",
            ReceiptId::new(PhaseId::Tasks, now(), place).file_name()
        )
    };
    let gap = || ReceiptProblemKind::Gap {
        older: vec![PhaseId::Design],
    };
    std::fs::remove_file(fixture.path(&tasks(7))).unwrap();
    assert_eq!(
        kinds(&fixture.store.state(None).unwrap()),
        [("0007", gap())],
        "it may have been of the design"
    );
    std::fs::write(
        fixture.path("receipts/.tmp-aB3dE6"),
        "unfinished, and ours: passed over",
    )
    .unwrap();
    for foreign in [
        "notes.txt",
        "Design-20260131-093000-0002.json",
        "design-20260131-093000-0002.json.bak",
    ] {
        std::fs::write(fixture.path("receipts").join(foreign), "x").unwrap();
    }
    let problems = fixture.state().problems;
    assert_eq!(
        problems
            .iter()
            .filter(|p| p.kind == ReceiptProblemKind::ForeignName)
            .count(),
        3
    );
    let twice = "tasks-20260131-100000-0008.json";
    std::fs::write(fixture.path("receipts").join(twice), "x").unwrap();
    let other = ReceiptId::new(PhaseId::Tasks, now(), 8).file_name();
    assert!(kinds(&fixture.state()).contains(&(twice, ReceiptProblemKind::PlaceTaken { other })));
    for number in 0..50 {
        std::fs::write(
            fixture.path("receipts").join(format!("foreign-{number}")),
            "x",
        )
        .unwrap();
    }
    assert!(
        fixture
            .state()
            .problems
            .iter()
            .any(|problem| problem.file == "33 more")
    );
    // The highest sequence number makes one gap, and leaves no next one.
    let last = ReceiptId::new(PhaseId::Review, now(), 999_999_999_999_999_999).file_name();
    std::fs::write(fixture.path("receipts").join(last), "x").unwrap();
    let gaps = |problems: &[ReceiptProblem]| {
        problems
            .iter()
            .filter(|p| matches!(p.kind, ReceiptProblemKind::Gap { .. }))
            .count()
    };
    assert_eq!(gaps(&fixture.state().problems), 2);
    assert!(
        fixture
            .try_run(PhaseId::Design, PhaseStatus::Success, "x")
            .is_err()
    );
}

#[test]
fn lost_receipt_matters_until_phases_rerun() {
    use PhaseId::{Design, Requirements, Tasks};
    for lost in [
        PhaseStatus::Success,
        PhaseStatus::Failed,
        PhaseStatus::DryRun,
    ] {
        let fixture = fixture();
        fixture.success(Requirements);
        fixture.success(Design);
        let missing_spec_receipt = fixture.run(Design, lost, "again");
        fixture.success(Tasks);
        std::fs::remove_file(fixture.path(&file(&missing_spec_receipt))).unwrap();
        let gap = |older: &[PhaseId]| {
            (
                "0003",
                ReceiptProblemKind::Gap {
                    older: older.to_vec(),
                },
            )
        };
        // Without the ledger, as in CI; the next receipt also shows which one it was.
        let state = || fixture.store.state(None).unwrap();
        let spec_state = state();
        let file = format!("{}.json", missing_spec_receipt.receipt_id);
        assert_eq!(
            kinds(&spec_state),
            [
                (file.as_str(), ReceiptProblemKind::ChainBroken),
                gap(&[Requirements, Design])
            ]
        );
        fixture.success(Requirements);
        assert!(
            kinds(&state()).contains(&gap(&[Design])),
            "{:?}",
            kinds(&state())
        );
        fixture.success(Design);
        assert_eq!(
            kinds(&state()),
            [],
            "whatever it said, it decides nothing any more"
        );
        assert_eq!(fixture.state().problems, []);
    }
}

#[test]
fn replaced_receipt_is_reported_while_relevant() {
    let fixture = fixture();
    fixture.success(PhaseId::Design);
    let failed = fixture.run(PhaseId::Design, PhaseStatus::Failed, "");
    fixture.success(PhaseId::Tasks);
    fixture.success(PhaseId::Design);
    // The design ran again, but the file in that place now claims to be of the tasks.
    std::fs::rename(fixture.path(&file(&failed)), fixture.home.join("old")).unwrap();
    let mut review = draft(PhaseId::Review, PhaseStatus::Success, 2);
    review.previous = failed.previous.clone();
    let forged = format!("{}.json", write_sealed(&fixture, review).receipt_id);
    let missing = format!("{}.json", failed.receipt_id);
    let spec_state = fixture.store.state(None).unwrap();
    let broken = |file| (file, ReceiptProblemKind::ChainBroken);
    assert_eq!(
        kinds(&spec_state),
        [broken(forged.as_str()), broken(missing.as_str())]
    );
}

#[test]
fn repeated_sequence_matters_until_phases_rerun() {
    use PhaseId::{Design, Requirements};
    let fixture = fixture();
    fixture.success(Requirements);
    let spec_receipt = fixture.success(Design);
    let mut current_spec_receipt = draft(Requirements, PhaseStatus::Success, 2);
    current_spec_receipt.receipt_id = "requirements-20260131-100000-0002".to_owned();
    current_spec_receipt.previous = spec_receipt.previous.clone();
    let there = write_sealed(&fixture, current_spec_receipt);
    let taken = |one: &SpecReceipt, other: &SpecReceipt| {
        let other = format!("{}.json", other.receipt_id);
        (
            format!("{}.json", one.receipt_id),
            ReceiptProblemKind::PlaceTaken { other },
        )
    };
    let messages = || -> Vec<_> {
        kinds(&fixture.store.state(None).unwrap())
            .into_iter()
            .map(|(file, kind)| (file.to_owned(), kind))
            .collect()
    };
    assert_eq!(
        messages(),
        [taken(&there, &spec_receipt), taken(&spec_receipt, &there)]
    );
    fixture.success(Requirements);
    assert_eq!(messages(), [taken(&spec_receipt, &there)]);
    let newest = fixture.success(Design);
    assert_eq!(messages(), []);
    assert_eq!(fixture.state().problems, []);
    // Two dry runs repeat nothing that counts; a dry run in place of a real one may hide it.
    for (name, status) in [
        ("100000", PhaseStatus::DryRun),
        ("110000", PhaseStatus::DryRun),
        ("090000", PhaseStatus::Failed),
    ] {
        let mut receipt = draft(Design, status, 5);
        receipt.receipt_id = format!("design-20260131-{name}-0005");
        let digest = newest.digest.unwrap();
        receipt.last_real = Some(ReceiptLink {
            receipt_id: newest.receipt_id.clone(),
            digest,
        });
        receipt.previous = receipt.last_real.clone();
        write_sealed(&fixture, receipt);
        assert_eq!(
            messages().len(),
            usize::from(status == PhaseStatus::Failed),
            "{:?}",
            messages()
        );
    }
}

#[test]
fn gaps_and_repeats_are_limited_and_counted() {
    let fixture = fixture();
    fixture.success(PhaseId::Design);
    for place in 1..=500 {
        plant_garbage(&fixture, PhaseId::Tasks, place * 2 + 1..=place * 2 + 1);
        plant_garbage(&fixture, PhaseId::Review, place * 2 + 1..=place * 2 + 1);
    }
    let problems = fixture.store.state(None).unwrap().problems;
    let gaps: Vec<_> = problems
        .iter()
        .filter(|p| matches!(p.kind, ReceiptProblemKind::Gap { .. }))
        .collect();
    assert_eq!((gaps.len(), gaps[20].file.as_str()), (21, "480 more"));
    let doubled = problems
        .iter()
        .filter(|p| matches!(p.kind, ReceiptProblemKind::PlaceTaken { .. }));
    assert_eq!(doubled.count(), 21);
    assert!(problems.len() < 50, "{}", problems.len());
}

#[test]
fn broken_receipt_link_is_reported() {
    let fixture = fixture();
    let first = fixture.success(PhaseId::Requirements);
    let second = fixture.success(PhaseId::Design);
    // The first is rewritten with a correct digest: only the second records the old one.
    let mut edited = first.clone();
    edited.exit_code = Some(7);
    write_sealed(&fixture, edited);
    let state = fixture.store.state(None).unwrap();
    assert_eq!(
        kinds(&state),
        [(
            "requirements-20260131-093000-0001.json",
            ReceiptProblemKind::ChainBroken
        )]
    );
    write_sealed(&fixture, first);
    assert_eq!(kinds(&fixture.store.state(None).unwrap()), []);
    // A success that a link names but that does not exist.
    let mut liar = draft(PhaseId::Design, PhaseStatus::Failed, 3);
    let mut link = second.previous.clone().unwrap();
    link.receipt_id = ReceiptId::new(PhaseId::Design, now(), 2).to_string();
    liar.last_success = Some(link);
    liar.previous = Some(ReceiptLink {
        receipt_id: second.receipt_id.clone(),
        digest: second.digest.unwrap(),
    });
    write_sealed(&fixture, liar);
    let state = fixture.store.state(None).unwrap();
    assert_eq!(
        kinds(&state),
        [(
            "design-20260131-093000-0002.json",
            ReceiptProblemKind::ChainBroken
        )]
    );
    assert!(state.phase(PhaseId::Design).unwrap().last_success.is_none());
}

#[test]
fn unlinked_old_receipts_are_found_by_name() {
    let fixture = fixture();
    std::fs::create_dir_all(fixture.path("receipts")).unwrap();
    let old = |place: u64, status: &str| {
        let id = ReceiptId::new(PhaseId::Design, now(), place);
        let text = format!(
            r#"{{"receipt_id": "{id}", "spec_id": "export-data",
                 "phases": [{{"phase_id": "design", "status": "{status}"}}]}}"#
        );
        std::fs::write(fixture.path("receipts").join(id.file_name()), text).unwrap();
    };
    for (place, status) in [
        (1, "success"),
        (2, "success"),
        (3, "failed"),
        (4, "dry_run"),
        (5, "dry_run"),
    ] {
        old(place, status);
    }
    let state = fixture.state();
    assert_eq!(kinds(&state), []);
    let phase = state.phase(PhaseId::Design).unwrap();
    assert!(
        phase
            .newest_real
            .as_ref()
            .unwrap()
            .receipt_id
            .ends_with("0003")
    );
    assert!(
        phase
            .last_success
            .as_ref()
            .unwrap()
            .receipt_id
            .ends_with("0002")
    );
    // The next one links to them.
    let next = fixture.run(PhaseId::Design, PhaseStatus::DryRun, "");
    assert!(next.last_real.unwrap().receipt_id.ends_with("0003"));
    assert_eq!(kinds(&fixture.state()), []);
}

#[test]
fn files_are_compared_with_receipts() {
    let fixture = fixture();
    fixture.success(PhaseId::Requirements);
    let lock = fixture.lock();
    lock.write_context("idea.md", b"the idea").unwrap();
    let mut receipt = draft(PhaseId::Design, PhaseStatus::Success, 2);
    let record = |path: &str, text: &str| FileRecord {
        path: path.to_owned(),
        sha256: Digest::compute(text.as_bytes()),
        bytes: text.len() as u64,
    };
    receipt.phases[0].inputs = vec![
        record("context/idea.md", "the idea"),
        record("artifacts/00-requirements.md", "requirements"),
        record("artifacts/../../../secret", "x"),
        record("project/src/main.rs", "x"),
    ];
    lock.promote(
        receipt,
        vec![document(PhaseId::Design, "design")],
        &mut fixture.ledger(),
    )
    .unwrap();
    drop(lock);
    let found = |fixture: &Fixture| {
        let state = fixture.state();
        let phase = state.phase(PhaseId::Design).unwrap();
        phase
            .inputs
            .iter()
            .chain(&phase.outputs)
            .map(|tracked| tracked.found)
            .collect::<Vec<_>>()
    };
    let (same, differs, missing) = (FileState::Same, FileState::Differs, FileState::Missing);
    assert_eq!(found(&fixture), [same, same, differs, same]);
    std::fs::write(fixture.path("artifacts/00-requirements.md"), "Requirements").unwrap();
    std::fs::write(fixture.path("artifacts/10-design.md"), "longer than before").unwrap();
    std::fs::remove_file(fixture.path("context/idea.md")).unwrap();
    assert_eq!(found(&fixture), [missing, differs, differs, differs]);
    std::fs::remove_dir_all(fixture.path("artifacts")).unwrap();
    assert_eq!(found(&fixture), [missing, missing, differs, missing]);
}

#[test]
fn history_tells_every_receipt_in_its_order() {
    let fixture = fixture();
    for phase in [
        PhaseId::Requirements,
        PhaseId::Design,
        PhaseId::Requirements,
    ] {
        fixture.success(phase);
    }
    let (receipts, problems) = fixture.store.history(None).unwrap();
    assert_eq!(
        receipts
            .iter()
            .map(|receipt| receipt.sequence)
            .collect::<Vec<_>>(),
        [1, 2, 3]
    );
    assert_eq!(problems, []);
    std::fs::write(fixture.path(&file(&receipts[1])), "x").unwrap();
    let (receipts, problems) = fixture.store.history(None).unwrap();
    assert_eq!((receipts.len(), problems.len()), (2, 1));
}

#[test]
fn reader_during_promotion_sees_consistent_state() {
    let fixture = fixture();
    fixture.success(PhaseId::Design);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 0..25 {
                fixture.run(
                    PhaseId::Design,
                    PhaseStatus::Success,
                    &"x".repeat(round * 1000),
                );
            }
        });
        let ledger = fixture.ledger();
        while !writer.is_finished() {
            let state = fixture.store.state(Some(&ledger)).unwrap();
            assert_eq!(kinds(&state), []);
            assert_eq!(
                state.phase(PhaseId::Design).unwrap().outputs[0].found,
                FileState::Same
            );
            // Constant reading would leave no turn for writers.
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    });
}

#[test]
fn readers_do_not_block_promotion() {
    let fixture = fixture();
    let lock = fixture.lock();
    let mut ledger = fixture.ledger();
    for _ in 0..3 {
        run_under(
            &lock,
            PhaseId::Design,
            PhaseStatus::Success,
            "x",
            &mut ledger,
        )
        .unwrap();
        assert_eq!(fixture.store.state(None).unwrap().problems, []);
    }
}
