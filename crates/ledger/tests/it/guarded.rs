//! Somebody edits, deletes or adds a row of any table behind the ledger's back: `verify` reports it.

#![expect(clippy::disallowed_methods, reason = "a test copies a database")]

use std::path::Path;

use crucible_ledger::{CrawlFact, Ledger};
use rusqlite::Connection;

use crate::common::{Place, instant, older, place, run_id, tamper, with_every_row};

/// What is deliberately not compared, by table and change, with the reason.
const EXCEPTIONS: [(&str, &str, &str); 4] = [
    (
        "crawl_cache",
        "*",
        "answers of GitHub for a quarter of an hour, which may be lost; a crawl records what it used",
    ),
    (
        "sqlite_sequence",
        "*",
        "SQLite corrects a counter by the highest row; that of events is compared",
    ),
    ("artifacts", "id", "an internal number that nothing names"),
    (
        "artifacts",
        "insert",
        "bytes that no event names are not evidence",
    ),
];

fn is_excepted(table: &str, change: &str) -> bool {
    EXCEPTIONS
        .iter()
        .any(|(of, what, _)| *of == table && (*what == "*" || *what == change))
}

fn names(connection: &Connection, sql: &str, of: &str) -> Vec<String> {
    let mut select = connection.prepare(sql).unwrap();
    select
        .query_map([of], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

/// Another value of the same type as a column holds.
fn other_value(column: &str) -> String {
    format!(
        "CASE typeof({column}) WHEN 'integer' THEN {column} + 1000 WHEN 'blob' THEN x'00' ELSE ifnull({column}, '') || 'x' END"
    )
}

/// Each table, with the SQL of each change of one of its rows.
fn changes(path: &Path) -> Vec<(String, Vec<(String, String)>)> {
    let connection = Connection::open(path).unwrap();
    let tables = names(
        &connection,
        "SELECT name FROM sqlite_master WHERE type = ?1 ORDER BY name",
        "table",
    );
    let of_table = |table: String| {
        let columns = names(
            &connection,
            "SELECT name FROM pragma_table_info(?1) ORDER BY cid",
            &table,
        );
        let key = names(
            &connection,
            "SELECT name FROM pragma_table_info(?1) WHERE pk > 0 ORDER BY pk",
            &table,
        );
        let key = if key.is_empty() {
            "rowid".to_owned()
        } else {
            key.join(", ")
        };
        let first = format!("({key}) = (SELECT {key} FROM {table} LIMIT 1)");
        let integers = names(
            &connection,
            "SELECT name FROM pragma_table_info(?1) WHERE type = 'INTEGER'",
            &table,
        );
        let mut changes: Vec<(String, String)> = columns
            .iter()
            .map(|column| {
                let value = if integers.contains(column) {
                    format!("ifnull({column}, 0) + 1000")
                } else {
                    other_value(column)
                };
                (
                    column.clone(),
                    format!("UPDATE {table} SET {column} = {value} WHERE {first}"),
                )
            })
            .collect();
        changes.push((
            "delete".to_owned(),
            format!("DELETE FROM {table} WHERE {first}"),
        ));
        let unique = names(
            &connection,
            "SELECT DISTINCT c.name FROM pragma_index_list(?1) i, pragma_index_info(i.name) c WHERE i.\"unique\"
             UNION SELECT name FROM pragma_table_info(?1) WHERE pk > 0",
            &table,
        );
        let copied: Vec<String> = columns
            .iter()
            .map(|column| {
                if unique.contains(column) {
                    other_value(column)
                } else {
                    column.clone()
                }
            })
            .collect();
        let copied = copied.join(", ");
        changes.push((
            "insert".to_owned(),
            format!("INSERT INTO {table} SELECT {copied} FROM {table} WHERE {first}"),
        ));
        (table, changes)
    };
    tables.into_iter().map(of_table).collect()
}

/// A ledger in which every table has a row, in one file.
fn full() -> Place {
    let place = place();
    with_every_row(&place.path);
    place
}

#[test]
fn every_change_of_any_table_is_reported() {
    let original = full();
    let missed: Vec<String> = changes(&original.path)
        .into_iter()
        .flat_map(|(table, changes)| {
            changes
                .into_iter()
                .map(move |(what, sql)| (table.clone(), what, sql))
        })
        .filter(|(table, what, _)| !is_excepted(table, what))
        .filter(|(table, _, sql)| {
            let place = place();
            crucible_host::fs::create_dir_all(place.path.parent().unwrap()).unwrap();
            std::fs::copy(&original.path, &place.path).unwrap();
            let connection = Connection::open(&place.path).unwrap();
            let rows = |sql: &str| {
                connection
                    .query_row(sql, [], |row| row.get::<_, i64>(0))
                    .unwrap()
            };
            assert!(
                rows(&format!("SELECT count(*) FROM {table}")) > 0,
                "{table} has no row to change"
            );
            tamper(&place.path, sql);
            let verdict = Ledger::open(&place.path).unwrap().verify(&[]).unwrap();
            // What a constraint alone would find does not count: another edit could satisfy it.
            let is_found = verdict
                .findings()
                .iter()
                .any(|finding| finding.code.as_str() != "ledger-database-damaged");
            !is_found
        })
        .map(|(table, what, _)| format!("{table}: {what}"))
        .collect();
    assert_eq!(missed, [""; 0]);
}

/// A change that Crucible makes to a row does not confirm what was edited in it before.
#[test]
fn edit_before_valid_change_is_still_reported() {
    for (edit, change) in [
        (
            "UPDATE crawl_sessions SET query = 'x'",
            (|ledger: &mut Ledger| {
                let moment = crate::forge::moment();
                ledger
                    .note_crawl(
                        1,
                        moment,
                        &CrawlFact::Detected {
                            build_system: "cargo".to_owned(),
                        },
                    )
                    .unwrap();
            }) as fn(&mut Ledger),
        ),
        (
            "UPDATE model_calls SET reserved_tokens = 1 WHERE seq = 2",
            |ledger: &mut Ledger| {
                let end = crate::rows::settlement();
                ledger.settle_call(&run_id(), 2, &end).unwrap();
            },
        ),
        (
            "DELETE FROM runs WHERE id = 'other'",
            |ledger: &mut Ledger| {
                let row = crate::rows::row(&"other".parse().unwrap(), "landed");
                ledger.record_run(row).unwrap();
            },
        ),
    ] {
        let place = full();
        let mut ledger = Ledger::open(&place.path).unwrap();
        change(&mut ledger);
        assert_eq!(ledger.verify(&[]).unwrap().findings(), [], "{edit}");
        drop((ledger, place));

        let place = full();
        tamper(&place.path, edit);
        let mut ledger = Ledger::open(&place.path).unwrap();
        change(&mut ledger);
        let verdict = ledger.verify(&[]).unwrap();
        assert!(!verdict.passes(), "{edit}");
    }
}

#[test]
fn a_change_costs_one_event_in_its_transaction() {
    let place = full();
    let mut ledger = Ledger::open(&place.path).unwrap();
    let before = ledger.head().unwrap().seq;
    ledger
        .note_crawl(
            1,
            crate::forge::moment(),
            &CrawlFact::Detected {
                build_system: "make".to_owned(),
            },
        )
        .unwrap();
    let events = ledger.events(None).unwrap();
    let new: Vec<&str> = events
        .iter()
        .filter(|event| event.seq > before)
        .map(|event| event.event.as_str())
        .collect();
    assert_eq!(new, ["CRAWL_DETECTED", "ROWS_RECORDED"]);
    assert_eq!(
        events.last().unwrap().body["rows"][0]["row"]["build_system"],
        "make"
    );
    assert_eq!(events.last().unwrap().ts, instant());
}

#[test]
fn older_ledger_rows_are_recorded_at_migration() {
    let original = place();
    older(&original.path, 8);
    tamper(
        &original.path,
        "UPDATE schema_version SET migration = '0007_other' WHERE version = 7",
    );
    assert_eq!(
        Ledger::open(&original.path)
            .unwrap()
            .verify(&[])
            .unwrap()
            .findings(),
        []
    );
    for (edit, code) in [
        ("UPDATE runs SET goal = 'x'", "ledger-run-edited"),
        ("UPDATE model_calls SET outcome = 'x'", "ledger-call-edited"),
        ("DELETE FROM crawl_messages", "ledger-crawl-edited"),
        (
            "UPDATE crawl_artifacts SET export_filename = NULL",
            "ledger-crawl-edited",
        ),
        ("DELETE FROM skill_runs", "ledger-skill-edited"),
        (
            "UPDATE skill_proposals SET description = 'x'",
            "ledger-skill-edited",
        ),
        (
            "UPDATE gate_results SET duration_ms = 99",
            "ledger-skill-edited",
        ),
    ] {
        let place = place();
        older(&place.path, 8);
        drop(Ledger::open(&place.path).unwrap());
        tamper(&place.path, edit);
        let verdict = Ledger::open(&place.path).unwrap().verify(&[]).unwrap();
        assert!(
            verdict
                .findings()
                .iter()
                .any(|finding| finding.code.as_str() == code),
            "{edit}: {verdict:?}"
        );
    }
}
