//! The specs of a project, and the evidence for their requirements.
//!
//! These documents are read from those that `project status`, `status` and `spec evidence` print with `--json`.

use crucible_model::{Outcome, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::attempt::FindingView;
use crate::text::RedactedText;

/// The specs of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecListView {
    /// The name of the workspace.
    pub name: RedactedText,
    /// The specs, in the order of the workspace.
    pub specs: Vec<SpecRowView>,
    /// How many specs there are in each state.
    pub counts: SpecCountsView,
    /// Specs on disk that the workspace does not list.
    pub unlisted: Vec<RedactedText>,
}

/// A spec in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecRowView {
    /// Its id.
    pub spec_id: RedactedText,
    /// Its tags.
    pub tags: Vec<RedactedText>,
    /// Its state, such as `in_progress`.
    pub standing: RedactedText,
    /// The last phase that is done, together with every phase before it.
    pub reached: Option<RedactedText>,
    /// Phases whose last run failed.
    pub failed: Vec<RedactedText>,
    /// Phases whose inputs have changed since.
    pub stale: Vec<RedactedText>,
    /// Files that a pending fixup proposes to change.
    pub pending_fixups: u64,
    /// Receipts that cannot be trusted, and artifacts that differ from theirs.
    pub problems: u64,
    /// The time of its newest receipt.
    pub newest: Option<Timestamp>,
    /// The next step.
    pub next: Option<NextStepView>,
    /// Why it cannot be read.
    pub error: Option<RedactedText>,
}

/// How many specs there are in each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecCountsView {
    /// All listed specs.
    pub specs: u64,
    /// Specs with all phases done.
    pub done: u64,
    /// Specs with a failed phase.
    pub failed: u64,
    /// Specs with a pending fixup.
    pub pending: u64,
    /// Specs with an outdated phase.
    pub stale: u64,
    /// Specs that cannot be read or trusted.
    pub damaged: u64,
    /// Specs without a phase that succeeded.
    pub not_started: u64,
}

/// The next step of a spec.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextStepView {
    /// The phase.
    pub phase_id: RedactedText,
    /// Why, in one word.
    pub reason: RedactedText,
    /// The command.
    pub command: RedactedText,
}

/// One spec.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecView {
    /// Its id.
    pub spec_id: RedactedText,
    /// Its phases, in order.
    pub phase_statuses: Vec<PhaseView>,
    /// Files that a pending fixup proposes to change.
    pub pending_fixups: u64,
    /// Problems of receipts, the first ones.
    pub problems: Vec<SpecProblemView>,
    /// How many problems are left out.
    pub problems_left_out: u64,
    /// How many receipts there are.
    pub receipts: u64,
    /// The sum of the input tokens of its phases.
    pub tokens_input: Option<u64>,
    /// The sum of the output tokens of its phases.
    pub tokens_output: Option<u64>,
    /// The sum of the costs, in millionths of a US dollar.
    pub cost_micro_dollars: Option<u64>,
    /// The next step.
    pub next: Option<NextStepView>,
}

/// A phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseView {
    /// Its name.
    pub phase_id: RedactedText,
    /// Its state, such as `success`.
    pub status: RedactedText,
    /// The receipt that determines it.
    pub receipt_id: Option<RedactedText>,
    /// The time of that receipt.
    pub emitted_at: Option<Timestamp>,
    /// The provider.
    pub provider: Option<RedactedText>,
    /// The model.
    pub model_used: Option<RedactedText>,
    /// Input tokens.
    pub tokens_input: Option<u64>,
    /// Output tokens.
    pub tokens_output: Option<u64>,
    /// The cost in millionths of a US dollar.
    pub cost_micro_dollars: Option<u64>,
    /// How many warnings the receipt has.
    pub warnings: u64,
    /// The first warning.
    pub first_warning: Option<RedactedText>,
    /// Why it failed.
    pub error: Option<RedactedText>,
}

/// A problem of a receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecProblemView {
    /// The code.
    pub code: RedactedText,
    /// The file.
    pub file: RedactedText,
}

/// Which tests prove the requirements of a spec.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceView {
    /// Whether every requirement is proven.
    pub verdict: Outcome,
    /// What is missing, and which runs do not count.
    pub findings: Vec<FindingView>,
    /// The requirements with their tests.
    pub matrix: MatrixView,
}

/// The requirements of a spec at a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatrixView {
    /// The checked-out commit.
    pub commit: RedactedText,
    /// How many requirements there are of each state.
    pub counts: EvidenceCountsView,
    /// The requirements.
    pub requirements: Vec<RequirementView>,
}

/// How many requirements there are of each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceCountsView {
    /// Every test is proven.
    pub proven: u64,
    /// Some tests are proven.
    pub partial: u64,
    /// No test is proven, or none is named.
    pub none: u64,
}

/// A requirement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequirementView {
    /// Its id.
    pub id: RedactedText,
    /// Its title.
    pub title: RedactedText,
    /// What its tests prove together: `proven`, `partial` or `none`.
    pub state: RedactedText,
    /// Its tests.
    pub tests: Vec<RequirementTestView>,
}

/// A test of a requirement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequirementTestView {
    /// Its name.
    pub name: RedactedText,
    /// The file that defines it.
    pub file: RedactedText,
    /// What is known of it.
    pub state: RedactedText,
    /// The run that reported it.
    pub run: Option<RedactedText>,
    /// The commit of that run.
    pub commit: Option<RedactedText>,
}

impl SpecListView {
    /// Reads what `project status --json` prints.
    ///
    /// # Errors
    ///
    /// Fails if the document is of another version.
    pub fn of_document(document: Value) -> Result<Self, serde_json::Error> {
        serde_json::from_value(document)
    }
}

impl SpecView {
    /// Reads what `status SPEC --json` prints.
    ///
    /// # Errors
    ///
    /// Fails if the document is of another version.
    pub fn of_document(document: Value) -> Result<Self, serde_json::Error> {
        serde_json::from_value(document)
    }
}

impl EvidenceView {
    /// Reads what `spec evidence SPEC --json` prints.
    ///
    /// # Errors
    ///
    /// Fails if the document is of another version.
    pub fn of_document(document: Value) -> Result<Self, serde_json::Error> {
        serde_json::from_value(document)
    }
}
