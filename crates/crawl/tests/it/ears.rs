//! Hears what a crawl tells while it goes on.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crucible_crawl::CrawlObserver;

/// Hears everything, in order, and forgets nothing; a clone hears the same.
#[derive(Clone, Default)]
pub(crate) struct Ears(Arc<Mutex<Vec<String>>>);

impl Ears {
    /// What was told: progress as it is, `warning: ...`, `waiting SECONDS: ...`.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// What was told that begins so, without its beginning.
    pub(crate) fn heard_of(&self, beginning: &str) -> Vec<String> {
        self.heard().iter().filter_map(|told| told.strip_prefix(beginning)).map(str::to_owned).collect()
    }

    fn hear(&self, told: String) {
        self.0.lock().unwrap().push(told);
    }
}

impl CrawlObserver for Ears {
    fn progress(&self, what: &str) {
        self.hear(what.to_owned());
    }

    fn warning(&self, what: &str) {
        self.hear(format!("warning: {what}"));
    }

    fn waiting(&self, why: &str, left: Duration) {
        self.hear(format!("waiting {}: {why}", left.as_secs()));
    }
}
