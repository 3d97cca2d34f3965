//! Crawls: their sessions, the artifacts they hand out, the messages of their debates, and a cache of GitHub's answers.
//!
//! Each change of a session is one transaction that writes the row and appends an event to the run `crawl-<id>`, so that
//! neither is ever there without the other. An event under a pinned clock says so. Artifacts and messages stand in the chain
//! by digest. Whoever edits what the chain holds is found by [`Ledger::verify`](crate::Ledger::verify), and whoever edits
//! the row of an artifact is found when it is read. The rows of sessions and of messages are a view for quick lists: nothing
//! compares them with the chain, whose events tell the same story for good.
//! The cache is no part of the story: it may be lost.

mod cache;
mod content;
mod session;

pub use content::{CrawlArtifactRow, CrawlMessageRow, NewCrawlArtifact, NewCrawlMessage};
pub use session::{CrawlFact, CrawlRow, CrawlStatus, NewCrawl};

use crucible_model::{Clock, ClockSource, RunId, Timestamp};
use rusqlite::Row;
use serde_json::Value;

use crate::chain::unreadable;
use crate::error::LedgerError;
use crate::event::NewEvent;

/// The most sessions that [`Ledger::crawls`](crate::Ledger::crawls) lists.
pub const LISTED_CRAWLS: u32 = 20;

/// When something of a crawl happens, and whether that instant is a real one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrawlMoment {
    /// The instant.
    pub at: Timestamp,
    /// Where it comes from.
    pub clock: ClockSource,
}

impl CrawlMoment {
    /// The present one, by this clock.
    #[must_use]
    pub fn of(clock: &dyn Clock) -> Self {
        Self { at: clock.now(), clock: clock.source() }
    }

    /// An event of this moment in the story of a crawl; that the clock is pinned stands in it.
    fn event(self, crawl: u64, role: &str, name: &str, mut body: Value) -> Result<NewEvent, LedgerError> {
        if let (ClockSource::Pinned, Value::Object(fields)) = (self.clock, &mut body) {
            fields.insert("clock".to_owned(), Value::from("pinned"));
        }
        Ok(NewEvent::new(crawl_run_id(crawl)?, self.at, role, name, body))
    }
}

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
