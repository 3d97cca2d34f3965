//! The progress of a phase on standard error: the phase, the model, and the waiting time.

use crucible_llm::CallObserver;
use crucible_model::one_line;
use crucible_terminal::{Output, Shared, Spinner};

/// Shows the calls of the phases of one command.
pub(crate) struct PhaseProgress {
    output: Output,
    /// The provider and the model: `gateway (gpt-oss-20b)`.
    models: String,
    shown: Shared<Calls>,
}

struct Calls {
    spinner: Spinner,
    phase: String,
    /// Calls of the phase that were started.
    begun: u64,
}

impl PhaseProgress {
    pub(crate) fn new(output: &Output, models: String) -> Self {
        let calls = Calls {
            spinner: Spinner::timed(),
            phase: String::new(),
            begun: 0,
        };
        Self {
            output: output.clone(),
            models,
            shown: Shared::new(calls),
        }
    }

    /// Removes the spinner before other output or another phase.
    pub(crate) fn finish(&self) {
        let mut calls = self.shown.lock();
        calls.spinner.finish();
        calls.begun = 0;
    }
}

impl CallObserver for PhaseProgress {
    fn call_started(&self, phase_id: &str) {
        let mut calls = self.shown.lock();
        if calls.phase != phase_id {
            phase_id.clone_into(&mut calls.phase);
            calls.begun = 0;
        }
        calls.begun += 1;
        let second_text = if calls.begun > 1 {
            format!(", call {}", calls.begun)
        } else {
            String::new()
        };
        let words = format!("{phase_id}: asking {}{second_text}", self.models);
        if self.output.is_live() {
            calls.spinner.turn(&words);
        } else {
            self.output.remark(&one_line(&format!("  ... {words}")));
        }
    }

    fn call_ended(&self, _phase_id: &str) {
        // The phase continues: it reads the answer, asks again or ends.
    }
}
