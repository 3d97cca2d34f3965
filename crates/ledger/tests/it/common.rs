//! What the tests of the ledger share: small events, a ledger in a temporary directory, and a second connection
//! that goes around every guard, as somebody with an editor for databases would.

use std::path::{Path, PathBuf};

use crucible_ledger::{Ledger, NewEvent};
use crucible_model::{RunId, Timestamp};
use rusqlite::Connection;
use serde_json::json;

pub(crate) fn run_id() -> RunId {
    "20260131t093000z-1f2e3d4c5b6a".parse().unwrap()
}

pub(crate) fn instant() -> Timestamp {
    "2026-01-31T09:30:00Z".parse().unwrap()
}

pub(crate) fn event(number: u64) -> NewEvent {
    NewEvent::new(
        run_id(),
        instant(),
        "chair",
        "step-done",
        json!({ "number": number, "note": "größer" }),
    )
}

pub(crate) struct Place {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) path: PathBuf,
}

pub(crate) fn place() -> Place {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("home/ledger.db");
    Place { dir, path }
}

/// A ledger of `count` events, the third of which speaks of an artifact.
pub(crate) fn filled(path: &Path, count: u64) -> Ledger {
    let mut ledger = Ledger::open(path).unwrap();
    let artifact = ledger.put_artifact("plan", b"the plan").unwrap();
    for number in 1..=count {
        let mut event = event(number).about(format!("artifacts/{number}.md"));
        if number == 3 {
            event = event.with_artifact(artifact).once("third");
        }
        ledger.append(event).unwrap();
    }
    ledger
}

/// A ledger in which every table has a row.
pub(crate) fn with_every_row(path: &Path) {
    let mut ledger = filled(path, 4);
    crate::rows::book(&mut ledger);
    crate::crawl::tell(&mut ledger);
    ledger
        .cache_crawl(
            "key",
            "answer",
            instant(),
            std::time::Duration::from_secs(1),
        )
        .unwrap();
    ledger
        .record_spec_receipt(&crate::spec_receipts::receipt("design", 1, "{}"))
        .unwrap();
    let (mut ledger, skill) = crate::forge::trusted(path);
    crate::forge::run(&mut ledger, skill);
    assert_eq!(ledger.verify(&[]).unwrap().findings(), []);
}

/// A ledger in which every table of that version has a row, as the version wrote it.
pub(crate) fn older(path: &Path, version: usize) {
    let newer = place();
    with_every_row(&newer.path);
    crucible_host::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let raw = Connection::open(path).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    for file in &files[..version] {
        raw.execute_batch(&std::fs::read_to_string(file).unwrap())
            .unwrap();
    }
    raw.execute_batch(&format!(
        "PRAGMA user_version = {version}; ATTACH '{}' AS newer",
        newer.path.display()
    ))
    .unwrap();
    let names = |sql: &str, of: &str| -> Vec<String> {
        let mut select = raw.prepare(sql).unwrap();
        select
            .query_map([of], |row| row.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect()
    };
    let tables = "SELECT name FROM main.sqlite_schema WHERE type = ?1 AND name NOT IN ('sqlite_sequence', 'schema_version')";
    let copies: Vec<String> = names(tables, "table")
        .into_iter()
        .map(|table| {
            let both = "SELECT name FROM pragma_table_info(?1, 'main') WHERE name IN (SELECT name FROM pragma_table_info(?1, 'newer'))";
            let columns = names(both, &table).join(", ");
            format!("INSERT OR REPLACE INTO main.{table} ({columns}) SELECT {columns} FROM newer.{table};")
        })
        .collect();
    drop(raw);
    let newer = newer.path.display();
    tamper(
        path,
        &format!(
            "ATTACH '{newer}' AS newer; {} DETACH newer;",
            copies.concat()
        ),
    );
}

/// Runs `sql` with the guards out of the way, and puts the guards back.
pub(crate) fn tamper(path: &Path, sql: &str) {
    let connection = Connection::open(path).unwrap();
    let settings =
        "PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF; PRAGMA synchronous = OFF";
    connection.execute_batch(settings).unwrap();
    let mut select = connection
        .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
        .unwrap();
    let triggers: Vec<(String, String)> = select
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    drop(select);
    for (name, _) in &triggers {
        connection
            .execute_batch(&format!("DROP TRIGGER {name}"))
            .unwrap();
    }
    connection.execute_batch(sql).unwrap();
    for (_, sql) in &triggers {
        connection.execute_batch(sql).unwrap();
    }
}

#[expect(clippy::disallowed_methods, reason = "a test damages a file")]
pub(crate) fn overwrite(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
}
