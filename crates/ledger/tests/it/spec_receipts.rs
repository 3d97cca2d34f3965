//! Receipts of specs: bytes, event and row stand or fall together, once each, and a row that was edited is found.

use crate::common::{instant, place, tamper};
use crucible_ledger::{Ledger, NewSpecReceipt, ReceiptWriter, SpecReceiptRow, spec_run_id};
use crucible_model::{ClockSource, Digest, RunId};
use rusqlite::Connection;

fn project() -> Digest {
    Digest::compute(b"a project")
}

pub(crate) fn receipt(phase: &str, sequence: u64, content: &str) -> NewSpecReceipt {
    NewSpecReceipt {
        project: project(),
        spec: "Export.Data".to_owned(),
        sequence,
        receipt_id: format!("{phase}-20260131-093000-{sequence:04}"),
        phase: phase.to_owned(),
        status: "success".to_owned(),
        digest: Digest::compute(content.as_bytes()),
        outputs: vec![(
            "artifacts/10-design.md".to_owned(),
            Digest::compute(b"design"),
        )],
        at: instant(),
        clock: ClockSource::System,
        content: content.as_bytes().to_vec(),
    }
}

#[test]
fn receipt_is_found_by_phase_and_in_chain() {
    let place = place();
    let mut ledger = Ledger::open(&place.path).unwrap();
    for (phase, sequence) in [
        ("requirements", 1),
        ("design", 2),
        ("design", 3),
        ("requirements", 4),
    ] {
        ledger
            .record_spec_receipt(&receipt(phase, sequence, &format!("{{\"n\":{sequence}}}")))
            .unwrap();
    }
    let newest = ledger
        .newest_spec_receipts(&project(), "Export.Data")
        .unwrap();
    let messages: Vec<_> = newest
        .iter()
        .map(|row| (row.phase.as_str(), row.sequence))
        .collect();
    assert_eq!(messages, [("design", 3), ("requirements", 4)]);
    for (project, spec) in [
        (project(), "export.data"),
        (Digest::compute(b"another"), "Export.Data"),
    ] {
        assert_eq!(ledger.newest_spec_receipts(&project, spec).unwrap(), []);
    }
    let events = ledger
        .events(Some(&spec_run_id(&project(), "Export.Data").unwrap()))
        .unwrap();
    assert_eq!(events.len(), 4);
    assert_eq!(
        (events[1].role.as_str(), events[1].event.as_str()),
        ("spec", "spec-receipt")
    );
    assert_eq!(
        events[1].path.as_deref(),
        Some("receipts/design-20260131-093000-0002.json")
    );
    assert_eq!(
        events[1].body["digest"],
        Digest::compute(b"{\"n\":2}").to_string()
    );
    assert_eq!(
        events[1].body["outputs"][0]["sha256"],
        Digest::compute(b"design").to_string()
    );
    assert_eq!(
        ledger
            .artifact(&events[1].artifacts[0].digest)
            .unwrap()
            .unwrap(),
        b"{\"n\":2}"
    );
    assert_eq!(ledger.verify(&[]).unwrap().findings(), []);
}

#[test]
fn newest_receipts_of_all_specs_match_each() {
    let place = place();
    let mut ledger = Ledger::open(&place.path).unwrap();
    assert!(
        ledger
            .newest_spec_receipts_of_project(&project())
            .unwrap()
            .is_empty()
    );
    let specs = ["a", "b", "Export.Data", "z"];
    for (spec, number) in specs.into_iter().zip(1..) {
        for (phase, sequence) in [
            ("requirements", 1),
            ("design", 2),
            ("design", 3),
            ("final", 4),
            ("design", 5),
        ] {
            let of_spec = NewSpecReceipt {
                spec: spec.to_owned(),
                ..receipt(phase, sequence, &format!("{{\"n\":{number}{sequence}}}"))
            };
            // Specs have different phases, and another project's are not asked for.
            if sequence <= number + 1 {
                ledger.record_spec_receipt(&of_spec).unwrap();
            }
            let elsewhere = NewSpecReceipt {
                project: Digest::compute(b"another"),
                ..of_spec
            };
            ledger.record_spec_receipt(&elsewhere).unwrap();
        }
    }
    for project in [project(), Digest::compute(b"another")] {
        let of_project = ledger.newest_spec_receipts_of_project(&project).unwrap();
        assert_eq!(of_project.len(), specs.len());
        for (spec, rows) in of_project {
            assert_eq!(
                rows,
                ledger.newest_spec_receipts(&project, &spec).unwrap(),
                "{spec}"
            );
        }
    }
}

