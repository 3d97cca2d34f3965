//! A crawl's session: its begin, its events and its end.

use crucible_model::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::{Value, json};

use super::{LISTED_CRAWLS, event};
use crate::artifact::put_within;
use crate::chain::{append_within, unreadable};
use crate::error::LedgerError;
use crate::moment::{Moment, instant, number, sql_id};
use crate::recorded_rows::commit;
use crate::store::Ledger;

/// The role under which a crawl itself acts in the chain.
pub(super) const ROLE: &str = "crawler";

/// Where a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CrawlStatus {
    /// It goes on.
    Active,
    /// It did what was asked.
    Completed,
    /// It could not.
    Failed,
    /// It was interrupted or killed.
    Aborted,
}

impl CrawlStatus {
    /// Its name in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Aborted => "aborted",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Active, Self::Completed, Self::Failed, Self::Aborted]
            .into_iter()
            .find(|status| status.as_str() == text)
    }
}

/// A session that begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCrawl {
    /// When.
    pub moment: Moment,
    /// What is searched for, already free of secrets; absent where a repository is named.
    pub query: Option<String>,
    /// The configuration it runs with, as JSON, already free of secrets.
    pub config_snapshot: String,
}

/// What becomes known of a session while it goes on. Texts are free of secrets already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CrawlFact {
    /// A repository was chosen.
    Selected {
        /// `owner/repo`.
        repo: String,
        /// The tag, branch or commit; absent while it is not known which one it will be.
        reference: Option<String>,
    },
    /// What builds it was detected.
    Detected {
        /// One of the thirteen names.
        build_system: String,
    },
    /// A debate was held.
    Debated {
        /// Rounds that took place.
        rounds: u32,
        /// What the synthesis got to see of it, at most 1000 characters.
        summary: String,
    },
    /// A plan was made.
    Planned {
        /// The short hash of its steps.
        plan_hash: String,
        /// The short hash of every prompt template and token budget.
        prompt_hash: String,
    },
    /// Artifacts were written for others to read.
    Exported {
        /// The directory, absolute.
        path: String,
        /// The type of each artifact that was written, with its file's name.
        files: Vec<(String, String)>,
    },
}

/// A session as it stands in the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrawlRow {
    /// Its number, from 1 on; never used twice.
    pub id: u64,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended; absent while it goes on.
    pub ended_at: Option<Timestamp>,
    /// What was searched for.
    pub query: Option<String>,
    /// `owner/repo`.
    pub selected_repo: Option<String>,
    /// The tag, branch or commit; absent while it is not known which one it will be.
    pub selected_ref: Option<String>,
    /// What builds it.
    pub build_system: Option<String>,
    /// Rounds of debate that took place.
    pub debate_rounds: u64,
    /// The short hash of the plan's steps.
    pub plan_hash: Option<String>,
    /// The short hash of every prompt template and token budget.
    pub prompt_hash: Option<String>,
    /// What the synthesis got to see of the debate.
    pub phase_summary: Option<String>,
    /// Where it stands.
    pub status: CrawlStatus,
    /// Where it was exported to.
    pub export_path: Option<String>,
    /// The configuration it ran with, as JSON.
    pub config_snapshot: Option<String>,
}

const COLUMNS: &str =
    "id, started_at, ended_at, query, selected_repo, selected_ref, build_system, debate_rounds,
                       plan_hash, prompt_hash, phase_summary, status, export_path, config_snapshot";

