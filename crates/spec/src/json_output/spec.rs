//! What `crucible spec` did: `spec-json.v1` (seed 002, *Claude Code JSON Surfaces*; `docs/schemas/spec-json.v1.schema.json`).
//!
//! The fields of the seed come first; all others are optional to whoever reads them. What always holds: no text of an artifact, a packet or
//! an idea is in it, each text of a receipt is cut to a length, and so it has less than 8 KB.

use crucible_llm::ExecutionStrategy;
use crucible_model::Timestamp;
use serde::{Deserialize, Serialize};

use super::status::{NextStep, PhaseStanding, SpecStatus, Standing, brief};
use crate::id::SpecId;
use crate::phase_id::PhaseId;

/// The schema of [`SpecOverview`].
pub const SPEC_SCHEMA: &str = "spec-json.v1";

/// How long the name of a provider is.
const NAME: usize = 32;

/// A spec after a command has worked on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecOverview {
    /// [`SPEC_SCHEMA`].
    pub schema_version: String,
    /// Which spec.
    pub spec_id: SpecId,
    /// Every phase, in order.
    pub phases: Vec<PhaseOverview>,
    /// How the work was done.
    pub config_summary: ConfigSummary,
    /// The phases that this command ran, in order.
    #[serde(default)]
    pub ran: Vec<PhaseId>,
    /// Whether nobody was asked.
    #[serde(default)]
    pub dry_run: bool,
    /// Files that a fixup proposes to change and that are not changed yet.
    #[serde(default)]
    pub pending_fixups: u64,
    /// What comes next; absent where nothing is left to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextStep>,
}

/// Where a phase stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseOverview {
    /// Which phase.
    pub phase_id: PhaseId,
    /// `completed`, or as `status-json.v1` says it: `failed`, `stale`, `changed`, `damaged`, `dry_run`, `not_run`.
    pub status: String,
    /// When its newest receipt was written; null where it has none.
    pub last_run: Option<Timestamp>,
    /// The artifact, by its path in the spec's directory, where it is completed or stale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<String>,
    /// That receipt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt_id: Option<String>,
    /// Which model answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_used: Option<String>,
    /// Tokens of the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_input: Option<u64>,
    /// Tokens of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_output: Option<u64>,
    /// Millionths of a US dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micro_dollars: Option<u64>,
    /// How many warnings the receipt holds.
    #[serde(default)]
    pub warnings: u64,
}

/// How a command works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigSummary {
    /// Who may act on what a model says.
    pub execution_strategy: ExecutionStrategy,
    /// Who is asked; empty where nobody is configured.
    pub provider: String,
}

impl ConfigSummary {
    /// Of this provider, under the one strategy there is.
    #[must_use]
    pub fn of(provider: &str) -> Self {
        Self { execution_strategy: ExecutionStrategy::Controlled, provider: brief(provider, NAME) }
    }
}

impl SpecOverview {
    /// Of a spec that stands so, after these phases ran.
    #[must_use]
    pub fn new(status: SpecStatus, config_summary: ConfigSummary, ran: Vec<PhaseId>) -> Self {
        Self {
            schema_version: SPEC_SCHEMA.to_owned(),
            spec_id: status.spec_id,
            phases: status.phase_statuses.into_iter().map(PhaseOverview::from).collect(),
            config_summary,
            ran,
            dry_run: false,
            pending_fixups: status.pending_fixups,
            next: status.next,
        }
    }

    /// The same, of a command that asked nobody.
    #[must_use]
    pub fn of_a_dry_run(self) -> Self {
        Self { dry_run: true, ..self }
    }
}

impl From<PhaseStanding> for PhaseOverview {
    fn from(phase: PhaseStanding) -> Self {
        let status = match phase.status {
            Standing::Success => "completed",
            other => other.as_str(),
        };
        let has_artifact = matches!(phase.status, Standing::Success | Standing::Stale);
        Self {
            phase_id: phase.phase_id,
            status: status.to_owned(),
            last_run: phase.emitted_at,
            artifact: has_artifact.then(|| format!("artifacts/{}", phase.phase_id.artifact())),
            receipt_id: phase.receipt_id,
            model_used: phase.model_used,
            tokens_input: phase.tokens_input,
            tokens_output: phase.tokens_output,
            cost_micro_dollars: phase.cost_micro_dollars,
            warnings: phase.warnings,
        }
    }
}
