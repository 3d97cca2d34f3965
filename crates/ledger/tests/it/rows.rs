//! Somebody edits the rows of runs and model calls behind the ledger's back: the chain tells what they said.

use crucible_ledger::{
    Allowance, Ledger, LedgerError, MicroDollars, NewCall, Reservation, RowFault, RowKind, RunRow,
    Settlement,
};
use crucible_model::{Digest, RunId};
use rusqlite::Connection;

use crate::common::{Place, filled, instant, place, run_id, tamper};

fn call(run: &RunId) -> NewCall {
    NewCall {
        run: run.clone(),
        provider: "gateway".to_owned(),
        model: "m".to_owned(),
        request: Digest::compute(b"request"),
        ts: instant(),
        tokens: 100,
        cost: MicroDollars(5),
    }
}

pub(crate) fn settlement() -> Settlement {
    Settlement {
        ts: instant(),
        outcome: "ok".to_owned(),
        tokens_in: Some(10),
        tokens_out: None,
        cost: Some(MicroDollars(1)),
    }
}

pub(crate) fn row(id: &RunId, state: &str) -> RunRow {
    RunRow {
        id: id.clone(),
        goal: "größer".to_owned(),
        repo: "/r".to_owned(),
        state: state.to_owned(),
        created: instant(),
        updated: instant(),
    }
}

/// Two runs that moved on once, and of the first one a call that ended and one that did not.
fn booked() -> Place {
    let place = place();
    book(&mut Ledger::open(&place.path).unwrap());
    place
}

/// Records the runs and calls of [`booked`].
pub(crate) fn book(ledger: &mut Ledger) {
    let other: RunId = "other".parse().unwrap();
    for run in [&run_id(), &other] {
        ledger.record_run(row(run, "new")).unwrap();
        ledger.record_run(row(run, "signed")).unwrap();
    }
    for seq in 1..=2 {
        let granted = ledger
            .reserve_call(&call(&run_id()), &Allowance::default())
            .unwrap();
        assert_eq!(granted, Reservation::Granted { seq });
    }
    ledger.settle_call(&run_id(), 1, &settlement()).unwrap();
}

#[test]
fn untouched_rows_agree_with_the_chain() {
    let place = booked();
    let mut ledger = Ledger::open(&place.path).unwrap();
    assert_eq!(ledger.verify(&[]).unwrap().findings(), []);
    assert_eq!(ledger.row_faults(&run_id()).unwrap(), []);
    // The run's own story holds none of it, and a row that stays the same is told once.
    assert_eq!(ledger.events(Some(&run_id())).unwrap(), []);
    let head = ledger.head().unwrap();
    ledger.record_run(row(&run_id(), "signed")).unwrap();
    assert_eq!(ledger.head().unwrap(), head);
    // A run whose name leaves no room for a prefix is told as well.
    let long: RunId = "a".repeat(64).parse().unwrap();
    ledger.record_run(row(&long, "new")).unwrap();
    ledger
        .reserve_call(&call(&long), &Allowance::default())
        .unwrap();
    assert_eq!(ledger.row_faults(&long).unwrap(), []);
    assert_eq!(ledger.verify(&[]).unwrap().findings(), []);
}

