//! The gates that every skill goes through before anybody may answer for it: one file each, one list.
//!
//! All but the last are always asked, the last where there are examples that nobody who builds the skill was shown. Programs run in the sandbox, on a copy
//! of the project that they can only read, without a network; what judges a text works on the bytes that the copy was given.
//!
//! What always holds: every gate is asked, also after one did not pass; what could not be measured did not pass; no text that a tool or a
//! skill printed decides anything but what a person reads, save the lists of complaints of ruff and mypy.

mod examples;
mod gate;
mod invariants;
mod mypy;
mod policy;
mod pytest;
mod repeat;
mod ruff;
mod site;
mod tool;
mod tools;
mod witness;

use std::time::Duration;

use crucible_model::{Code, Finding, Verdict, short_line};
use serde_json::{Map, Value};

pub use gate::{GateError, SkillGate};
pub use tools::{SkillTool, SkillTools, ToolsMissing};

pub(crate) use gate::{ForgeGate, GateAnswer};
pub(crate) use site::{GateExamples, GateSite, GateSource};
pub(crate) use tool::GATE_TIMED_OUT;

/// The most findings of one gate that are kept.
const MAX_FINDINGS: usize = 50;
/// The most characters of what a finding says.
const MAX_LEN: usize = 400;

/// Every gate, in the order in which they are asked.
pub(crate) const GATES: [&dyn ForgeGate; 7] = [
    &ruff::Ruff,
    &mypy::Mypy,
    &pytest::Pytest,
    &repeat::Repeat,
    &policy::Policy,
    &invariants::Invariants,
    &examples::Examples,
];

/// What came of a gate.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillGateOutcome {
    /// Which.
    pub gate: SkillGate,
    /// Whether the skill passes it, and why not.
    pub verdict: Verdict,
    /// How long it took.
    pub duration: Duration,
    /// What was measured.
    pub facts: Map<String, Value>,
    /// What a program printed: an artifact.
    pub log: Option<crucible_model::Digest>,
}

/// The verdict with no more findings than are kept, each of a length that can be read; what is left out is counted.
pub(crate) fn bounded(verdict: &Verdict) -> Verdict {
    let mut findings: Vec<Finding> = verdict.findings().to_vec();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.level));
    let left = findings.len().saturating_sub(MAX_FINDINGS);
    findings.truncate(MAX_FINDINGS);
    for finding in &mut findings {
        finding.subject = short_line(&finding.subject, MAX_LEN);
        finding.hint = short_line(&finding.hint, MAX_LEN);
    }
    if left > 0 {
        let hint = "Fix the reported ones; then the rest is shown. The log has all of them.";
        findings.push(Finding::info(
            Code::new("forge-more-findings"),
            format!("{left} more"),
            hint,
        ));
    }
    Verdict::new(findings)
}

#[cfg(test)]
pub(crate) mod tests;
