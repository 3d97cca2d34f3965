//! What the user sees while a council works: which call it is at, on standard error.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crucible_llm::CallWatch;
use indicatif::{ProgressBar, ProgressStyle};

use crate::output::Output;
use crate::text::one_line;

/// Shows the calls of one question.
pub(crate) struct CouncilProgress {
    output: Output,
    shown: Mutex<Shown>,
}

#[derive(Default)]
struct Shown {
    spinner: Option<ProgressBar>,
    /// Calls that were begun.
    calls: u64,
    /// How many calls of each part wait for an answer.
    waiting: BTreeMap<String, u64>,
}

impl CouncilProgress {
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
}

impl CallWatch for CouncilProgress {
    fn asked(&self, phase_id: &str) {
        let part = part(phase_id);
        let mut shown = self.shown();
        shown.calls += 1;
        *shown.waiting.entry(part.clone()).or_default() += 1;
        if self.output.live {
            shown.turn();
        } else {
            self.output.remark(&one_line(&format!("  ... call {}: {part}", shown.calls)));
        }
    }

    fn answered(&self, phase_id: &str) {
        let mut shown = self.shown();
        let part = part(phase_id);
        let left = shown.waiting.get(&part).map_or(0, |waiting| waiting.saturating_sub(1));
        if left == 0 {
            shown.waiting.remove(&part);
        } else {
            shown.waiting.insert(part, left);
        }
        if self.output.live {
            shown.turn();
        }
    }
}

impl Shown {
    /// Turns the spinner, with the call that it is at and whoever has not answered yet.
    fn turn(&mut self) {
        let one = |(part, count): (&String, &u64)| match count {
            1 => part.clone(),
            several => format!("{several} × {part}"),
        };
        let waiting = self.waiting.iter().map(one).collect::<Vec<_>>().join(", ");
        let words = one_line(&format!("call {}: {waiting}", self.calls));
        if let Some(spinner) = &self.spinner {
            spinner.set_message(words);
            return;
        }
        let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner());
        let spinner = ProgressBar::new_spinner().with_style(style).with_message(words);
        spinner.enable_steady_tick(Duration::from_millis(120));
        self.spinner = Some(spinner);
    }
}

/// Whose call it is, in words.
fn part(phase_id: &str) -> String {
    phase_id.strip_prefix("council-").unwrap_or(phase_id).replace('-', " ")
}
