//! Crucible's own predicate: how a change came about, in digests.
//!
//! It holds no prompt, no source and no secret. The schemas are `docs/schemas/crucible-change-v1.schema.json` and
//! `crucible-change-v2.schema.json`. A field that a reader does not know is an error, so a new field needs a new version of
//! the predicate. A change has the oldest version that knows all of its fields, so older programs read most statements.

use crucible_model::{Digest, RunId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::approval::{Approval, ApprovedPlan};

/// The type of this predicate, for a change without fields of a later version.
pub const CHANGE_PREDICATE: &str = "urn:crucible:change:v1";
/// The type of this predicate, for a change of a spec's task, and for one that people approved or accepted.
pub const CHANGE_PREDICATE_V2: &str = "urn:crucible:change:v2";

/// How a change came about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Change {
    /// The run.
    pub run: RunId,
    /// The digest of the goal's text.
    pub goal: Digest,
    /// The commit that the change was made on.
    pub base: String,
    /// The digest of the request for files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Digest>,
    /// The digest of the context pack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pack: Option<Digest>,
    /// The calls of models, in order.
    pub calls: Vec<Call>,
    /// The agents that worked on a copy, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// The plan and its approval.
    pub plan: PlanApproval,
    /// The approvals of people. Since version 2.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<Approval>,
    /// The codes of refusals that a person accepted for this run (`run advance --accept`). Since version 2.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted: Vec<String>,
    /// The digest of the patch.
    pub patch: Digest,
    /// What was verified, and how it ended.
    pub verification: Verification,
    /// The task of a spec, and what the change proves of its requirements. Since version 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<SpecProof>,
    /// The head of the ledger when the landing began.
    pub ledger: LedgerHead,
    /// The program that made the statement.
    pub producer: Producer,
    /// When the landing began.
    pub created_at: Timestamp,
    /// The commit from which this statement was carried over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried_from: Option<CarriedFrom>,
}

impl Change {
    /// Returns the type of the predicate: the oldest version that knows all fields.
    #[must_use]
    pub const fn predicate_type(&self) -> &'static str {
        if self.spec.is_none() && self.approvals.is_empty() && self.accepted.is_empty() {
            CHANGE_PREDICATE
        } else {
            CHANGE_PREDICATE_V2
        }
    }

    /// Returns what an approval of this change must sign.
    pub(crate) fn approved_plan(&self) -> ApprovedPlan<'_> {
        ApprovedPlan {
            run: &self.run,
            plan: &self.plan.plan,
            base: &self.base,
        }
    }
}

/// The task of a spec, and what the change proves of the requirements that it serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SpecProof {
    /// The spec: its id, or the path of its folder.
    pub spec: String,
    /// The format of the spec.
    pub format: String,
    /// The id of the task.
    pub task: String,
    /// The ids of the requirements.
    pub requirements: Vec<String>,
    /// The digest of the matrix of requirements and tests.
    pub matrix: Digest,
    /// Requirements whose tests all passed in this run.
    pub proven: u64,
    /// Requirements of whose tests some passed.
    pub partial: u64,
    /// Requirements without a test that passed.
    pub none: u64,
}

/// One call of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Call {
    /// The role that asked.
    pub role: String,
    /// The provider.
    pub provider: String,
    /// The model that answered, as the provider reports it.
    pub model: String,
    /// Whether it answered.
    pub result: GateVerdict,
    /// The digest of the recorded call with its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<Digest>,
    /// Input tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_in: Option<u64>,
    /// Output tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_out: Option<u64>,
    /// The cost in millionths of a US dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_dollars: Option<u64>,
}

/// The plan and its approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PlanApproval {
    /// The digest of the plan.
    pub plan: Digest,
    /// The digest of the document that approves it.
    pub approval: Digest,
}

/// What was verified.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Verification {
    /// The digest of the verify report.
    pub report: Digest,
    /// How it ended.
    pub result: GateVerdict,
    /// Each gate with its result.
    pub gates: Vec<GateResult>,
    /// How the check with a broken change ended, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken_change: Option<GateVerdict>,
    /// How many mutants the gates noticed, if that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strength: Option<Strength>,
}

/// The result of one gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct GateResult {
    /// The gate's name.
    pub id: String,
    /// How it ended.
    pub result: GateVerdict,
    /// How much of the isolation was in place. Missing for a gate that runs nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<GateIsolationLevel>,
    /// Tests that failed before and pass now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed: Option<u64>,
    /// Tests that are new and pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<u64>,
}

/// The built-in gates. They judge what others did and run no command, so they have no isolation. Every other gate must
/// state its own.
pub const GATES_WITHOUT_COMMAND: [&str; 4] = [
    "behavior_catalog_check",
    "lite",
    "patch_check",
    "plan_check",
];

impl GateResult {
    /// Returns whether the gate ran a command.
    pub(crate) fn runs_command(&self) -> bool {
        self.isolation.is_some() || !GATES_WITHOUT_COMMAND.contains(&self.id.as_str())
    }

    /// Returns whether every layer of isolation was in place, or there was no command to isolate.
    pub(crate) fn is_isolated(&self) -> bool {
        !self.runs_command() || self.isolation == Some(GateIsolationLevel::Complete)
    }
}

/// How something ended. Only `passed` counts as a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GateVerdict {
    /// It passed.
    Passed,
    /// It failed.
    Failed,
    /// It did not run.
    Skipped,
    /// It reached no verdict.
    Neutral,
}

impl GateVerdict {
    /// The word in a statement.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Neutral => "neutral",
        }
    }
}

/// How much of the isolation of a gate was in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GateIsolationLevel {
    /// Every layer.
    Complete,
    /// Some layers.
    Partial,
    /// No layer.
    None,
}

/// The share of mutants that the gates noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Strength {
    /// Mutants that a gate noticed.
    pub noticed: u64,
    /// Mutants that were tried.
    pub mutants: u64,
}

/// A position in the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct LedgerHead {
    /// The number of the newest event.
    pub seq: u64,
    /// Its hash.
    pub hash: Digest,
}

/// The program that made the statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Producer {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

impl Producer {
    /// This program.
    #[must_use]
    pub fn this() -> Self {
        Self {
            name: "crucible".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// The origin of a statement that was carried over to a rewritten commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct CarriedFrom {
    /// The commit that landed.
    pub commit: String,
    /// The digest of the statement about it.
    pub statement: Digest,
}
