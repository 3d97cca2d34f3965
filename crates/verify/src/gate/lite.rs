//! The gate `lite`: the repository's own commands.

use crucible_model::Verdict;

use super::{Gate, GateOutcome};
use crate::judge::judge_run;

/// Passes if every command of the repository passed.
#[derive(Debug, Clone, Copy)]
pub struct Lite;

impl Gate for Lite {
    fn id(&self) -> &'static str {
        "lite"
    }

    fn about(&self) -> &'static str {
        "The repository's own commands end with exit code 0 on the patched copy."
    }

    fn judge(&self, outcomes: &[GateOutcome]) -> Option<Verdict> {
        let mut all: Option<Verdict> = None;
        for outcome in outcomes {
            if let GateOutcome::Ran(run) = outcome {
                all.get_or_insert_default().merge(judge_run(run));
            }
        }
        all
    }
}
