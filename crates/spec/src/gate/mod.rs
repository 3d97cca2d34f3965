//! The gate: whether a spec may count as far enough (seed 002, *Gate Policy*).
//!
//! [`judge_gate`] is a pure function of what is known of a spec, a policy and an instant: `judge` weighs the phases, `problem` names what is
//! wrong with receipts, `hook` what hooks add, `report` is the document `gate-json.v1`, `age` reads how old a phase may be. What always holds: phases compare
//! by their order; only the newest real receipt of a phase counts, and only a success whose artifacts are on the disk as it
//! names them; a receipt that cannot be trusted refuses, whatever its phase, and hides nothing else that is wrong; the default
//! policy is [`GatePolicy::default`] and stands nowhere else.

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

use crucible_model::{ClockSource, Finding, Timestamp, Verdict};

use crate::phase_id::PhaseId;
use crate::state::SpecState;

pub use age::{AgeError, age_words, limit_words, parse_age};
pub use hook::gate_hook_findings;
pub use problem::problem_code;
pub use report::{GATE_SCHEMA, GatePhase, GatePolicyReport, GateReport};

/// What a gate asks for (seed 002, *Gate Policy*).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatePolicy {
    /// The phase that must have succeeded, with all before it.
    pub min_phase: PhaseId,
    /// Whether fixups that are proposed and not applied refuse.
    pub pending_fixups: OnPendingFixups,
    /// How long ago the last success of `min_phase` may be; nothing: any time.
    pub max_phase_age: Option<Duration>,
}

/// What pending fixups mean to a gate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnPendingFixups {
    /// They are told and let the spec pass.
    #[default]
    Allow,
    /// They refuse.
    Refuse,
}

impl Default for GatePolicy {
    /// The default of every gate, in this one place: `tasks`, no age, pending fixups allowed.
    fn default() -> Self {
        Self { min_phase: PhaseId::Tasks, pending_fixups: OnPendingFixups::Allow, max_phase_age: None }
    }
}

/// A finding of the gate and the file that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateFinding {
    /// What was found.
    pub finding: Finding,
    /// The file in the spec's directory (`artifacts/20-tasks.md`, `receipts/tasks-20241201-100000-0003.json`), as a receipt or a directory names
    /// it: it need neither exist nor be a safe path. Empty where it is about none.
    pub file: String,
}

/// Judges a spec at this instant, which comes from a clock of this kind.
#[must_use]
pub fn judge_gate(state: &SpecState, policy: &GatePolicy, now: Timestamp, clock: ClockSource) -> Verdict {
    let findings = gate_findings(state, policy, now, clock);
    Verdict::new(findings.into_iter().map(|found| found.finding).collect())
}

/// What [`judge_gate`] finds, each with the file that it is about.
#[must_use]
pub fn gate_findings(
    state: &SpecState,
    policy: &GatePolicy,
    now: Timestamp,
    clock: ClockSource,
) -> Vec<GateFinding> {
    judge::Judge::new(state, policy, now, clock).findings()
}
