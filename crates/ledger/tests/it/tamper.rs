//! Somebody edits the database behind the ledger's back. Every edit of the chain is found and named.
//!
//! Slow because each case edits a database of its own and verifies it whole.

use crate::common::{filled, place, tamper};
use crucible_ledger::{Anchor, Ledger};
use crucible_model::{Digest, Verdict};
use proptest::prelude::*;
use rusqlite::Connection;

/// The code and subject of the first finding after `sql` was run on a ledger of ten events.
fn first_finding(sql: &str) -> (String, String) {
    let verdict = verdict_after(sql, &[]);
    let first = verdict
        .findings()
        .first()
        .unwrap_or_else(|| panic!("not found: {sql}"));
    assert!(!verdict.passes());
    (first.code.to_string(), first.subject.clone())
}

fn verdict_after(sql: &str, anchors: &[Anchor]) -> Verdict {
    let place = place();
    drop(filled(&place.path, 10));
    tamper(&place.path, sql);
    Ledger::open(&place.path).unwrap().verify(anchors).unwrap()
}

#[track_caller]
fn assert_first(sql: &str, code: &str, subject: &str) {
    assert_eq!(
        first_finding(sql),
        (code.to_owned(), subject.to_owned()),
        "{sql}"
    );
}

#[test]
fn an_edit_of_any_column_is_named() {
    let zeroes = Digest::ZERO.to_string();
    for column in [
        "run_id",
        "ts",
        "role",
        "event",
        "path",
        "key",
        "artifacts",
        "body",
    ] {
        assert_first(
            &format!("UPDATE events SET {column} = 'x' WHERE seq = 4"),
            "ledger-event-edited",
            "event 4",
        );
    }
    for column in ["prev", "hash"] {
        assert_first(
            &format!("UPDATE events SET {column} = '{zeroes}' WHERE seq = 4"),
            "ledger-event-edited",
            "event 4",
        );
    }
    for sql in [
        "UPDATE events SET path = NULL WHERE seq = 4",
        "UPDATE events SET key = '' WHERE seq = 4",
        "UPDATE events SET body = body || ' ' WHERE seq = 4",
        "UPDATE events SET hash = upper(hash) WHERE seq = 4",
        "UPDATE events SET role = CAST(x'ff' AS TEXT) WHERE seq = 4",
        "UPDATE events SET body = CAST(zeroblob(2000000) AS TEXT) WHERE seq = 4",
        "UPDATE events SET path = CAST(zeroblob(2000000) AS TEXT) WHERE seq = 4",
    ] {
        assert_first(sql, "ledger-event-edited", "event 4");
    }
}

#[test]
fn a_deletion_is_named() {
    assert_first(
        "DELETE FROM events WHERE seq = 1",
        "ledger-event-missing",
        "event 1",
    );
    assert_first(
        "DELETE FROM events WHERE seq = 6",
        "ledger-event-missing",
        "event 6",
    );
    assert_first(
        "DELETE FROM events WHERE seq BETWEEN 3 AND 5",
        "ledger-event-missing",
        "event 3",
    );
    // Renumbered, head and counter included, so that no gap is left.
    let renumbered =
        "DELETE FROM events WHERE seq = 6; UPDATE events SET seq = seq - 1 WHERE seq > 6;
                      UPDATE chain_head SET seq = 9; UPDATE sqlite_sequence SET seq = 9;";
    assert_first(renumbered, "ledger-event-moved", "event 6");
}

#[test]
fn a_swap_is_named() {
    for (one, other) in [(4, 5), (2, 9), (1, 10)] {
        let sql = format!(
            "UPDATE events SET seq = 1000 WHERE seq = {one}; UPDATE events SET seq = {one} WHERE seq = {other};
             UPDATE events SET seq = {other} WHERE seq = 1000;"
        );
        assert_first(&sql, "ledger-event-moved", &format!("event {one}"));
    }
}

#[test]
fn truncated_tail_is_detected_while_anything_remembers() {
    assert_first(
        "DELETE FROM events WHERE seq > 7",
        "ledger-tail-cut",
        "event 8",
    );
    assert_first("DELETE FROM events", "ledger-tail-cut", "event 1");
    let head = "DELETE FROM events WHERE seq > 7;
                UPDATE chain_head SET (seq, hash) = (SELECT seq, hash FROM events WHERE seq = 7);";
    assert_first(head, "ledger-tail-cut", "event 8");
    let counter = "DELETE FROM events WHERE seq > 7; UPDATE sqlite_sequence SET seq = 7;";
    assert_first(counter, "ledger-tail-cut", "event 8");
}

