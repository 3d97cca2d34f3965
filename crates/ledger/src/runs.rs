//! The list of runs: what `run list` shows without opening a run directory.
//!
//! A row says where a run stands. It is rewritten as the run goes on; what it says is an event of the chain, too
//! ([`crate::recorded_rows`]).

use crucible_model::{Digest, RunId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Deserialize;

use crate::chain::unreadable;
use crate::error::LedgerError;
use crate::recorded_rows::record_changes;
use crate::store::Ledger;

/// One run, as a line of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// The id of the run.
    pub id: RunId,
    /// What was asked for, already free of secrets.
    pub goal: String,
    /// The repository it changes.
    pub repo: String,
    /// The state it reached.
    pub state: String,
    /// When it was started. Recording a run again does not move this.
    pub created: Timestamp,
    /// When its state last changed.
    pub updated: Timestamp,
}

/// What of an event's body names the bytes of the file that it is about.
#[derive(Deserialize)]
struct Recorded {
    digest: Digest,
}

impl Ledger {
    /// Adds a run to the list, or brings its goal, repository, state and last instant up to date.
    ///
    /// # Errors
    ///
    /// Fails for all that can be wrong with the database.
    pub fn record_run(&mut self, run: RunRow) -> Result<(), LedgerError> {
        self.transact(|turn| turn.record_run(&run))
    }

    /// All runs, the newest first.
    ///
    /// # Errors
    ///
    /// Fails when the database cannot be read or a row does not hold what Crucible writes.
    pub fn runs(&self) -> Result<Vec<RunRow>, LedgerError> {
        read_all(&self.connection).map_err(self.fail())
    }

    /// The newest `most` runs of a repository that reached one of these states, the newest first.
    ///
    /// # Errors
    ///
    /// As [`Ledger::runs`].
    pub fn runs_of(
        &self,
        repo: &str,
        states: &[&str],
        most: usize,
    ) -> Result<Vec<RunRow>, LedgerError> {
        let sql = "SELECT id, goal, repo, state, created, updated FROM runs WHERE repo = ?1
                   ORDER BY created DESC, id DESC";
        let read = |select: &mut rusqlite::CachedStatement<'_>| {
            let rows = select.query_map([repo], read_run)?;
            let reached = |row: &Result<RunRow, rusqlite::Error>| {
                row.as_ref()
                    .map_or(true, |run| states.contains(&run.state.as_str()))
            };
            rows.filter(reached).take(most).collect()
        };
        self.connection
            .prepare_cached(sql)
            .and_then(|mut select| read(&mut select))
            .map_err(self.fail())
    }

    /// The file of a run as its last event about that path knows it, from the artifacts; nothing where no event records
    /// it, or where its bytes are not kept.
    ///
    /// # Errors
    ///
    /// As [`Ledger::runs`], and as [`Ledger::artifact`].
    pub fn recorded_file(&self, run: &RunId, path: &str) -> Result<Option<Vec<u8>>, LedgerError> {
        // Files are recorded under a key; with that said, the index by run serves.
        let sql = "SELECT body FROM events WHERE run_id = ?1 AND key IS NOT NULL AND path = ?2 ORDER BY seq DESC LIMIT 1";
        let body: Option<String> = self
            .connection
            .prepare_cached(sql)
            .and_then(|mut select| {
                select
                    .query_row([run.as_str(), path], |row| row.get(0))
                    .optional()
            })
            .map_err(self.fail())?;
        let digest = body
            .and_then(|body| serde_json::from_str::<Recorded>(&body).ok())
            .map(|body| body.digest);
        digest.map_or(Ok(None), |digest| self.artifact(&digest))
    }

    /// One run by its id.
    ///
    /// # Errors
    ///
    /// As [`Ledger::runs`].
    pub fn run(&self, id: &RunId) -> Result<Option<RunRow>, LedgerError> {
        self.connection
            .prepare_cached(
                "SELECT id, goal, repo, state, created, updated FROM runs WHERE id = ?1",
            )
            .and_then(|mut select| select.query_row([id.as_str()], read_run).optional())
            .map_err(self.fail())
    }
}

/// All runs, the newest first.
fn read_all(connection: &Connection) -> Result<Vec<RunRow>, rusqlite::Error> {
    let sql =
        "SELECT id, goal, repo, state, created, updated FROM runs ORDER BY created DESC, id DESC";
    connection
        .prepare_cached(sql)?
        .query_map([], read_run)?
        .collect()
}

