//! Receipts: one for each run of a phase.
//!
//! A receipt is canonical JSON with the schema `receipt.v1`
//! (`docs/schemas/receipt.v1.schema.json`). Every field that Crucible adds to the original format
//! is optional: old receipts are read with defaults, and unknown fields of a newer Crucible are
//! ignored. `digest` is the SHA-256 of the receipt's canonical JSON without that field, so that
//! manual edits are detected; `previous` chains the receipts of a spec. The ledger records the
//! digest of each.

mod form;
mod name;

use crucible_llm::{LlmReceipt, PipelineReceipt, ReceiptWarning};
use crucible_model::{ClockSource, Digest, Finding, Timestamp};
use crucible_sandbox::IsolationReceipt;
use serde::{Deserialize, Serialize};

use crate::phase_id::PhaseId;
pub(crate) use form::{MAX_RECEIPT_BYTES, ReadReceipt, ReceiptFault};

pub use name::{ReceiptId, ReceiptIdError};

/// The schema of receipts.
pub const RECEIPT_SCHEMA: &str = "receipt.v1";

/// One run of one phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpecReceipt {
    /// [`RECEIPT_SCHEMA`]; empty in receipts from before the schema had a name.
    #[serde(default)]
    pub schema_version: String,
    /// Its id, which is also its file name without `.json`.
    pub receipt_id: String,
    /// The id of the spec.
    pub spec_id: String,
    /// Its sequence number among the receipts of the spec, from 1 without gaps; 0 if unknown.
    #[serde(default)]
    pub sequence: u64,
    /// The time of writing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emitted_at: Option<Timestamp>,
    /// Whether that time is real.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockSource>,
    /// Whether no model was called; then it proves nothing.
    #[serde(default)]
    pub dry_run: bool,
    /// The exit code of the command, as far as this phase determines it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u8>,
    /// The phases that ran; Crucible writes one entry.
    #[serde(default)]
    pub phases: Vec<PhaseEntry>,
    /// How the work was done; absent only in receipts of other programs, which then prove nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<PipelineReceipt>,
    /// The receipt before this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<ReceiptLink>,
    /// The newest earlier receipt of the same phase that is not a dry run; set when it is promoted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_real: Option<ReceiptLink>,
    /// The newest earlier receipt that records a real success of the same phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_success: Option<ReceiptLink>,
    /// The version of Crucible that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crucible_version: Option<String>,
    /// The SHA-256 of its canonical JSON without this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
}

/// Names another receipt of the same spec.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptLink {
    /// The id of the named receipt.
    pub receipt_id: String,
    /// The `digest` of the named receipt.
    pub digest: Digest,
}

/// The run of a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhaseEntry {
    /// The name of the phase; a name that this version does not know is kept.
    pub phase_id: String,
    /// How it ended.
    pub status: PhaseStatus,
    /// The time of its beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// The time of its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// The last model call of the phase; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llm: Option<LlmReceipt>,
    /// Attempts that were sent to a model, including retries and corrections.
    #[serde(default)]
    pub attempts: u64,
    /// What deserves a look.
    #[serde(default)]
    pub warnings: Vec<ReceiptWarning>,
    /// The model's inputs, by path and digest: artifacts by their path in the spec's directory, project
    /// files by theirs after `project/`.
    #[serde(default)]
    pub inputs: Vec<FileRecord>,
    /// The packet as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet: Option<PacketReceipt>,
    /// For the phase `requirements`: the highest requirement id ever assigned, so that none is reused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub highest_requirement: Option<u32>,
    /// The outputs, by path in the spec's directory (`artifacts/10-design.md`).
    #[serde(default)]
    pub outputs: Vec<FileRecord>,
    /// For the phase `fixup`: the proposed or applied changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixups: Option<FixupReceipt>,
    /// The hooks that ran before and after it.
    #[serde(default)]
    pub hooks: Vec<HookReceipt>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<PhaseFailure>,
    /// The findings about the model's answers, including those that were corrected.
    #[serde(default, deserialize_with = "form::loose_findings")]
    pub findings: Vec<Finding>,
}

