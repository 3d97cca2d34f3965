//! The observer of a crawl.

use std::time::Duration;

/// Is notified of events as they happen; several calls may be concurrent.
pub trait CrawlObserver: Send + Sync {
    /// Work has begun that may take a while.
    fn progress(&self, what: &str);

    /// A warning for the user: a limit that was reached, or something that is missing.
    fn warning(&self, what: &str);

    /// The crawl waits for this long; called about once a second.
    fn waiting(&self, why: &str, left: Duration);
}