#[test]
fn truncation_without_trace_is_found_by_landed_commit() {
    let place = place();
    let ledger = filled(&place.path, 10);
    let landed = ledger.event(8).unwrap().unwrap();
    let early = ledger.event(2).unwrap().unwrap();
    let anchors = [
        Anchor {
            seq: landed.seq,
            hash: landed.hash,
        },
        Anchor {
            seq: early.seq,
            hash: early.hash,
        },
    ];
    assert!(ledger.verify(&anchors).unwrap().passes());
    drop(ledger);
    let sql = "DELETE FROM events WHERE seq > 7; UPDATE sqlite_sequence SET seq = 7;
               UPDATE chain_head SET (seq, hash) = (SELECT seq, hash FROM events WHERE seq = 7);";
    tamper(&place.path, sql);
    let ledger = Ledger::open(&place.path).unwrap();
    assert!(
        ledger.verify(&[]).unwrap().passes(),
        "the database alone cannot know"
    );
    let verdict = ledger.verify(&anchors).unwrap();
    assert_eq!(verdict.findings()[0].code.as_str(), "ledger-tail-cut");
    assert_eq!(verdict.findings()[0].subject, "event 8");
}

#[test]
fn rewritten_history_is_found_by_landed_commit() {
    let place = place();
    let anchor = {
        let event = filled(&place.path, 10).event(6).unwrap().unwrap();
        Anchor {
            seq: event.seq,
            hash: event.hash,
        }
    };
    let other = crate::common::place();
    let mut forged = Ledger::open(&other.path).unwrap();
    for number in 0..10 {
        forged.append(crate::common::event(100 + number)).unwrap();
    }
    assert!(forged.verify(&[]).unwrap().passes());
    let verdict = forged.verify(&[anchor]).unwrap();
    assert_eq!(verdict.findings()[0].code.as_str(), "ledger-anchor-broken");
    assert_eq!(verdict.findings()[0].subject, "event 6");
}

/// An event that was replaced as a whole matches its own hash, so only its neighbours tell.
#[test]
fn replaced_event_is_detected_by_its_neighbours() {
    for at in [1u64, 4, 9, 10] {
        let place = place();
        drop(filled(&place.path, 10));
        // Another ledger with the same events up to there makes a valid event for that place.
        let other = crate::common::place();
        let mut forger = filled(&other.path, at - 1);
        forger.append(crate::common::event(666)).unwrap();
        drop(forger);
        let sql = format!(
            "ATTACH '{}' AS forger;
             DELETE FROM events WHERE seq = {at};
             INSERT INTO main.events SELECT * FROM forger.events WHERE seq = {at};
             DETACH forger;",
            other.path.display()
        );
        tamper(&place.path, &sql);
        let verdict = Ledger::open(&place.path).unwrap().verify(&[]).unwrap();
        let first = &verdict.findings()[0];
        let expected = if at == 10 {
            ("ledger-head-edited", "the head of the chain".to_owned())
        } else {
            ("ledger-event-replaced", format!("event {at}"))
        };
        assert_eq!((first.code.as_str(), first.subject.clone()), expected);
    }
}

#[test]
fn an_inserted_event_is_named() {
    // Behind the head: valid in every way, but no append put it there.
    let place = place();
    drop(filled(&place.path, 10));
    let other = crate::common::place();
    drop(filled(&other.path, 11));
    let attach = format!("ATTACH '{}' AS forger;", other.path.display());
    tamper(
        &place.path,
        &format!(
            "{attach} INSERT INTO main.events SELECT * FROM forger.events WHERE seq = 11; DETACH forger;"
        ),
    );
    let verdict = Ledger::open(&place.path).unwrap().verify(&[]).unwrap();
    assert_eq!(
        (
            verdict.findings()[0].code.as_str(),
            verdict.findings()[0].subject.as_str()
        ),
        ("ledger-event-forged", "event 11")
    );

    // In the middle, with a valid hash, the others renumbered.
    let place = crate::common::place();
    drop(filled(&place.path, 10));
    let other = crate::common::place();
    let mut forger = filled(&other.path, 5);
    forger.append(crate::common::event(666)).unwrap();
    drop(forger);
    let attach = format!("ATTACH '{}' AS forger;", other.path.display());
    let sql = format!(
        "{attach} UPDATE main.events SET seq = -seq - 1 WHERE seq > 5; UPDATE main.events SET seq = -seq WHERE seq < 0;
         INSERT INTO main.events SELECT * FROM forger.events WHERE seq = 6; DETACH forger;
         UPDATE chain_head SET seq = 11; UPDATE sqlite_sequence SET seq = 11;"
    );
    tamper(&place.path, &sql);
    let verdict = Ledger::open(&place.path).unwrap().verify(&[]).unwrap();
    assert_eq!(
        (
            verdict.findings()[0].code.as_str(),
            verdict.findings()[0].subject.as_str()
        ),
        ("ledger-event-forged", "event 6")
    );

    let zero = "INSERT INTO events SELECT 0, run_id, ts, role, event, path, NULL, artifacts, body, prev, hash
                FROM events WHERE seq = 2";
    assert_first(zero, "ledger-event-forged", "event 0");
}