impl Ledger {
    /// Begins a session. `claim` gets its number before anyone else can see it, and makes sure that it counts as alive: what
    /// it returns is handed back. Where it fails nothing has begun.
    ///
    /// # Errors
    ///
    /// What `claim` says, and for all that can be wrong with the database.
    pub fn begin_crawl<T, E: From<LedgerError>>(
        &mut self,
        new: &NewCrawl,
        claim: impl FnOnce(u64) -> Result<T, E>,
    ) -> Result<(u64, T), E> {
        let fail = self.fail();
        let sql = "INSERT INTO crawl_sessions (started_at, query, config_snapshot) VALUES (?1, ?2, ?3) RETURNING id";
        let transaction = self.connection.transaction().map_err(&fail)?;
        let id = transaction
            .prepare_cached(sql)
            .and_then(|mut insert| {
                insert.query_row(
                    params![new.moment.at.to_string(), new.query, new.config_snapshot],
                    |row| number(row, 0),
                )
            })
            .map_err(&fail)?;
        let config = put_within(
            &transaction,
            "crawl-config",
            new.config_snapshot.as_bytes(),
            &fail,
        )?;
        let started = event(
            new.moment,
            id,
            ROLE,
            "CRAWL_STARTED",
            json!({ "query": new.query }),
        )?;
        append_within(&transaction, started.with_artifact(config), &fail)?;
        let claimed = claim(id)?;
        commit(transaction, new.moment.at, &fail)?;
        Ok((id, claimed))
    }

    /// Records what became known of an active session.
    ///
    /// # Errors
    ///
    /// [`LedgerError::NoActiveCrawl`] when the session is not active, and for all that can be wrong with the database.
    pub fn note_crawl(
        &mut self,
        id: u64,
        moment: Moment,
        fact: &CrawlFact,
    ) -> Result<(), LedgerError> {
        let fail = self.fail();
        let transaction = self.connection.transaction().map_err(&fail)?;
        require_active(&transaction, id, &fail)?;
        let (name, body) = fact.write(&transaction, sql_id(id)).map_err(&fail)?;
        append_within(&transaction, event(moment, id, ROLE, name, body)?, &fail)?;
        commit(transaction, moment.at, &fail)
    }

    /// Ends an active session.
    ///
    /// # Errors
    ///
    /// [`LedgerError::NoActiveCrawl`] when the session is not active, also when `status` would leave it so, and for all that
    /// can be wrong with the database.
    pub fn end_crawl(
        &mut self,
        id: u64,
        moment: Moment,
        status: CrawlStatus,
    ) -> Result<(), LedgerError> {
        if status == CrawlStatus::Active {
            return Err(LedgerError::NoActiveCrawl { id });
        }
        let fail = self.fail();
        let sql = "UPDATE crawl_sessions SET ended_at = ?2, status = ?3 WHERE id = ?1";
        let transaction = self.connection.transaction().map_err(&fail)?;
        require_active(&transaction, id, &fail)?;
        transaction
            .prepare_cached(sql)
            .and_then(|mut update| {
                update.execute(params![sql_id(id), moment.at.to_string(), status.as_str()])
            })
            .map_err(&fail)?;
        let body = json!({ "status": status.as_str() });
        append_within(
            &transaction,
            event(moment, id, ROLE, "CRAWL_ENDED", body)?,
            &fail,
        )?;
        commit(transaction, moment.at, &fail)
    }

    /// One session.
    ///
    /// # Errors
    ///
    /// Fails when the database cannot be read or a row does not hold what Crucible writes.
    pub fn crawl(&self, id: u64) -> Result<Option<CrawlRow>, LedgerError> {
        self.connection
            .prepare_cached(&format!(
                "SELECT {COLUMNS} FROM crawl_sessions WHERE id = ?1"
            ))
            .and_then(|mut select| select.query_row([sql_id(id)], read).optional())
            .map_err(self.fail())
    }

    /// The last [`LISTED_CRAWLS`] sessions, the newest first.
    ///
    /// # Errors
    ///
    /// As [`Ledger::crawl`].
    pub fn crawls(&self) -> Result<Vec<CrawlRow>, LedgerError> {
        // Numbers are given in order, instants may be pinned.
        self.connection
            .prepare_cached(&format!(
                "SELECT {COLUMNS} FROM crawl_sessions ORDER BY id DESC LIMIT {LISTED_CRAWLS}"
            ))
            .and_then(|mut select| select.query_map([], read)?.collect())
            .map_err(self.fail())
    }

