//! Crawls: their sessions, the artifacts they hand out, the messages of their debates, and a cache of GitHub's answers.
//!
//! Each change of a session is one transaction that writes the row and appends an event to the run `crawl-<id>`, so that
//! neither is ever there without the other. Artifacts and messages stand in the chain by digest: whoever edits a row is
//! found when it is read, and whoever edits what the chain holds is found by [`Ledger::verify`](crate::Ledger::verify).
//! The cache is no part of the story: it may be lost.

mod cache;
mod content;
mod session;

pub use content::{CrawlArtifactRow, CrawlMessageRow, NewCrawlArtifact, NewCrawlMessage};
pub use session::{CrawlFact, CrawlRow, CrawlStatus, NewCrawl};

use crucible_model::{RunId, Timestamp};
use rusqlite::Row;

use crate::chain::unreadable;
use crate::error::LedgerError;

/// The most sessions that [`Ledger::crawls`](crate::Ledger::crawls) lists.
pub const LISTED_CRAWLS: u32 = 20;

/// The run under which the events of a crawl stand in the chain: `crawl-<id>`.
///
/// # Errors
///
/// Never in practice: a number makes a run id.
pub fn crawl_run_id(id: u64) -> Result<RunId, LedgerError> {
    format!("crawl-{id}").parse().map_err(|_| LedgerError::Unreadable { what: format!("the crawl {id}") })
}

/// A session's number as SQLite takes it. One that is too large belongs to no session, as -1 does.
fn sql_id(id: u64) -> i64 {
    i64::try_from(id).unwrap_or(-1)
}

fn number(row: &Row<'_>, column: usize) -> Result<u64, rusqlite::Error> {
    let value: i64 = row.get(column)?;
    u64::try_from(value).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, value))
}

fn instant(row: &Row<'_>, column: usize) -> Result<Timestamp, rusqlite::Error> {
    row.get::<_, String>(column)?
        .parse()
        .map_err(|error: crucible_model::TimestampError| unreadable(column, error))
}
