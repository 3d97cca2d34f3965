//! What the user sees while a run works: a spinner with the role and the time on a terminal, plain lines elsewhere.

use std::time::Duration;

use crucible_ledger::EventRecord;
use crucible_run::Witness;
use indicatif::{ProgressBar, ProgressStyle};

use crate::output::Output;
use crate::text::one_line;

/// Shows the progress of one command on standard error.
pub(crate) struct Progress {
    output: Output,
    spinner: Option<ProgressBar>,
    last_seq: u64,
}

impl Progress {
    pub(crate) fn new(output: &Output) -> Self {
        Self::after(output, 0)
    }

    /// Shows what comes after this event; what was before is no news.
    pub(crate) fn after(output: &Output, last_seq: u64) -> Self {
        Self { output: output.clone(), spinner: None, last_seq }
    }

    /// Takes the spinner off the terminal.
    pub(crate) fn finish(&mut self) {
        if let Some(spinner) = self.spinner.take() {
            spinner.finish_and_clear();
        }
    }
}

impl Witness for Progress {
    fn working(&mut self, role: &str, what: &str) {
        self.finish();
        let message = format!("{role}: {what}");
        if self.output.live {
            let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner());
            let spinner = ProgressBar::new_spinner().with_style(style).with_message(one_line(&message));
            spinner.enable_steady_tick(Duration::from_millis(120));
            self.spinner = Some(spinner);
        } else {
            self.output.remark(&format!("  ... {message}"));
        }
    }

    fn note(&mut self, line: &str) {
        self.finish();
        self.output.remark(line);
    }

    fn event(&mut self, event: &EventRecord) {
        if event.seq <= self.last_seq {
            return;
        }
        self.last_seq = event.seq;
        let path = event.path.as_deref().unwrap_or_default();
        let name = event.event.to_lowercase().replace('_', " ");
        self.finish();
        self.output.remark_of(&event.role, &format!("{name}  {path}"));
    }
}