#[test]
fn any_edit_of_a_row_is_found() {
    let run = run_id();
    let zeroes = Digest::ZERO;
    let of_call = |sql: &str| format!("UPDATE model_calls SET {sql} WHERE seq = 1");
    let mut cases: Vec<(String, RowKind, String)> = Vec::new();
    for edit in [
        "tokens_in = 9",
        "tokens_in = NULL",
        "tokens_out = 1",
        "cost = 0",
        "cost = NULL",
        "outcome = 'x'",
        "provider = 'x'",
        "model = 'x'",
        "attempt = 7",
        "reserved_tokens = 1",
        "reserved_cost = 0",
        "settled_at = '2027-01-31T09:30:00Z'",
        "reserved_at = '2027-01-31T09:30:00Z'",
        "state = 'reserved'",
        "state = 'reserved', settled_at = NULL, outcome = NULL, tokens_in = NULL, tokens_out = NULL, cost = NULL",
    ] {
        cases.push((of_call(edit), RowKind::Call, format!("call 1 of run {run}")));
    }
    cases.push((
        of_call(&format!("request = '{zeroes}'")),
        RowKind::Call,
        format!("call 1 of run {run}"),
    ));
    for missing in [
        "DELETE FROM model_calls WHERE seq = 1",
        "DELETE FROM model_calls",
    ] {
        cases.push((
            missing.to_owned(),
            RowKind::Call,
            format!("call 1 of run {run}"),
        ));
    }
    let added = "INSERT INTO model_calls SELECT run_id, 3, provider, model, request, attempt, state, reserved_at, reserved_tokens,
                 reserved_cost, settled_at, outcome, tokens_in, tokens_out, cost
                 FROM model_calls WHERE seq = 2";
    cases.push((
        added.to_owned(),
        RowKind::Call,
        format!("call 3 of run {run}"),
    ));
    for edit in [
        "goal = 'x'",
        "repo = 'x'",
        "state = 'landed'",
        "created = '2027-01-31T09:30:00Z'",
        "updated = '2027-01-31T09:30:00Z'",
    ] {
        let sql = format!("UPDATE runs SET {edit} WHERE id = '{run}'");
        cases.push((sql, RowKind::Run, format!("run {run}")));
    }
    let of_run = format!("table_name = 'runs' AND row_key = '[\"{run}\"]'");
    for record in [
        format!("DELETE FROM recorded_rows WHERE {of_run}"),
        format!("UPDATE recorded_rows SET event = 99 WHERE {of_run}"),
        format!(
            "UPDATE runs SET state = 'x' WHERE id = '{run}'; DELETE FROM recorded_rows WHERE {of_run}"
        ),
        // The row as it was before, with the event that recorded it then.
        format!(
            "UPDATE runs SET state = 'new' WHERE id = '{run}'; UPDATE recorded_rows SET event = event - 1 WHERE {of_run}"
        ),
    ] {
        cases.push((record, RowKind::Run, format!("run {run}")));
    }
    cases.push((
        format!("DELETE FROM runs WHERE id = '{run}'"),
        RowKind::Run,
        format!("run {run}"),
    ));
    for (sql, of, subject) in cases {
        let place = booked();
        tamper(&place.path, &sql);
        let ledger = Ledger::open(&place.path).unwrap();
        let faults = ledger.row_faults(&run).unwrap();
        assert!(
            faults
                .iter()
                .any(|fault| (fault.of, &fault.subject) == (of, &subject)),
            "{sql}: {faults:?}"
        );
        let code = if of == RowKind::Run {
            "ledger-run-edited"
        } else {
            "ledger-call-edited"
        };
        let verdict = ledger.verify(&[]).unwrap();
        let told = |finding: &crucible_model::Finding| {
            finding.code.as_str() == code && finding.subject == subject
        };
        assert!(verdict.findings().iter().any(told), "{sql}: {verdict:?}");
        assert_eq!(
            ledger.row_faults(&"other".parse().unwrap()).unwrap(),
            [],
            "{sql}"
        );
    }
}

