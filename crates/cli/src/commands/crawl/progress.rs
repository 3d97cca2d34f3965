//! What the user sees while a crawl works: a spinner on a terminal, plain lines elsewhere, all on standard error.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crucible_crawl::CrawlWitness;
use indicatif::{ProgressBar, ProgressStyle};

use crate::output::Output;
use crate::text::one_line;

/// Where nothing can move, a wait is told when it begins and then this often.
const SPARSE: u64 = 10;

/// Shows the progress of one crawl.
pub(crate) struct CrawlProgress {
    output: Output,
    shown: Mutex<Shown>,
}

#[derive(Default)]
struct Shown {
    spinner: Option<ProgressBar>,
    /// The seconds that were left when a wait was told last; nothing while nobody waits.
    told: Option<u64>,
}

impl CrawlProgress {
    pub(crate) fn new(output: &Output) -> Self {
        Self { output: output.clone(), shown: Mutex::default() }
    }

    /// Takes the spinner off the terminal: something else is printed now.
    pub(crate) fn finish(&self) {
        if let Some(spinner) = self.shown().spinner.take() {
            spinner.finish_and_clear();
        }
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Turns the spinner, with these words.
    fn spin(&self, shown: &mut Shown, words: &str) {
        let words = one_line(words);
        if let Some(spinner) = &shown.spinner {
            spinner.set_message(words);
            return;
        }
        let style = ProgressStyle::with_template("{prefix}{spinner} {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner());
        let spinner = ProgressBar::new_spinner().with_style(style).with_prefix(self.output.prefix());
        spinner.set_message(words);
        spinner.enable_steady_tick(Duration::from_millis(120));
        shown.spinner = Some(spinner);
    }
}

impl CrawlWitness for CrawlProgress {
    fn progress(&self, what: &str) {
        let mut shown = self.shown();
        shown.told = None;
        if self.output.live {
            self.spin(&mut shown, what);
        } else {
            self.output.remark(&one_line(&format!("... {what}")));
        }
    }

    fn warning(&self, what: &str) {
        let line = one_line(&format!("Warning: {what}"));
        match &self.shown().spinner {
            Some(spinner) => spinner.suspend(|| self.output.remark(&line)),
            None => self.output.remark(&line),
        }
    }

    fn waiting(&self, why: &str, left: Duration) {
        let mut shown = self.shown();
        let seconds = left.as_secs() + u64::from(left.subsec_nanos() > 0);
        let words = format!("{why}: going on in {seconds} s");
        if self.output.live {
            self.spin(&mut shown, &words);
        } else if shown.told.is_none_or(|told| seconds + SPARSE <= told) {
            shown.told = Some(seconds);
            self.output.remark(&one_line(&words));
        }
    }
}
