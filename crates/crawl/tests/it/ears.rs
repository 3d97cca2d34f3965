//! An observer that records the notifications of a crawl.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crucible_crawl::CrawlObserver;

/// Records everything in order; clones share the record.
#[derive(Clone, Default)]
pub(crate) struct Ears(Arc<Mutex<Vec<String>>>);

impl Ears {
    /// The notifications: progress as it is, `warning: ...`, `waiting SECONDS: ...`.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// The notifications with this prefix, without the prefix.
    pub(crate) fn heard_of(&self, beginning: &str) -> Vec<String> {
        self.heard()
            .iter()
            .filter_map(|message| message.strip_prefix(beginning))
            .map(str::to_owned)
            .collect()
    }

    fn hear(&self, message: String) {
        self.0.lock().unwrap().push(message);
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