/// A ledger as the version before wrote it, with events, artifacts, runs and calls.
fn older_ledger(path: &std::path::Path) {
    let other = place();
    drop(filled(&other.path, 3));
    drop(Ledger::open(path).unwrap());
    crucible_host::fs::remove_file(path).unwrap();
    let raw = Connection::open(path).unwrap();
    raw.pragma_update(None, "journal_mode", "WAL").unwrap();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    for file in &files[..6] {
        raw.execute_batch(&std::fs::read_to_string(file).unwrap())
            .unwrap();
    }
    let sql = format!(
        "PRAGMA user_version = 6;
         ATTACH '{other}' AS other;
         INSERT INTO artifacts SELECT * FROM other.artifacts;
         INSERT INTO events SELECT * FROM other.events ORDER BY seq;
         INSERT INTO runs VALUES ('{run}', 'goal', '/r', 'signed', '2026-01-31T09:30:00Z', '2026-02-01T09:30:00Z');
         INSERT INTO model_calls VALUES
             ('{run}', 1, 'gateway', 'm', '{zeroes}', 1, 'settled', '2026-01-31T09:30:00Z', 7, 8, '2026-01-31T09:31:00Z', 'ok', 1, 2, NULL),
             ('{run}', 2, 'gateway', 'm', '{zeroes}', 2, 'reserved', '2026-01-31T09:32:00Z', 7, 8, NULL, NULL, NULL, NULL, NULL);
         INSERT INTO artifacts VALUES (99, '{log}', 'log', 8, CAST('verified' AS BLOB));
         DETACH other;",
        other = other.path.display(),
        run = run_id(),
        zeroes = Digest::ZERO,
        log = Digest::compute(b"verified"),
    );
    raw.execute_batch(&sql).unwrap();
}

#[test]
fn older_ledger_verifies_and_guards_its_rows() {
    let place = place();
    older_ledger(&place.path);
    let ledger = Ledger::open(&place.path).unwrap();
    assert_eq!(ledger.verify(&[]).unwrap().findings(), []);
    assert_eq!(ledger.calls(&run_id()).unwrap().len(), 2);
    let head = ledger.head().unwrap();
    drop(ledger);
    // Once is enough.
    assert_eq!(Ledger::open(&place.path).unwrap().head().unwrap(), head);
    tamper(
        &place.path,
        "UPDATE model_calls SET tokens_in = 0 WHERE seq = 1",
    );
    let faults = Ledger::open(&place.path)
        .unwrap()
        .row_faults(&run_id())
        .unwrap();
    let problem = "the row does not say what its event says";
    let subject = format!("call 1 of run {}", run_id());
    assert_eq!(
        faults,
        [RowFault {
            of: RowKind::Call,
            subject,
            problem
        }]
    );
    // Artifacts that no event of the older version spoke of cannot be taken away any more, nor change what they are.
    for sql in [
        "DELETE FROM artifacts WHERE kind = 'log'",
        "UPDATE artifacts SET kind = 'x' WHERE kind = 'log'",
    ] {
        let place = crate::common::place();
        older_ledger(&place.path);
        drop(Ledger::open(&place.path).unwrap());
        tamper(&place.path, sql);
        let verdict = Ledger::open(&place.path).unwrap().verify(&[]).unwrap();
        assert_eq!(
            verdict.findings()[0].subject,
            format!("artifact {}", Digest::compute(b"verified")),
            "{sql}"
        );
    }
}

#[test]
fn older_ledger_with_broken_chain_opens_and_reports() {
    let place = place();
    older_ledger(&place.path);
    tamper(&place.path, "DELETE FROM chain_head");
    let verdict = Ledger::open(&place.path).unwrap().verify(&[]).unwrap();
    assert_eq!(verdict.findings()[0].code.as_str(), "ledger-head-edited");
}

#[test]
fn snapshot_has_no_later_change() {
    let room = tempfile::tempdir().unwrap();
    let path = room.path().join("ledger.db");
    let mut writer = Ledger::open(&path).unwrap();
    let reader = Ledger::open(&path).unwrap();
    let row = |state: &str| RunRow {
        id: "r".parse().unwrap(),
        goal: "g".to_owned(),
        repo: "/r".to_owned(),
        state: state.to_owned(),
        created: "2026-01-01T00:00:00Z".parse().unwrap(),
        updated: "2026-01-01T00:00:00Z".parse().unwrap(),
    };
    writer.record_run(row("new")).unwrap();
    let both: Result<_, LedgerError> = reader.snapshot(|reader| {
        let before = reader.runs()?;
        writer.record_run(row("signed"))?;
        Ok((before, reader.runs()?))
    });
    let (before, after) = both.unwrap();
    assert_eq!(before, after);
    assert_eq!(reader.runs().unwrap()[0].state, "signed");
}
