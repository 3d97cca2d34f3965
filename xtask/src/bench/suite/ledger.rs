//! Appending events to the ledger, beside rows in a bare database: one transaction each, with the same settings, in
//! the same folder.

use std::path::Path;
use std::time::Duration;

use crucible_ledger::{EventRecord, Ledger, LedgerError, NewEvent};
use crucible_model::{RunId, Timestamp, to_canonical_json};
use rusqlite::{Connection, OpenFlags, TransactionBehavior, params};
use serde_json::{Value, json};

use super::bench::{Bench, Context, unmeasured};
use super::measure::{Case, Goal, side_by_side, timed};
use super::tree::scratch;
use crate::error::TaskError;

/// How many rows one round writes.
const ROWS: u64 = 100;

/// The least share of the bare database's speed.
const LEAST: f64 = 0.8;

/// The bench of the ledger.
pub(super) struct Appends;

impl Bench for Appends {
    fn name(&self) -> &'static str {
        "ledger"
    }

    fn run(&self, context: &Context<'_>) -> Result<Vec<Case>, TaskError> {
        let folder = scratch()?;
        let mut ledger =
            Ledger::open(&folder.path().join("ledger.db")).map_err(unmeasured(self.name()))?;
        let run: RunId = "bench".parse().map_err(unmeasured(self.name()))?;
        let ts: Timestamp = "2026-01-31T09:30:00Z"
            .parse()
            .map_err(unmeasured(self.name()))?;
        let sample = append(&mut ledger, &run, ts, 0).map_err(unmeasured(self.name()))?;
        let bare =
            Bare::open(&folder.path().join("bare.db"), &sample).map_err(unmeasured(self.name()))?;
        let mut bare = bare;

        let mut number = 0;
        let ours = || -> Result<Duration, TaskError> {
            let (time, appended) = timed(|| {
                (0..ROWS).try_for_each(|_| {
                    number += 1;
                    append(&mut ledger, &run, ts, number).map(|_| ())
                })
            });
            appended.map(|()| time).map_err(unmeasured("ledger"))
        };
        let beside = || -> Result<Duration, TaskError> {
            let (time, inserted) = timed(|| (0..ROWS).try_for_each(|_| bare.insert()));
            inserted.map(|()| time).map_err(unmeasured("ledger"))
        };
        Ok(vec![Case {
            bench: self.name(),
            ours: format!("{ROWS} appended events"),
            beside: format!("{ROWS} rows in bare SQLite"),
            pair: side_by_side(context.rounds, ours, beside)?,
            goal: Goal::SpeedAtLeast(LEAST),
        }])
    }
}

fn append(
    ledger: &mut Ledger,
    run: &RunId,
    ts: Timestamp,
    number: u64,
) -> Result<EventRecord, LedgerError> {
    let event = NewEvent::new(run.clone(), ts, "verifier", "gate-finished", body(number));
    ledger.append(
        event
            .about("artifacts/verify_report.json")
            .once(format!("gate-finished:{number:08}")),
    )
}

/// An event as a run writes them.
fn body(number: u64) -> Value {
    json!({
        "attempt": 1,
        "command": ["cargo", "test", "--offline", "--quiet"],
        "duration_ms": number,
        "exit_code": 0,
        "gate": "cargo-test",
        "log": "logs/gate-cargo-test.log",
        "outcome": "pass"
    })
}

/// One table without index, trigger or chain, and an event's columns in it.
struct Bare {
    connection: Connection,
    row: [String; 10],
}

impl Bare {
    fn open(path: &Path, sample: &EventRecord) -> Result<Self, Box<dyn std::error::Error>> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_EXRESCODE;
        let mut connection = Connection::open_with_flags(path, flags)?;
        connection.set_transaction_behavior(TransactionBehavior::Immediate);
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cell_size_check = ON;
             PRAGMA recursive_triggers = ON; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;
             CREATE TABLE events (seq INTEGER PRIMARY KEY, run_id TEXT NOT NULL, ts TEXT NOT NULL,
                 role TEXT NOT NULL, event TEXT NOT NULL, path TEXT, key TEXT, artifacts TEXT NOT NULL,
                 body TEXT NOT NULL, prev TEXT NOT NULL, hash TEXT NOT NULL) STRICT;",
        )?;
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        let row = [
            sample.run.to_string(),
            sample.ts.to_string(),
            sample.role.clone(),
            sample.event.clone(),
            text(&sample.path),
            text(&sample.key),
            "[]".to_owned(),
            String::from_utf8(to_canonical_json(&sample.body)?)?,
            sample.prev.to_string(),
            sample.hash.to_string(),
        ];
        Ok(Self { connection, row })
    }

    fn insert(&mut self) -> Result<(), rusqlite::Error> {
        let [run, ts, role, event, path, key, artifacts, body, prev, hash] = &self.row;
        let transaction = self.connection.transaction()?;
        transaction
            .prepare_cached(
                "INSERT INTO events (run_id, ts, role, event, path, key, artifacts, body, prev, hash)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            )?
            .execute(params![run, ts, role, event, path, key, artifacts, body, prev, hash])?;
        transaction.commit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_write_rows_and_wait_for_disk() {
        let folder = scratch().unwrap();
        let mut ledger = Ledger::open(&folder.path().join("ledger.db")).unwrap();
        let (run, ts) = (
            "bench".parse().unwrap(),
            "2026-01-31T09:30:00Z".parse().unwrap(),
        );
        let sample = append(&mut ledger, &run, ts, 0).unwrap();
        assert_eq!(append(&mut ledger, &run, ts, 1).unwrap().seq, 2);

        let mut bare = Bare::open(&folder.path().join("bare.db"), &sample).unwrap();
        bare.insert().unwrap();
        let ask = |what: &str| -> String {
            bare.connection
                .query_row(what, [], |row| row.get(0))
                .unwrap()
        };
        assert_eq!(ask("SELECT cast(count(*) AS TEXT) FROM events"), "1");
        assert_eq!(ask("PRAGMA journal_mode"), "wal");
        assert_eq!(
            ask("SELECT cast(synchronous AS TEXT) FROM pragma_synchronous"),
            "2"
        );
    }
}