/// How a phase ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseStatus {
    /// Its artifact was promoted.
    Success,
    /// Its artifact was not promoted.
    Failed,
    /// No model was called.
    DryRun,
}

/// A file by its digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// The path of the file.
    pub path: String,
    /// The SHA-256 of its bytes.
    pub sha256: Digest,
    /// Its length.
    pub bytes: u64,
}

/// The summary of a packet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketReceipt {
    /// The SHA-256 of the packet's manifest, as canonical JSON.
    pub sha256: Digest,
    /// Bytes of all entries.
    pub bytes: u64,
    /// Lines of all entries.
    pub lines: u64,
    /// The number of entries.
    pub entries: u64,
    /// Selected files that did not fit.
    #[serde(default)]
    pub left_out: u64,
}

/// The changes of a fixup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FixupReceipt {
    /// How far the fixup got.
    pub stage: FixupStage,
    /// The canonical diff; absent if there is nothing to change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<FileRecord>,
    /// The files that it changes.
    #[serde(default)]
    pub files: Vec<FixedFile>,
}

/// The stage of a fixup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FixupStage {
    /// There is nothing to change.
    None,
    /// It is proposed, and the project's files are unchanged.
    Pending,
    /// It is applied.
    Applied,
}

/// A project file before and after a fixup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FixedFile {
    /// Its path in the project.
    pub path: String,
    /// The SHA-256 before; absent if the file did not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Digest>,
    /// The SHA-256 afterwards; absent if the file is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Digest>,
}

/// A hook that ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HookReceipt {
    /// Its name in the configuration.
    pub name: String,
    /// When it runs.
    pub moment: HookMoment,
    /// How it ended.
    pub end: HookEnd,
    /// Its exit code, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Duration in milliseconds.
    pub duration_ms: u64,
    /// The consequence of a failure.
    pub on_fail: OnFail,
    /// The isolation of the sandbox; absent if it was never started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<IsolationReceipt>,
    /// The end of its output, or why it was not started; redacted and short.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub said: String,
}

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookMoment {
    /// Before a phase calls a model.
    PrePhase,
    /// After a phase has its document, before the promotion: a failed hook that is set to `fail` prevents
    /// it.
    PostPhase,
    /// Before a gate judges.
    PreGate,
    /// After a gate has judged.
    PostGate,
}

/// How a hook ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookEnd {
    /// With exit code 0.
    Passed,
    /// With another exit code, by a signal or over a limit.
    Failed,
    /// Killed at its time limit.
    TimedOut,
    /// It could not be started.
    NotStarted,
}

/// The consequence of a failed hook.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFail {
    /// A warning in the receipt; the work continues.
    #[default]
    Warn,
    /// The phase or the gate fails.
    Fail,
}

/// Why a phase failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseFailure {
    /// A machine-readable word: `packet_over_limit`, `secret`, `provider`, `timeout`, `answer`, `hook`,
    /// `interrupted`, …
    pub class: String,
    /// The message, without secrets.
    pub message: String,
}

impl PhaseEntry {
    /// Creates the entry of a phase that has just begun: it counts as failed until changed.
    #[must_use]
    pub fn begun(phase: PhaseId, started: Timestamp) -> Self {
        Self {
            phase_id: phase.as_str().to_owned(),
            status: PhaseStatus::Failed,
            started_at: Some(started),
            finished_at: None,
            llm: None,
            attempts: 0,
            warnings: Vec::new(),
            inputs: Vec::new(),
            packet: None,
            highest_requirement: None,
            outputs: Vec::new(),
            fixups: None,
            hooks: Vec::new(),
            error: None,
            findings: Vec::new(),
        }
    }
}

impl SpecReceipt {
    /// The entry of this phase, by name.
    #[must_use]
    pub fn phase(&self, phase_id: &str) -> Option<&PhaseEntry> {
        self.phases.iter().find(|phase| phase.phase_id == phase_id)
    }
}