#[test]
fn receipt_is_recorded_once_beside_same_id() {
    let place = place();
    let mut ledger = Ledger::open(&place.path).unwrap();
    let first = ledger
        .record_spec_receipt(&receipt("design", 1, "{}"))
        .unwrap();
    let head = ledger.head().unwrap();
    assert_eq!(
        ledger
            .record_spec_receipt(&receipt("design", 1, "{}"))
            .unwrap(),
        first
    );
    assert_eq!(ledger.head().unwrap(), head, "nothing was appended");
    let mut pinned = receipt("design", 1, "{\"other\":1}");
    pinned.clock = ClockSource::Pinned;
    let other = ledger.record_spec_receipt(&pinned).unwrap();
    assert_ne!(other.event, first.event);
    assert_eq!(
        ledger.event(other.event).unwrap().unwrap().body["clock"],
        "pinned"
    );
    let of_id = ledger
        .spec_receipts_of_id(&project(), "Export.Data", "design-20260131-093000-0001")
        .unwrap();
    assert_eq!(of_id, [first, other.clone()]);
    assert_eq!(
        ledger
            .newest_spec_receipts(&project(), "Export.Data")
            .unwrap(),
        [other]
    );
    assert!(
        ledger
            .record_spec_receipt(&receipt("design", 0, "{}"))
            .is_err(),
        "no receipt has this place"
    );
    assert_eq!(ledger.verify(&[]).unwrap().findings(), []);
}

#[test]
fn every_spec_name_has_its_own_run() {
    let names = [
        "export-data",
        "Export-Data",
        "export.data",
        "export_data",
        &"x".repeat(64),
        "1",
    ];
    let mut runs: Vec<RunId> = names
        .iter()
        .map(|name| spec_run_id(&project(), name).unwrap())
        .collect();
    runs.push(spec_run_id(&Digest::compute(b"another"), "export-data").unwrap());
    assert!(
        runs[0].as_str().starts_with("spec-export-data-"),
        "{}",
        runs[0]
    );
    runs.sort();
    runs.dedup();
    assert_eq!(runs.len(), names.len() + 1);
}

#[test]
fn row_differing_from_its_event_is_found() {
    for sql in [
        "UPDATE spec_receipts SET digest = replace(digest, substr(digest, 1, 1), 'x') WHERE sequence = 2",
        "UPDATE spec_receipts SET project = upper(project) || '' WHERE sequence = 2",
        "UPDATE spec_receipts SET spec = 'other' WHERE sequence = 2",
        "UPDATE spec_receipts SET phase = 'final' WHERE sequence = 2",
        "UPDATE spec_receipts SET receipt_id = 'design-20260131-093000-0009' WHERE sequence = 2",
        "UPDATE spec_receipts SET sequence = 9 WHERE sequence = 2",
        "DELETE FROM spec_receipts WHERE sequence = 2",
        "UPDATE spec_receipts SET event_seq = 1000 WHERE sequence = 2",
        "INSERT INTO spec_receipts SELECT 5, project, spec, 7, 'x', phase, digest FROM spec_receipts WHERE sequence = 2",
    ] {
        let place = place();
        let mut ledger = Ledger::open(&place.path).unwrap();
        for sequence in 1..=3 {
            ledger
                .record_spec_receipt(&receipt("design", sequence, "{\"big\":\"A0\"}"))
                .unwrap();
        }
        drop(ledger);
        tamper(&place.path, &format!("PRAGMA foreign_keys = OFF; {sql}"));
        let verdict = Ledger::open(&place.path).unwrap().verify(&[]).unwrap();
        assert!(
            verdict
                .findings()
                .iter()
                .any(|found| found.code.as_str() == "ledger-spec-receipt-edited"),
            "{sql}: {verdict:?}"
        );
    }
}

