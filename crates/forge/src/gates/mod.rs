//! The gates that every skill goes through before anybody may answer for it: one file each, one list.
//!
//! Five are always asked, the sixth where there are examples that nobody who builds the skill was shown. Programs run in the sandbox, on a copy
//! of the project that they can only read, without a network; what judges a text works on the bytes that the copy was given.
//!
//! What always holds: every gate is asked, also after one did not pass; what could not be measured did not pass; no text that a tool or a
//! skill printed decides anything but what a person reads, save the lists of complaints of ruff and mypy.

mod examples;
mod invariants;
mod mypy;
mod policy;
mod pytest;
mod ruff;
mod site;
mod tool;
mod tools;
mod witness;

use std::time::Duration;

use async_trait::async_trait;
use crucible_ledger::SkillGateRow;
use crucible_model::{Code, Finding, Verdict, short_line};
use crucible_sandbox::SandboxError;
use serde_json::{Map, Value};

pub use tools::{SkillTool, SkillTools, ToolsMissing};

pub(crate) use site::{GateExamples, GateSite, GateSource};
pub(crate) use tool::GATE_TIMED_OUT;

use crate::runner::RunnerError;

/// The most findings of one gate that are kept.
const MOST_FINDINGS: usize = 50;
/// The most characters of what a finding says.
const LONGEST: usize = 400;

/// A gate of a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SkillGate {
    /// The linter.
    Ruff,
    /// The type checker.
    Mypy,
    /// The skill's test; with [`VerificationLevel::Full`](crucible_ledger::VerificationLevel) the whole suite.
    Pytest,
    /// What the syntax tree may not hold.
    Policy,
    /// What the syntax tree has to hold.
    Invariants,
    /// Held-out examples, where the proposal has some.
    Examples,
}

impl SkillGate {
    /// The gates that every verification has to pass. The examples are one more where there are some.
    pub const REQUIRED: [Self; 5] = [
        Self::Ruff,
        Self::Mypy,
        Self::Pytest,
        Self::Policy,
        Self::Invariants,
    ];

    /// Its name in the ledger and in documents.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ruff => "ruff",
            Self::Mypy => "mypy",
            Self::Pytest => "pytest",
            Self::Policy => "policy",
            Self::Invariants => "invariants",
            Self::Examples => "examples",
        }
    }

    /// Whether this is the gate of a row.
    pub(crate) fn is_of(self, row: &SkillGateRow) -> bool {
        row.gate == self.as_str()
    }
}

/// Every gate, in the order in which they are asked.
pub(crate) const GATES: [&dyn ForgeGate; 6] = [
    &ruff::Ruff,
    &mypy::Mypy,
    &pytest::Pytest,
    &policy::Policy,
    &invariants::Invariants,
    &examples::Examples,
];

/// Something that a skill has to pass.
#[async_trait]
pub(crate) trait ForgeGate: Send + Sync {
    /// Which one it is.
    fn id(&self) -> SkillGate;

    /// Whether there is anything for it to look at. All but the examples always have something.
    fn applies(&self, _: &GateSite<'_>) -> bool {
        true
    }

    /// Looks at the skill.
    ///
    /// # Errors
    ///
    /// [`GateObstacle`] where it cannot be asked at all, which is no fault of the skill.
    async fn ask(&self, site: &GateSite<'_>) -> Result<GateAnswer, GateObstacle>;
}

/// What a gate says.
#[derive(Debug, Default)]
pub(crate) struct GateAnswer {
    /// Whether the skill passes, and why not.
    pub(crate) verdict: Verdict,
    /// What a program printed, redacted.
    pub(crate) log: Vec<u8>,
    /// What was measured: exit code, numbers of tests, layers of the sandbox.
    pub(crate) facts: Map<String, Value>,
}

/// A gate cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum GateObstacle {
    /// A program could not be started behind the walls that are wanted.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The skill could not be started on an example.
    #[error(transparent)]
    Runner(#[from] RunnerError),
    /// A place for it cannot be made.
    #[error(transparent)]
    Fs(#[from] crucible_host::fs::FsError),
}

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

impl GateAnswer {
    /// An answer that a text alone gives.
    fn of(verdict: Verdict) -> Self {
        Self {
            verdict,
            ..Self::default()
        }
    }
}

/// The verdict with no more findings than are kept, each of a length that can be read; what is left out is counted.
pub(crate) fn bounded(verdict: &Verdict) -> Verdict {
    let mut findings: Vec<Finding> = verdict.findings().to_vec();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.level));
    let left = findings.len().saturating_sub(MOST_FINDINGS);
    findings.truncate(MOST_FINDINGS);
    for finding in &mut findings {
        finding.subject = short_line(&finding.subject, LONGEST);
        finding.hint = short_line(&finding.hint, LONGEST);
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
