//! The result of `crucible spec`: `spec-json.v1` (`docs/schemas/spec-json.v1.schema.json`).
//!
//! The fields of the original format come first; readers may ignore all others. Invariant: it
//! contains no text of an artifact, a packet or an idea, and each text of a receipt is cut, so it
//! has less than 8 KB.

use crucible_llm::ExecutionStrategy;
use crucible_model::Timestamp;
use serde::{Deserialize, Serialize};

use super::status::{NextStep, PhaseCondition, PhaseSummary, SpecStatus, brief};
use crate::id::SpecId;
use crate::phase_id::PhaseId;

/// The schema of [`SpecOverview`].
pub const SPEC_SCHEMA: &str = "spec-json.v1";

/// The most characters of a provider's name.
const NAME: usize = 32;

/// A spec after a command has worked on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecOverview {
    /// [`SPEC_SCHEMA`].
    pub schema_version: String,
    /// The id of the spec.
    pub spec_id: SpecId,
    /// Every phase, in order.
    pub phases: Vec<PhaseOverview>,
    /// The configuration of the command.
    pub config_summary: ConfigSummary,
    /// The phases that this command ran, in order.
    #[serde(default)]
    pub ran: Vec<PhaseId>,
    /// Whether no model was called.
    #[serde(default)]
    pub dry_run: bool,
    /// Files that a pending fixup proposes to change.
    #[serde(default)]
    pub pending_fixups: u64,
    /// The next step; absent if nothing is left to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextStep>,
}

/// The state of a phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseOverview {
    /// Which phase.
    pub phase_id: PhaseId,
    /// `completed`, or a word of `status-json.v1`: `failed`, `stale`, `changed`, `damaged`, `dry_run`,
    /// `not_run`.
    pub status: String,
    /// The time of its newest receipt; null if it has no receipt.
    pub last_run: Option<Timestamp>,
    /// The artifact, by its path in the spec's directory, if the phase is completed or stale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<String>,
    /// The id of that receipt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt_id: Option<String>,
    /// The model that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_used: Option<String>,
    /// Tokens of the prompts, if counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_input: Option<u64>,
    /// Tokens of the answers, if counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_output: Option<u64>,
    /// Millionths of a US dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micro_dollars: Option<u64>,
    /// The number of warnings in the receipt.
    #[serde(default)]
    pub warnings: u64,
}

/// The configuration of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigSummary {
    /// Who may act on a model's answer.
    pub execution_strategy: ExecutionStrategy,
    /// The provider; empty if none is configured.
    pub provider: String,
}

impl ConfigSummary {
    /// Creates a summary for this provider, with the one supported strategy.
    #[must_use]
    pub fn from_provider(provider: &str) -> Self {
        Self {
            execution_strategy: ExecutionStrategy::Controlled,
            provider: brief(provider, NAME),
        }
    }
}

impl SpecOverview {
    /// Creates the document for a spec with this status, after these phases ran.
    #[must_use]
    pub fn new(status: SpecStatus, config_summary: ConfigSummary, ran: Vec<PhaseId>) -> Self {
        Self {
            schema_version: SPEC_SCHEMA.to_owned(),
            spec_id: status.spec_id,
            phases: status
                .phase_statuses
                .into_iter()
                .map(PhaseOverview::from)
                .collect(),
            config_summary,
            ran,
            dry_run: false,
            pending_fixups: status.pending_fixups,
            next: status.next,
        }
    }

    /// Marks a dry run.
    #[must_use]
    pub(crate) fn of_a_dry_run(self) -> Self {
        Self {
            dry_run: true,
            ..self
        }
    }
}

impl From<PhaseSummary> for PhaseOverview {
    fn from(phase: PhaseSummary) -> Self {
        let status = match phase.status {
            PhaseCondition::Success => "completed",
            other => other.as_str(),
        };
        let has_artifact = matches!(
            phase.status,
            PhaseCondition::Success | PhaseCondition::Stale
        );
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
