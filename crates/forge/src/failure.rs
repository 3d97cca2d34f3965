//! Why a step of a skill failed: one of eight kinds, with its findings.
//!
//! What always holds: the kind is chosen by the code that saw the failure, from what it measured itself; no text that an agent or a skill
//! printed takes part in it.

use crucible_model::{Code, Digest, Finding};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::agent::AGENT_FAILED;
use crate::workspace::SECRET;

/// One of the two files holds a key that the agent was handed.
pub(crate) const KEY: Code = Code::new("forge-build-key");

/// The kind of a failure, chosen by the code that measured it; no model takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum FailureKind {
    /// An agent changed what it may not change, or did not make both files.
    GateViolation,
    /// A deadline passed.
    Timeout,
    /// The agent could not be run, or failed.
    BuildError,
    /// ruff or mypy did not pass.
    VerifyLint,
    /// The tests or the held-out examples did not pass.
    VerifyTest,
    /// The policy did not pass.
    VerifyPolicy,
    /// The invariants did not pass.
    VerifyInvariant,
    /// Nothing that was measured tells.
    Unknown,
}

/// What is recorded of an attempt that failed, in the ledger's column `failure`: free of secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SkillFailure {
    /// Which kind.
    pub kind: FailureKind,
    /// What was found, the gravest first.
    pub findings: Vec<Finding>,
    /// What was measured: exit code, seconds, bytes, paths.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub facts: Map<String, Value>,
    /// What was printed: an artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<Digest>,
}

impl SkillFailure {
    /// Whether one of the files holds a secret, or a key that the agent was handed.
    #[must_use]
    pub fn holds_secret(&self) -> bool {
        self.has(SECRET) || self.has(KEY)
    }

    /// Whether the program of the agent failed, whatever it left.
    #[must_use]
    pub(crate) fn agent_failed(&self) -> bool {
        self.has(AGENT_FAILED)
    }

    fn has(&self, code: Code) -> bool {
        self.findings.iter().any(|found| found.code == code)
    }
}