#[test]
fn the_head_and_the_counter_are_checked_too() {
    let head = "the head of the chain";
    assert_first(
        "UPDATE chain_head SET hash = prev FROM (SELECT prev FROM events WHERE seq = 3)",
        "ledger-head-edited",
        head,
    );
    assert_first(
        "UPDATE chain_head SET seq = 4",
        "ledger-event-forged",
        "event 5",
    );
    assert_first(
        "UPDATE chain_head SET seq = 40",
        "ledger-tail-cut",
        "event 11",
    );
    assert_first("DELETE FROM chain_head", "ledger-head-edited", head);
    assert_first(
        "UPDATE chain_head SET hash = 'x'",
        "ledger-head-edited",
        head,
    );
    assert_first(
        "UPDATE sqlite_sequence SET seq = 4",
        "ledger-head-edited",
        head,
    );
    assert_first("DELETE FROM sqlite_sequence", "ledger-head-edited", head);
}

#[test]
fn artifacts_are_checked() {
    let digest = Digest::compute(b"the plan");
    let subject = format!("artifact {digest}");
    assert_first(
        "UPDATE artifacts SET bytes = x'00'",
        "ledger-artifact-edited",
        &subject,
    );
    assert_first(
        "UPDATE artifacts SET bytes = x''",
        "ledger-artifact-edited",
        &subject,
    );
    assert_first(
        "UPDATE artifacts SET size = 1",
        "ledger-artifact-edited",
        &subject,
    );
    assert_first(
        "UPDATE artifacts SET kind = 'x'",
        "ledger-artifact-edited",
        &subject,
    );
    assert_first("DELETE FROM artifacts", "ledger-artifact-missing", &subject);
    assert_first(
        &format!("UPDATE artifacts SET digest = '{}'", Digest::ZERO),
        "ledger-artifact-missing",
        &subject,
    );
}

#[test]
fn reading_an_edited_artifact_is_an_error() {
    let place = place();
    drop(filled(&place.path, 3));
    tamper(&place.path, "UPDATE artifacts SET bytes = x'00'");
    let ledger = Ledger::open(&place.path).unwrap();
    assert!(
        ledger
            .artifact(&Digest::compute(b"the plan"))
            .unwrap_err()
            .to_string()
            .contains("edited")
    );
}

#[test]
fn a_dropped_or_added_guard_is_named() {
    let place = place();
    drop(filled(&place.path, 3));
    let raw = Connection::open(&place.path).unwrap();
    raw.execute_batch("DROP TRIGGER events_are_never_removed")
        .unwrap();
    let verdict = Ledger::open(&place.path).unwrap().verify(&[]).unwrap();
    assert_eq!(verdict.findings()[0].code.as_str(), "ledger-schema-edited");
    assert_eq!(
        verdict.findings()[0].subject,
        "trigger events_are_never_removed"
    );

    let place = crate::common::place();
    drop(filled(&place.path, 3));
    let raw = Connection::open(&place.path).unwrap();
    raw.execute_batch("CREATE TRIGGER extra AFTER INSERT ON events BEGIN DELETE FROM runs; END")
        .unwrap();
    let verdict = Ledger::open(&place.path).unwrap().verify(&[]).unwrap();
    assert_eq!(verdict.findings()[0].subject, "trigger extra");

    let place = crate::common::place();
    drop(filled(&place.path, 3));
    Connection::open(&place.path)
        .unwrap()
        .execute_batch("DROP TABLE artifacts")
        .unwrap();
    let verdict = Ledger::open(&place.path).unwrap().verify(&[]).unwrap();
    assert!(!verdict.passes());
}

#[test]
fn sql_alone_cannot_change_the_chain() {
    let place = place();
    drop(filled(&place.path, 5));
    let raw = Connection::open(&place.path).unwrap();
    for sql in [
        "UPDATE events SET role = 'x' WHERE seq = 2",
        "DELETE FROM events WHERE seq = 5",
        "INSERT OR REPLACE INTO events SELECT * FROM events WHERE seq = 2",
        "INSERT INTO events SELECT 9, run_id, ts, role, event, path, NULL, artifacts, body, prev, hash FROM events WHERE seq = 2",
        "UPDATE artifacts SET bytes = x''",
        "DELETE FROM artifacts",
        "INSERT OR REPLACE INTO artifacts SELECT id, digest, 'x', size, x'' FROM artifacts",
        "UPDATE chain_head SET seq = 2",
        "DELETE FROM chain_head",
    ] {
        assert!(raw.execute_batch(sql).is_err(), "{sql}");
    }
    assert!(
        Ledger::open(&place.path)
            .unwrap()
            .verify(&[])
            .unwrap()
            .passes()
    );
}

