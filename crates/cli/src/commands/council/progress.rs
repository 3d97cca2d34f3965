//! The progress of a council on standard error: the current call.

use std::collections::BTreeMap;

use crucible_llm::CallObserver;
use crucible_model::one_line;
use crucible_terminal::{Output, Shared, Spinner};

/// Shows the calls of one question.
pub(crate) struct CouncilProgress {
    output: Output,
    shown: Shared<Calls>,
}

struct Calls {
    spinner: Spinner,
    /// The number of calls started.
    begun: u64,
    /// The pending calls of each part.
    waiting: BTreeMap<String, u64>,
}

impl CouncilProgress {
    pub(crate) fn new(output: &Output) -> Self {
        let calls = Calls {
            spinner: Spinner::timed(),
            begun: 0,
            waiting: BTreeMap::new(),
        };
        Self {
            output: output.clone(),
            shown: Shared::new(calls),
        }
    }

    /// Removes the spinner before other output.
    pub(crate) fn finish(&self) {
        self.shown.lock().spinner.finish();
    }
}

impl CallObserver for CouncilProgress {
    fn call_started(&self, phase_id: &str) {
        let part = part(phase_id);
        let mut calls = self.shown.lock();
        calls.begun += 1;
        *calls.waiting.entry(part.clone()).or_default() += 1;
        if self.output.is_live() {
            calls.turn();
        } else {
            self.output
                .remark(&one_line(&format!("  ... call {}: {part}", calls.begun)));
        }
    }

    fn call_ended(&self, phase_id: &str) {
        let mut calls = self.shown.lock();
        let part = part(phase_id);
        let left = calls
            .waiting
            .get(&part)
            .map_or(0, |waiting| waiting.saturating_sub(1));
        if left == 0 {
            calls.waiting.remove(&part);
        } else {
            calls.waiting.insert(part, left);
        }
        if self.output.is_live() {
            calls.turn();
        }
    }
}

impl Calls {
    /// Updates the spinner with the current call and the pending parts.
    fn turn(&mut self) {
        let one = |(part, count): (&String, &u64)| match count {
            1 => part.clone(),
            several => format!("{several} × {part}"),
        };
        let waiting = self.waiting.iter().map(one).collect::<Vec<_>>().join(", ");
        // Between two attempts no call is pending.
        let text = if waiting.is_empty() {
            format!("call {}", self.begun)
        } else {
            format!("call {}: {waiting}", self.begun)
        };
        self.spinner.turn(&text);
    }
}

/// The part that makes a call, in words.
fn part(phase_id: &str) -> String {
    phase_id
        .strip_prefix("council-")
        .unwrap_or(phase_id)
        .replace('-', " ")
}