#[test]
fn rows_are_written_once() {
    let place = place();
    Ledger::open(&place.path)
        .unwrap()
        .record_spec_receipt(&receipt("design", 1, "{}"))
        .unwrap();
    let other = Connection::open(&place.path).unwrap();
    for sql in [
        "UPDATE spec_receipts SET phase = 'final'",
        "DELETE FROM spec_receipts",
        "PRAGMA recursive_triggers = ON; INSERT OR REPLACE INTO spec_receipts SELECT * FROM spec_receipts",
    ] {
        let refused = other.execute_batch(sql).unwrap_err().to_string();
        assert!(
            refused.contains("the record of a receipt is never"),
            "{sql}: {refused}"
        );
    }
}

#[test]
fn the_newest_receipts_are_found_without_reading_all() {
    let place = place();
    drop(Ledger::open(&place.path).unwrap());
    let connection = Connection::open(&place.path).unwrap();
    for sql in [
        "SELECT max(event_seq) FROM spec_receipts WHERE project = ?1 AND spec = ?2 AND phase = ?3",
        "SELECT min(phase) FROM spec_receipts WHERE project = ?1 AND spec = ?2 AND phase > ?3",
        "SELECT * FROM spec_receipts WHERE project = ?1 AND spec = ?2 AND receipt_id = ?3",
    ] {
        let plan: String = connection
            .query_row(
                &format!("EXPLAIN QUERY PLAN {sql}"),
                ["a", "b", "c"],
                |row| row.get(3),
            )
            .unwrap();
        assert!(
            plan.starts_with("SEARCH") && plan.contains("spec=?"),
            "{plan}"
        );
    }
}

#[test]
fn learned_receipt_is_never_reported_as_written() {
    let place = place();
    let mut ledger = Ledger::open(&place.path).unwrap();
    let learned = receipt("design", 1, "learned");
    let mut written = receipt("tasks", 2, "written");
    // What a text says is not a word of the ledger's.
    written.outputs = vec![(
        r#"artifacts/","learned":true,""#.to_owned(),
        Digest::compute(b"tasks"),
    )];
    ledger.learn_spec_receipt(&learned).unwrap();
    ledger.record_spec_receipt(&written).unwrap();
    // Told again, it stays what it was.
    assert_eq!(
        ledger.record_spec_receipt(&learned).unwrap().writer,
        ReceiptWriter::Unknown
    );
    let of = |row: &SpecReceiptRow| (row.sequence, row.writer);
    let expected = [(1, ReceiptWriter::Unknown), (2, ReceiptWriter::ThisMachine)];
    let newest = ledger
        .newest_spec_receipts(&learned.project, &learned.spec)
        .unwrap();
    assert_eq!(newest.iter().map(of).collect::<Vec<_>>(), expected);
    let all = ledger
        .newest_spec_receipts_of_project(&learned.project)
        .unwrap();
    assert_eq!(
        all[&learned.spec].iter().map(of).collect::<Vec<_>>(),
        expected
    );
    let known = ledger
        .spec_receipts_of_id(&learned.project, &learned.spec, &learned.receipt_id)
        .unwrap();
    assert_eq!(known.iter().map(of).collect::<Vec<_>>(), expected[..1]);
    assert!(ledger.verify(&[]).unwrap().passes());
}