#[test]
fn many_findings_are_counted_not_listed() {
    let place = place();
    drop(filled(&place.path, 130));
    tamper(&place.path, "UPDATE events SET role = 'x'");
    let verdict = Ledger::open(&place.path).unwrap().verify(&[]).unwrap();
    assert_eq!(verdict.findings().len(), 101);
    assert_eq!(verdict.findings()[0].subject, "event 1");
    assert_eq!(verdict.findings()[100].subject, "30 more findings");
}

mod properties {
    use crucible_testkit::expensive_cases;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(expensive_cases()))]

        /// One byte of one column of one event, anywhere: found, and that event is the first that is named.
        #[test]
        fn any_changed_byte_of_an_event_is_found(
            seq in 1i64..=10,
            column in prop::sample::select(&["run_id", "ts", "role", "event", "path", "artifacts", "body", "prev", "hash"][..]),
            place_in_text in any::<prop::sample::Index>(),
            flip in 1u8..=255,
        ) {
            let place = place();
            drop(filled(&place.path, 10));
            let raw = Connection::open(&place.path).unwrap();
            let mut bytes: Vec<u8> = raw
                .query_row(&format!("SELECT CAST({column} AS BLOB) FROM events WHERE seq = ?1"), [seq], |row| row.get(0))
                .unwrap();
            drop(raw);
            let index = place_in_text.index(bytes.len());
            bytes[index] ^= flip;
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            tamper(&place.path, &format!("UPDATE events SET {column} = CAST(x'{hex}' AS TEXT) WHERE seq = {seq}"));
            let verdict = Ledger::open(&place.path).unwrap().verify(&[]).unwrap();
            prop_assert_eq!(verdict.findings()[0].code.as_str(), "ledger-event-edited");
            prop_assert_eq!(&verdict.findings()[0].subject, &format!("event {seq}"));
        }

        /// Any set of deletions, and any reordering of the events: found.
        #[test]
        fn any_other_order_of_the_events_is_found(order in Just((1i64..=8).collect::<Vec<_>>()).prop_shuffle(), keep in 1usize..=8) {
            prop_assume!(keep < 8 || order.windows(2).any(|pair| pair[0] > pair[1]));
            let place = place();
            drop(filled(&place.path, 8));
            let mut sql = "UPDATE events SET seq = seq + 100;".to_owned();
            for (place, seq) in order.iter().take(keep).enumerate() {
                sql.push_str(&format!("UPDATE events SET seq = {} WHERE seq = {};", place + 1, seq + 100));
            }
            sql.push_str("DELETE FROM events WHERE seq > 100;");
            sql.push_str(&format!("UPDATE chain_head SET (seq, hash) = (SELECT seq, hash FROM events WHERE seq = {keep});"));
            sql.push_str(&format!("UPDATE sqlite_sequence SET seq = {keep};"));
            // A prefix of the true order is what only an anchor can tell from the truth.
            prop_assume!(order.iter().take(keep).enumerate().any(|(place, seq)| *seq != place as i64 + 1));
            tamper(&place.path, &sql);
            prop_assert!(!Ledger::open(&place.path).unwrap().verify(&[]).unwrap().passes());
        }

        /// Bytes changed in the file itself, below SQL: the ledger refuses to open, or finds it, or the byte had no meaning
        /// and every event and artifact still reads as it was written.
        #[test]
        fn changed_file_bytes_never_change_read_values(at in any::<prop::sample::Index>(), flip in 1u8..=255) {
            let place = place();
            let ledger = filled(&place.path, 10);
            let truth = ledger.events(None).unwrap();
            drop(ledger);
            let mut bytes = std::fs::read(&place.path).unwrap();
            let index = at.index(bytes.len());
            bytes[index] ^= flip;
            crate::common::overwrite(&place.path, &bytes);
            if let Ok(ledger) = Ledger::open(&place.path)
                && ledger.verify(&[]).is_ok_and(|verdict| verdict.passes())
            {
                prop_assert_eq!(ledger.events(None).unwrap(), truth);
                prop_assert_eq!(ledger.artifact(&Digest::compute(b"the plan")).unwrap(), Some(b"the plan".to_vec()));
            }
        }
    }
}