/// Adds a run to the list within whatever transaction the caller has. A row that stays the same is not recorded again.
pub(crate) fn record_run_within(
    connection: &Connection,
    run: &RunRow,
    fail: &impl Fn(rusqlite::Error) -> LedgerError,
) -> Result<(), LedgerError> {
    let known = connection
        .prepare_cached("SELECT id, goal, repo, state, created, updated FROM runs WHERE id = ?1")
        .and_then(|mut select| select.query_row([run.id.as_str()], read_run).optional())
        .map_err(fail)?;
    let run = RunRow {
        created: known.as_ref().map_or(run.created, |known| known.created),
        ..run.clone()
    };
    if known.as_ref() == Some(&run) {
        return Ok(());
    }
    let sql = "INSERT INTO runs (id, goal, repo, state, created, updated) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
               ON CONFLICT (id) DO UPDATE SET goal = excluded.goal, repo = excluded.repo, state = excluded.state,
                                              updated = excluded.updated";
    let values = params![
        run.id.as_str(),
        run.goal,
        run.repo,
        run.state,
        run.created.to_string(),
        run.updated.to_string()
    ];
    connection
        .prepare_cached(sql)
        .and_then(|mut upsert| upsert.execute(values))
        .map_err(fail)?;
    record_changes(connection, run.updated, fail)
}

pub(crate) fn read_run(row: &Row<'_>) -> Result<RunRow, rusqlite::Error> {
    let instant = |index: usize| {
        row.get::<_, String>(index)?
            .parse::<Timestamp>()
            .map_err(|error| unreadable(index, error))
    };
    Ok(RunRow {
        id: row
            .get::<_, String>(0)?
            .parse()
            .map_err(|error| unreadable(0, error))?,
        goal: row.get(1)?,
        repo: row.get(2)?,
        state: row.get(3)?,
        created: instant(4)?,
        updated: instant(5)?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::event::NewEvent;

    #[test]
    fn runs_of_repository_are_found_with_files() {
        let dir = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::open(&dir.path().join("ledger.db")).unwrap();
        let at: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        for (id, repo, state) in [
            ("a", "/r", "verified"),
            ("b", "/r", "failed"),
            ("c", "/r", "landed"),
            ("d", "/s", "landed"),
        ] {
            let row = RunRow {
                id: id.parse().unwrap(),
                goal: "g".to_owned(),
                repo: repo.to_owned(),
                state: state.to_owned(),
                created: at,
                updated: at,
            };
            ledger.record_run(row).unwrap();
        }
        let found = |states: &[&str], most| {
            let runs = ledger.runs_of("/r", states, most).unwrap();
            runs.iter()
                .map(|run| run.id.to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(found(&["verified", "landed"], 9), ["c", "a"]);
        assert_eq!(found(&["verified", "landed"], 1), ["c"]);
        assert_eq!(found(&[], 9), [""; 0]);

        let run: RunId = "a".parse().unwrap();
        for (key, bytes) in [("one", &b"first"[..]), ("two", b"second")] {
            let digest = ledger.put_artifact("f", bytes).unwrap();
            let body = json!({ "digest": digest, "more": 1 });
            ledger
                .append(
                    NewEvent::new(run.clone(), at, "r", "E", body)
                        .about("f")
                        .once(key),
                )
                .unwrap();
        }
        ledger
            .append(
                NewEvent::new(run.clone(), at, "r", "E", json!({}))
                    .about("g")
                    .once("g"),
            )
            .unwrap();
        let missing_json = json!({ "digest": Digest::compute(b"never kept") });
        ledger
            .append(
                NewEvent::new(run.clone(), at, "r", "E", missing_json)
                    .about("h")
                    .once("h"),
            )
            .unwrap();
        assert_eq!(
            ledger.recorded_file(&run, "f").unwrap().as_deref(),
            Some(&b"second"[..])
        );
        for (of, path) in [("a", "g"), ("a", "h"), ("a", "i"), ("b", "f")] {
            assert_eq!(
                ledger.recorded_file(&of.parse().unwrap(), path).unwrap(),
                None,
                "{of} {path}"
            );
        }
    }
}
