//! The progress of a crawl on standard error: a spinner on a terminal, plain lines elsewhere.

use std::time::Duration;

use crucible_crawl::CrawlObserver;
use crucible_model::one_line;
use crucible_terminal::{Output, Shared, Spinner};

/// Without a terminal, a wait is reported at its start and then at this interval, in seconds.
const SPARSE: u64 = 10;

/// Shows the progress of one crawl.
pub(crate) struct CrawlProgress {
    output: Output,
    shown: Shared<Wait>,
}

struct Wait {
    spinner: Spinner,
    /// The seconds left at the last report of a wait; none outside of a wait.
    last_shown_s: Option<u64>,
}

impl CrawlProgress {
    pub(crate) fn new(output: &Output) -> Self {
        let wait = Wait {
            spinner: Spinner::with_prefix(output.prefix()),
            last_shown_s: None,
        };
        Self {
            output: output.clone(),
            shown: Shared::new(wait),
        }
    }

    /// Removes the spinner before other output.
    pub(crate) fn finish(&self) {
        self.shown.lock().spinner.finish();
    }
}

impl CrawlObserver for CrawlProgress {
    fn progress(&self, what: &str) {
        let mut wait = self.shown.lock();
        wait.last_shown_s = None;
        if self.output.is_live() {
            wait.spinner.turn(what);
        } else {
            self.output.remark(&one_line(&format!("... {what}")));
        }
    }

    fn warning(&self, what: &str) {
        let line = one_line(&format!("Warning: {what}"));
        self.shown
            .lock()
            .spinner
            .call_while_spinning(|| self.output.remark(&line));
    }

    fn waiting(&self, why: &str, left: Duration) {
        let mut wait = self.shown.lock();
        let seconds = left.as_secs() + u64::from(left.subsec_nanos() > 0);
        let words = format!("{why}: continuing in {seconds} s");
        if self.output.is_live() {
            wait.spinner.turn(&words);
        } else if wait
            .last_shown_s
            .is_none_or(|last_shown| seconds + SPARSE <= last_shown)
        {
            wait.last_shown_s = Some(seconds);
            self.output.remark(&one_line(&words));
        }
    }
}
