//! The gate: judges whether a spec has reached the phase that its policy requires.
//!
//! [`gate_findings`] is a pure function of the state of a spec, a policy and a time. `judge` checks the
//! phases, `problem` describes problems of receipts, `hook` those of hooks, `report` is the document
//! `gate-json.v1`, and `age` parses ages. Invariants: phases compare by their order. Only the newest real
//! receipt of a phase counts, and only a success whose artifacts match the disk. A receipt that cannot be
//! trusted refuses, whatever its phase, and hides no other finding. [`GatePolicy::default`] is the only
//! place of the default policy.

mod age;
mod hook;
mod judge;
mod problem;
mod report;
#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crucible_model::{ClockSource, Finding, Timestamp};

use crate::phase_id::PhaseId;
use crate::state::SpecState;

pub(crate) use age::limit_words;
pub use age::{AgeError, age_words, parse_age};
pub(crate) use hook::gate_hook_findings;
pub(crate) use problem::problem_code;
pub use report::{GatePhase, GatePolicyReport, GateReport};

/// What a spec must meet to pass the gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatePolicy {
    /// The phase that must have succeeded, with every phase before it.
    pub min_phase: PhaseId,
    /// Whether pending fixups refuse.
    pub pending_fixups: OnPendingFixups,
    /// The maximum age of the last success of `min_phase`; none means any age.
    pub max_phase_age: Option<Duration>,
}

/// How a gate treats pending fixups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnPendingFixups {
    /// Report them, and let the spec pass.
    #[default]
    Allow,
    /// They refuse.
    Refuse,
}

impl Default for GatePolicy {
    /// The default of every gate, in this one place: `tasks`, no age, pending fixups allowed.
    fn default() -> Self {
        Self {
            min_phase: PhaseId::Tasks,
            pending_fixups: OnPendingFixups::Allow,
            max_phase_age: None,
        }
    }
}

/// A finding of the gate, with its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateFinding {
    /// What the gate found.
    pub finding: Finding,
    /// The file in the spec's directory (`artifacts/20-tasks.md`,
    /// `receipts/tasks-20241201-100000-0003.json`), as a receipt or a directory names it. It need not
    /// exist or be a safe path. Empty if the finding is about no file.
    pub file: String,
}

/// Returns the findings about a spec at this time, which comes from a clock of this kind.
#[must_use]
pub(crate) fn gate_findings(
    state: &SpecState,
    policy: &GatePolicy,
    now: Timestamp,
    clock: ClockSource,
) -> Vec<GateFinding> {
    judge::Judge::new(state, policy, now, clock).findings()
}
