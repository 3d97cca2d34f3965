//! Who is told how a crawl goes on.

use std::time::Duration;

/// Hears what happens while it happens; several may speak at once.
pub trait CrawlObserver: Send + Sync {
    /// Work began that may take a while.
    fn progress(&self, what: &str);

    /// Something the user should know: a limit that was hit, something that is missing.
    fn warning(&self, what: &str);

    /// Nothing can be done for this long; called about once a second.
    fn waiting(&self, why: &str, left: Duration);
}
