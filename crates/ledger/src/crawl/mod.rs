//! Crawls: their sessions, the artifacts they hand out, the messages of their debates, and a cache of GitHub's answers.
//!
//! Each change of a session is one transaction that writes the row and appends an event to the run `crawl-<id>`, so that
//! neither is ever there without the other. An event under a pinned clock says so. Artifacts and messages stand in the chain
//! by digest. [`Ledger::verify`](crate::Ledger::verify) compares the rows with the chain, and an artifact that was edited is
//! found when it is read, too.
//! The cache is not a part of the story: it may be lost.

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
fn event(
    moment: Moment,
    crawl: u64,
    role: &str,
    name: &str,
    body: Value,
) -> Result<NewEvent, LedgerError> {
    Ok(moment.event(crawl_run_id(crawl)?, role, name, body))
}

/// The run under which the events of a crawl stand in the chain: `crawl-<id>`.
///
/// # Errors
///
/// Never in practice: a number makes a run id.
pub fn crawl_run_id(id: u64) -> Result<RunId, LedgerError> {
    format!("crawl-{id}")
        .parse()
        .map_err(|_| LedgerError::Unreadable {
            what: format!("the crawl {id}"),
        })
}
