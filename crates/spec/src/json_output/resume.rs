//! The inputs of a phase and the next step: `resume-json.v1`
//! (`docs/schemas/resume-json.v1.schema.json`).
//!
//! The fields of the original format come first; readers may ignore all others. Invariant:
//! artifacts are named, never quoted, so the document has less than 8 KB.

use std::collections::BTreeMap;

use crucible_model::Timestamp;
use serde::{Deserialize, Serialize};

use super::spec::{ConfigSummary, PhaseOverview, SpecOverview};
use super::status::{NextStep, PhaseCondition, SpecStatus, StepReason};
use crate::engine::upstream_phases;
use crate::id::SpecId;
use crate::phase_id::PhaseId;
use crate::project::IDEA;
use crate::receipt::PacketReceipt;

/// The schema of [`ResumeOverview`].
pub const RESUME_SCHEMA: &str = "resume-json.v1";

/// A phase before or after it ran, and the next step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumeOverview {
    /// [`RESUME_SCHEMA`].
    pub schema_version: String,
    /// The id of the spec.
    pub spec_id: SpecId,
    /// The phase of the command: the first one that it ran, or would run.
    pub phase: PhaseId,
    /// The existing inputs of the phase: `requirements_artifact` and the like with a file name in
    /// `artifacts/`, and `idea` with its path in the spec's directory.
    pub current_inputs: BTreeMap<String, String>,
    /// The next step, in one sentence.
    pub next_steps: String,
    /// The next step for programs; absent if nothing is left to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextStep>,
    /// The phases that this command ran, in order.
    #[serde(default)]
    pub ran: Vec<PhaseId>,
    /// Whether no model was called.
    #[serde(default)]
    pub dry_run: bool,
    /// The size of a dry run's packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet: Option<PacketReceipt>,
    /// Every phase, in order.
    #[serde(default)]
    pub phases: Vec<PhaseOverview>,
    /// Files that a pending fixup proposes to change.
    #[serde(default)]
    pub pending_fixups: u64,
    /// The configuration of the command.
    pub config_summary: ConfigSummary,
    /// The time of the phase's newest receipt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<Timestamp>,
}

impl ResumeOverview {
    /// Creates the document for a phase of a spec with this status, after these phases ran.
    #[must_use]
    pub fn new(
        status: SpecStatus,
        phase: PhaseId,
        config_summary: ConfigSummary,
        ran: Vec<PhaseId>,
    ) -> Self {
        let next_steps = status
            .next
            .as_ref()
            .map_or_else(|| DONE.to_owned(), describe_step);
        let current_inputs = current_inputs(&status, phase);
        let overview = SpecOverview::new(status, config_summary, ran);
        let last_run = overview
            .phases
            .iter()
            .find(|known| known.phase_id == phase)
            .and_then(|known| known.last_run);
        Self {
            schema_version: RESUME_SCHEMA.to_owned(),
            spec_id: overview.spec_id,
            phase,
            current_inputs,
            next_steps,
            next: overview.next,
            ran: overview.ran,
            dry_run: false,
            packet: None,
            phases: overview.phases,
            pending_fixups: overview.pending_fixups,
            config_summary: overview.config_summary,
            last_run,
        }
    }

    /// Adds the stored idea, which is the input of the first phase.
    #[must_use]
    pub fn with_idea(mut self) -> Self {
        if self.phase == PhaseId::Requirements {
            self.current_inputs
                .insert("idea".to_owned(), IDEA.to_owned());
        }
        self
    }

    /// Marks a dry run: the next step is a real run of the same phase.
    #[must_use]
    pub(crate) fn mark_dry_run(self, packet: Option<PacketReceipt>) -> Self {
        let phase = self.phase;
        let next_steps = format!("Run the {phase} phase {}", purpose(phase));
        Self {
            dry_run: true,
            packet,
            next_steps,
            ..self
        }
    }
}

/// The text if nothing is left to do.
const DONE: &str = "All phases are done; run a gate";

/// The existing inputs of a phase.
fn current_inputs(status: &SpecStatus, phase: PhaseId) -> BTreeMap<String, String> {
    let has_artifact = |requested: PhaseId| {
        let standing = status
            .phase_statuses
            .iter()
            .find(|known| known.phase_id == requested);
        standing.is_some_and(|known| {
            matches!(
                known.status,
                PhaseCondition::Success | PhaseCondition::Stale
            )
        })
    };
    let artifacts = upstream_phases(phase)
        .iter()
        .filter(|before| has_artifact(**before));
    artifacts
        .map(|before| (format!("{before}_artifact"), before.artifact().to_owned()))
        .collect()
}

/// The next step, in one sentence.
fn describe_step(next: &NextStep) -> String {
    let phase = next.phase_id;
    let run = |why: &str| format!("Run the {phase} phase {}{why}", purpose(phase));
    match next.reason {
        StepReason::NotRun => run(""),
        StepReason::Failed => run("; its last run failed"),
        StepReason::Stale => run(" again; its inputs have changed"),
        StepReason::Changed => run(" again; its artifact was changed"),
        StepReason::Damaged => run(" again; one of its receipts cannot be trusted"),
        StepReason::FixupsPending => {
            "Look at the proposed fixups and apply them with --apply-fixups".to_owned()
        }
        StepReason::FixupsApplied => {
            "Finish the fixups, whose files are already changed, with --apply-fixups; no model is called"
                .to_owned()
        }
        StepReason::Problem => {
            format!("Run `{}`: receipts are invalid, and a gate refuses", next.command)
        }
    }
}

