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
    NewEvent::new(run_id(), instant(), "chair", "step-done", json!({ "number": number, "note": "größer" }))
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

/// Runs `sql` with the guards out of the way, and puts the guards back.
pub(crate) fn tamper(path: &Path, sql: &str) {
    let connection = Connection::open(path).unwrap();
    let mut select =
        connection.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").unwrap();
    let triggers: Vec<(String, String)> = select
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    drop(select);
    for (name, _) in &triggers {
        connection.execute_batch(&format!("DROP TRIGGER {name}")).unwrap();
    }
    connection.execute_batch("PRAGMA ignore_check_constraints = ON").unwrap();
    connection.execute_batch(sql).unwrap();
    for (_, sql) in &triggers {
        connection.execute_batch(sql).unwrap();
    }
}

#[expect(clippy::disallowed_methods, reason = "a test damages a file")]
pub(crate) fn overwrite(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
}
