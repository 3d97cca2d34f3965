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

use crucible_model::RunId;
use serde_json::Value;

use crate::error::LedgerError;
use crate::event::NewEvent;
use crate::moment::Moment;

/// The most sessions that [`Ledger::crawls`](crate::Ledger::crawls) lists.
pub const LISTED_CRAWLS: u32 = 20;

/// An event of this moment in the story of a crawl.
fn event(moment: Moment, crawl: u64, role: &str, name: &str, body: Value) -> Result<NewEvent, LedgerError> {
    Ok(moment.event(crawl_run_id(crawl)?, role, name, body))
}

/// The run under which the events of a crawl stand in the chain: `crawl-<id>`.
///
/// # Errors
///
/// Never in practice: a number makes a run id.
pub fn crawl_run_id(id: u64) -> Result<RunId, LedgerError> {
    format!("crawl-{id}").parse().map_err(|_| LedgerError::Unreadable { what: format!("the crawl {id}") })
}