/// The purpose of a phase.
fn purpose(phase: PhaseId) -> &'static str {
    match phase {
        PhaseId::Requirements => "to write down the requirements",
        PhaseId::Design => "to generate the architecture",
        PhaseId::Tasks => "to list the steps to take",
        PhaseId::Review => "to find what is wrong",
        PhaseId::Fixup => "to propose changes to files",
        PhaseId::Final => "to sum up what was decided",
    }
}

#[cfg(test)]
mod tests {
    use crucible_llm::{LlmReceipt, ReceiptWarning};
    use jsonschema::validator_for;
    use proptest::prelude::*;
    use serde_json::Value;

    use super::super::status::spec_status;
    use super::*;
    use crate::gate::sample::{done_up_to, noon};
    use crate::state::{ReceiptProblem, ReceiptProblemKind};

    const SPEC_SCHEMA_TEXT: &str =
        include_str!("../../../../docs/schemas/spec-json.v1.schema.json");
    const RESUME_SCHEMA_TEXT: &str =
        include_str!("../../../../docs/schemas/resume-json.v1.schema.json");

    fn schema(text: &str) -> jsonschema::Validator {
        validator_for(&serde_json::from_str(text).unwrap()).unwrap()
    }

    #[test]
    fn next_step_is_one_sentence_about_phase() {
        let status = spec_status(&done_up_to(Some(PhaseId::Requirements), noon()), noon());
        let overview = ResumeOverview::new(
            status,
            PhaseId::Requirements,
            ConfigSummary::from_provider("gateway"),
            vec![PhaseId::Requirements],
        );
        assert_eq!(
            overview.next_steps,
            "Run the design phase to generate the architecture"
        );
        assert_eq!(overview.current_inputs, BTreeMap::new(), "no idea is kept");
        let overview = overview.with_idea();
        assert_eq!(
            overview.current_inputs,
            BTreeMap::from([("idea".to_owned(), "context/idea.md".to_owned())])
        );
        let status = spec_status(&done_up_to(Some(PhaseId::Design), noon()), noon());
        let overview = ResumeOverview::new(
            status,
            PhaseId::Tasks,
            ConfigSummary::from_provider(""),
            Vec::new(),
        )
        .mark_dry_run(None);
        assert_eq!(
            overview.next_steps,
            "Run the tasks phase to list the steps to take"
        );
        let inputs: Vec<_> = overview
            .current_inputs
            .iter()
            .map(|(key, name)| format!("{key}={name}"))
            .collect();
        assert_eq!(
            inputs,
            [
                "design_artifact=10-design.md",
                "requirements_artifact=00-requirements.md"
            ]
        );
        let status = spec_status(&done_up_to(Some(PhaseId::Final), noon()), noon());
        let overview = ResumeOverview::new(
            status,
            PhaseId::Final,
            ConfigSummary::from_provider("gateway"),
            Vec::new(),
        );
        assert_eq!(overview.next_steps, DONE);
        let mut state = done_up_to(Some(PhaseId::Final), noon());
        state.problems.push(ReceiptProblem {
            file: "notes.txt".to_owned(),
            phase: None,
            kind: ReceiptProblemKind::ForeignName,
        });
        let overview = ResumeOverview::new(
            spec_status(&state, noon()),
            PhaseId::Final,
            ConfigSummary::from_provider("gateway"),
            Vec::new(),
        );
        assert!(
            overview
                .next_steps
                .starts_with("Run `crucible gate export-data`"),
            "{}",
            overview.next_steps
        );
    }

    mod properties {
        use super::*;

        proptest! {
            /// For any receipts, both documents have their version, follow their schemas and stay
            /// below 8 KB.
            #[test]
            fn both_documents_are_small_and_valid(
                texts in prop::collection::vec(prop_oneof![any::<String>(), "[\"\\\\\u{1b}\u{202e}ä🛑 ]{0,3000}"], 4),
                tokens in any::<u64>(),
                provider in any::<String>(),
                reached in prop::option::of(prop::sample::select(PhaseId::ALL.to_vec())),
                phase in prop::sample::select(PhaseId::ALL.to_vec()),
            ) {
                let mut state = done_up_to(reached, noon());
                for known in &mut state.phases {
                    for receipt in [&mut known.newest, &mut known.newest_real].into_iter().flatten() {
                        receipt.receipt_id.clone_from(&texts[0]);
                        let entry = &mut receipt.phases[0];
                        entry.llm = Some(LlmReceipt {
                            provider: Some(texts[1].clone()),
                            model_used: Some(texts[2].clone()),
                            tokens_input: Some(tokens),
                            ..LlmReceipt::default()
                        });
                        entry.warnings = vec![ReceiptWarning { kind: texts[3].clone(), message: texts[3].clone() }; 40];
                    }
                }
                let status = spec_status(&state, noon());
                let ran = PhaseId::ALL.to_vec();
                let spec = SpecOverview::new(status.clone(), ConfigSummary::from_provider(&provider), ran.clone());
                let resume = ResumeOverview::new(status, phase, ConfigSummary::from_provider(&provider), ran);
                let both = [
                    (serde_json::to_string_pretty(&spec).unwrap(), SPEC_SCHEMA_TEXT, "spec-json.v1"),
                    (serde_json::to_string_pretty(&resume).unwrap(), RESUME_SCHEMA_TEXT, "resume-json.v1"),
                ];
                for (text, form, version) in both {
                    prop_assert!(text.len() < 8192, "{}", text.len());
                    let json_document: Value = serde_json::from_str(&text).unwrap();
                    prop_assert_eq!(&json_document["schema_version"], version);
                    let schema = schema(form);
                    let problem = schema.iter_errors(&json_document).next().map(|error| error.to_string());
                    prop_assert_eq!(problem, None, "{}", text);
                }
            }
        }
    }
}
