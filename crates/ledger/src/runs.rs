//! The list of runs: what `run list` shows without opening a run directory.
//!
//! A row says where a run stands. It is rewritten as the run goes on and can be made again from the run's
//! directory and events, which are what counts.

use crucible_model::{RunId, Timestamp};
use rusqlite::{OptionalExtension, Row, params};

use crate::chain::unreadable;
use crate::error::LedgerError;
use crate::store::Ledger;

/// One run, as a line of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// Its id.
    pub id: RunId,
    /// What was asked for, already free of secrets.
    pub goal: String,
    /// The repository it changes.
    pub repo: String,
    /// The state it reached.
    pub state: String,
    /// When it was started. Recording a run again does not move this.
    pub created: Timestamp,
    /// When it last moved.
    pub updated: Timestamp,
}

impl Ledger {
    /// Adds a run to the list, or brings its goal, repository, state and last instant up to date.
    ///
    /// # Errors
    ///
    /// Fails for all that can be wrong with the database.
    pub fn record_run(&mut self, run: RunRow) -> Result<(), LedgerError> {
        let sql = "INSERT INTO runs (id, goal, repo, state, created, updated) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                   ON CONFLICT (id) DO UPDATE SET goal = excluded.goal, repo = excluded.repo,
                                                  state = excluded.state, updated = excluded.updated";
        let values = params![
            run.id.as_str(),
            run.goal,
            run.repo,
            run.state,
            run.created.to_string(),
            run.updated.to_string()
        ];
        let written = self.connection.prepare_cached(sql).and_then(|mut insert| insert.execute(values));
        written.map(|_| ()).map_err(self.fail())
    }

    /// All runs, the newest first.
    ///
    /// # Errors
    ///
    /// Fails when the database cannot be read or a row does not hold what Crucible writes.
    pub fn runs(&self) -> Result<Vec<RunRow>, LedgerError> {
        let sql = "SELECT id, goal, repo, state, created, updated FROM runs ORDER BY created DESC, id DESC";
        self.connection
            .prepare_cached(sql)
            .and_then(|mut select| select.query_map([], read_run)?.collect())
            .map_err(self.fail())
    }

    /// One run by its id.
    ///
    /// # Errors
    ///
    /// As [`Ledger::runs`].
    pub fn run(&self, id: &RunId) -> Result<Option<RunRow>, LedgerError> {
        self.connection
            .prepare_cached("SELECT id, goal, repo, state, created, updated FROM runs WHERE id = ?1")
            .and_then(|mut select| select.query_row([id.as_str()], read_run).optional())
            .map_err(self.fail())
    }
}

fn read_run(row: &Row<'_>) -> Result<RunRow, rusqlite::Error> {
    let instant = |index: usize| {
        row.get::<_, String>(index)?.parse::<Timestamp>().map_err(|error| unreadable(index, error))
    };
    Ok(RunRow {
        id: row.get::<_, String>(0)?.parse().map_err(|error| unreadable(0, error))?,
        goal: row.get(1)?,
        repo: row.get(2)?,
        state: row.get(3)?,
        created: instant(4)?,
        updated: instant(5)?,
    })
}
