//! The spinner of a command that works for a while on a terminal.
//!
//! Invariants: words are shown as one escaped line. A finished spinner leaves nothing behind.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crucible_model::one_line;
use indicatif::{ProgressBar, ProgressStyle};

/// How often it turns.
const TICK: Duration = Duration::from_millis(120);

/// A spinner that turns from its first words on, until it is finished.
pub struct Spinner {
    template: &'static str,
    prefix: &'static str,
    bar: Option<ProgressBar>,
}

impl Spinner {
    /// Returns a spinner that shows its words and the elapsed time.
    pub const fn timed() -> Self {
        Self {
            template: "{spinner} {msg} {elapsed}",
            prefix: "",
            bar: None,
        }
    }

    /// Returns a spinner behind the prefix of the command's lines.
    pub const fn with_prefix(prefix: &'static str) -> Self {
        Self {
            template: "{prefix}{spinner} {msg}",
            prefix,
            bar: None,
        }
    }

    /// Shows these words from now on; the first ones start the spinner.
    pub fn turn(&mut self, words: &str) {
        let words = one_line(words);
        if let Some(bar) = &self.bar {
            bar.set_message(words);
            return;
        }
        let style = ProgressStyle::with_template(self.template)
            .unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = ProgressBar::new_spinner()
            .with_style(style)
            .with_prefix(self.prefix)
            .with_message(words);
        bar.enable_steady_tick(TICK);
        self.bar = Some(bar);
    }

    /// Calls `say`, which may print while the spinner turns.
    pub fn call_while_spinning(&self, say: impl FnOnce()) {
        match &self.bar {
            Some(bar) => bar.suspend(say),
            None => say(),
        }
    }

    /// Removes it from the terminal.
    pub fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// A display that several tasks update.
pub struct Shared<T>(Mutex<T>);

impl<T> Shared<T> {
    /// Shares this display.
    pub fn new(display: T) -> Self {
        Self(Mutex::new(display))
    }

    /// Locks the display. It is consistent even if a thread that held the lock panicked.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spinner_shows_one_escaped_line_until_finished() {
        for mut spinner in [Spinner::timed(), Spinner::with_prefix("[crawl] ")] {
            let prefix = spinner.prefix;
            let mut call_count = 0;
            spinner.call_while_spinning(|| call_count += 1);
            spinner.turn("first");
            let bar = spinner.bar.clone().unwrap();
            spinner.turn("a\nb\u{1b}[2J");
            spinner.call_while_spinning(|| call_count += 1);
            assert_eq!(
                (bar.message().as_str(), bar.prefix().as_str()),
                ("a\\nb\\u{1b}[2J", prefix)
            );
            assert!(!bar.is_finished());
            spinner.finish();
            assert!(bar.is_finished() && spinner.bar.is_none());
            spinner.finish();
            assert_eq!(call_count, 2);
        }
    }
}