    /// The numbers of all sessions that go on, or whose process was killed.
    ///
    /// # Errors
    ///
    /// Fails when the database cannot be read.
    pub fn active_crawls(&self) -> Result<Vec<u64>, LedgerError> {
        self.connection
            .prepare_cached("SELECT id FROM crawl_sessions WHERE status = 'active' ORDER BY id")
            .and_then(|mut select| select.query_map([], |row| number(row, 0))?.collect())
            .map_err(self.fail())
    }
}

pub(super) fn require_active(
    transaction: &Connection,
    id: u64,
    fail: &impl Fn(rusqlite::Error) -> LedgerError,
) -> Result<(), LedgerError> {
    transaction
        .prepare_cached("SELECT 1 FROM crawl_sessions WHERE id = ?1 AND status = 'active'")
        .and_then(|mut select| select.exists([sql_id(id)]))
        .map_err(fail)?
        .then_some(())
        .ok_or(LedgerError::NoActiveCrawl { id })
}

impl CrawlFact {
    /// Writes the fact into the row, and tells the name and the body of its event.
    fn write(
        &self,
        transaction: &Connection,
        id: i64,
    ) -> Result<(&'static str, Value), rusqlite::Error> {
        match self {
            Self::Selected { repo, reference } => {
                let sql =
                    "UPDATE crawl_sessions SET selected_repo = ?2, selected_ref = ?3 WHERE id = ?1";
                transaction.execute(sql, params![id, repo, reference])?;
                Ok(("CRAWL_SELECTED", json!({ "repo": repo, "ref": reference })))
            }
            Self::Detected { build_system } => {
                let sql = "UPDATE crawl_sessions SET build_system = ?2 WHERE id = ?1";
                transaction.execute(sql, params![id, build_system])?;
                Ok(("CRAWL_DETECTED", json!({ "build_system": build_system })))
            }
            Self::Debated { rounds, summary } => {
                let sql = "UPDATE crawl_sessions SET debate_rounds = ?2, phase_summary = ?3 WHERE id = ?1";
                transaction.execute(sql, params![id, rounds, summary])?;
                Ok((
                    "CRAWL_DEBATED",
                    json!({ "rounds": rounds, "summary": summary }),
                ))
            }
            Self::Planned {
                plan_hash,
                prompt_hash,
            } => {
                let sql =
                    "UPDATE crawl_sessions SET plan_hash = ?2, prompt_hash = ?3 WHERE id = ?1";
                transaction.execute(sql, params![id, plan_hash, prompt_hash])?;
                Ok((
                    "CRAWL_PLANNED",
                    json!({ "plan_hash": plan_hash, "prompt_hash": prompt_hash }),
                ))
            }
            Self::Exported { path, files } => {
                let sql = "UPDATE crawl_sessions SET export_path = ?2 WHERE id = ?1";
                transaction.execute(sql, params![id, path])?;
                // A type that was stored several times is exported as it was stored last.
                let sql = "UPDATE crawl_artifacts SET export_filename = ?3 WHERE id =
                           (SELECT max(id) FROM crawl_artifacts WHERE crawl_session_id = ?1 AND artifact_type = ?2)";
                for (kind, file) in files {
                    transaction.execute(sql, params![id, kind, file])?;
                }
                let names: Vec<&String> = files.iter().map(|(_, file)| file).collect();
                Ok(("CRAWL_EXPORTED", json!({ "path": path, "files": names })))
            }
        }
    }
}

fn read(row: &Row<'_>) -> Result<CrawlRow, rusqlite::Error> {
    let status: String = row.get(11)?;
    let ended: Option<String> = row.get(2)?;
    Ok(CrawlRow {
        id: number(row, 0)?,
        started_at: instant(row, 1)?,
        ended_at: ended.map(|_| instant(row, 2)).transpose()?,
        query: row.get(3)?,
        selected_repo: row.get(4)?,
        selected_ref: row.get(5)?,
        build_system: row.get(6)?,
        debate_rounds: number(row, 7)?,
        plan_hash: row.get(8)?,
        prompt_hash: row.get(9)?,
        phase_summary: row.get(10)?,
        status: CrawlStatus::parse(&status).ok_or_else(|| unreadable(11, std::fmt::Error))?,
        export_path: row.get(12)?,
        config_snapshot: row.get(13)?,
    })
}
