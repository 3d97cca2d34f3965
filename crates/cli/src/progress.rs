//! What the user sees while a run works: a spinner with the role and the time on a terminal, plain lines elsewhere.

use crucible_ledger::EventRecord;
use crucible_run::RunObserver;
use crucible_terminal::{Output, Spinner};

/// Shows the progress of one command on standard error.
pub(crate) struct Progress {
    output: Output,
    spinner: Spinner,
    last_seq: u64,
}

impl Progress {
    pub(crate) fn new(output: &Output) -> Self {
        Self::after(output, 0)
    }

    /// Shows only events after this one.
    pub(crate) fn after(output: &Output, last_seq: u64) -> Self {
        Self {
            output: output.clone(),
            spinner: Spinner::timed(),
            last_seq,
        }
    }

    /// Removes the spinner.
    pub(crate) fn finish(&mut self) {
        self.spinner.finish();
    }
}

impl RunObserver for Progress {
    fn working(&mut self, role: &str, what: &str) {
        self.finish();
        let message = format!("{role}: {what}");
        if self.output.is_live() {
            self.spinner.turn(&message);
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
        self.output
            .remark_of(&event.role, &format!("{name}  {path}"));
    }
}
