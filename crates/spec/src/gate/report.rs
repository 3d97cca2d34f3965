//! The document of a gate: `gate-json.v1`.

use crucible_model::{ClockSource, ExitStatus, Finding, Outcome, Timestamp, Verdict};
use serde::{Deserialize, Serialize};

use super::judge::newest_success;
use super::{GateFinding, GatePolicy, OnPendingFixups};
use crate::id::SpecId;
use crate::phase_id::PhaseId;
use crate::receipt::HookReceipt;
use crate::state::SpecState;
use crate::surface::{Standing, age, pending_fixups, standing};

/// The schema of [`GateReport`].
pub const GATE_SCHEMA: &str = "gate-json.v1";

/// What was judged, by which policy, and what came out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateReport {
    /// [`GATE_SCHEMA`].
    pub schema_version: String,
    /// Pass or fail.
    pub verdict: Outcome,
    /// Why.
    pub findings: Vec<Finding>,
    /// Which spec.
    pub spec_id: SpecId,
    /// What was asked for.
    pub policy: GatePolicyReport,
    /// When it was judged.
    pub judged_at: Timestamp,
    /// Whether that instant is real.
    pub clock: ClockSource,
    /// Every phase, in order.
    pub phases: Vec<GatePhase>,
    /// Files that a fixup proposes to change and that are not changed yet.
    pub pending_fixups: u64,
    /// The hooks that ran around the judgement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookReceipt>,
}

/// A [`GatePolicy`] as the document tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatePolicyReport {
    /// The phase that must have succeeded, with all before it.
    pub min_phase: PhaseId,
    /// How old its last success may be; null: any age.
    pub max_phase_age_seconds: Option<u64>,
    /// Whether pending fixups refuse.
    pub fail_on_pending_fixups: bool,
}

/// A phase at a gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatePhase {
    /// Which phase.
    pub phase_id: PhaseId,
    /// Whether the policy asks for it.
    pub required: bool,
    /// Where it stands, in the words of `status-json.v1`.
    pub status: Standing,
    /// The receipt of its last success.
    pub receipt_id: Option<String>,
    /// When that was written.
    pub succeeded_at: Option<Timestamp>,
    /// Seconds since; null where it is not known, or still to come.
    pub age_seconds: Option<u64>,
}

impl GateReport {
    /// The document of a judgement: `findings` are those of [`gate_findings`](super::gate_findings) for the same values.
    #[must_use]
    pub fn new(
        state: &SpecState,
        policy: &GatePolicy,
        now: Timestamp,
        clock: ClockSource,
        findings: &[GateFinding],
    ) -> Self {
        let verdict = Verdict::new(findings.iter().map(|found| found.finding.clone()).collect());
        let phases = state.phases.iter().map(|known| {
            let success = newest_success(known);
            let succeeded_at = success.and_then(|receipt| receipt.emitted_at);
            GatePhase {
                phase_id: known.phase,
                required: known.phase <= policy.min_phase,
                status: standing(state, known),
                receipt_id: success.map(|receipt| receipt.receipt_id.clone()),
                succeeded_at,
                age_seconds: succeeded_at.and_then(|at| age(at, now)).map(|age| age.as_secs()),
            }
        });
        Self {
            schema_version: GATE_SCHEMA.to_owned(),
            verdict: verdict.outcome(),
            findings: verdict.findings().to_vec(),
            spec_id: state.spec.clone(),
            policy: GatePolicyReport {
                min_phase: policy.min_phase,
                max_phase_age_seconds: policy.max_phase_age.map(|age| age.as_secs()),
                fail_on_pending_fixups: policy.pending_fixups == OnPendingFixups::Refuse,
            },
            judged_at: now,
            clock,
            phases: phases.collect(),
            pending_fixups: pending_fixups(state),
            hooks: Vec::new(),
        }
    }

    /// How the command ends (property 14): 0 where the policy is met, else 1.
    #[must_use]
    pub fn exit_status(&self) -> ExitStatus {
        match self.verdict {
            Outcome::Pass => ExitStatus::Success,
            Outcome::Fail => ExitStatus::Refused,
        }
    }
}
