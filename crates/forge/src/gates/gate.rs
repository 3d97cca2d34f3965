//! The trait of gates, their names and their answers.

use async_trait::async_trait;
use crucible_ledger::SkillGateRow;
use crucible_model::Verdict;
use crucible_sandbox::SandboxError;
use serde_json::{Map, Value};

use super::site::GateSite;
use crate::runner::RunnerError;

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
    /// The skill's test again, with another hash seed.
    Repeat,
    /// What the syntax tree may not hold.
    Policy,
    /// What the syntax tree has to hold.
    Invariants,
    /// Held-out examples, where the proposal has some.
    Examples,
}

impl SkillGate {
    /// The gates without which no verification counts. A verification has to pass all that apply when it is made,
    /// so a later gate is not added here: older verifications do not have it.
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
            Self::Repeat => "repeat",
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

/// Something that a skill has to pass.
#[async_trait]
pub(crate) trait ForgeGate: Send + Sync {
    /// Which one it is.
    fn id(&self) -> SkillGate;

    /// Whether there is anything for it to look at. All but the examples always have something.
    fn applies(&self, _: &GateSite<'_>) -> bool {
        true
    }

    /// Whether it runs tests, which may try to change the copy.
    fn runs_tests(&self) -> bool {
        false
    }

    /// Looks at the skill.
    ///
    /// # Errors
    ///
    /// [`GateError`] where it cannot be asked at all, which is no fault of the skill.
    async fn run(&self, site: &GateSite<'_>) -> Result<GateAnswer, GateError>;
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

/// A gate could not run.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// A program could not be started with the required isolation.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The skill could not be started on an example.
    #[error(transparent)]
    Runner(#[from] RunnerError),
    /// A place for it cannot be made.
    #[error(transparent)]
    Fs(#[from] crucible_host::fs::FsError),
}

impl GateAnswer {
    /// An answer that a text alone gives.
    pub(super) fn from_verdict(verdict: Verdict) -> Self {
        Self {
            verdict,
            ..Self::default()
        }
    }
}
