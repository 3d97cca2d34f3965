//! What a phase leaves behind: one receipt for each time it ran.
//!
//! A receipt is canonical JSON with the schema `receipt.v1` (`docs/schemas/receipt.v1.schema.json`), shaped as in seed 002,
//! *Receipt Extensions*. Every field that the seed does not have is optional: old receipts are read with defaults, and
//! fields that a newer Crucible wrote are passed over. `digest` is the SHA-256 of the receipt's canonical JSON without that field, so that an
//! edit by hand shows; `previous` chains the receipts of a spec; the ledger holds the digest of each.

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
    /// [`RECEIPT_SCHEMA`]; empty in receipts of before the schema had a name.
    #[serde(default)]
    pub schema_version: String,
    /// Its id, which is also the name of its file without `.json`.
    pub receipt_id: String,
    /// The spec.
    pub spec_id: String,
    /// Its place among the receipts of the spec, from 1 on, without gaps; 0 where it is not known.
    #[serde(default)]
    pub sequence: u64,
    /// When it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emitted_at: Option<Timestamp>,
    /// Whether that instant is real.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockSource>,
    /// Whether nobody was asked: it then proves nothing.
    #[serde(default)]
    pub dry_run: bool,
    /// The exit code of the command, as far as this phase decides it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u8>,
    /// What ran; we write one entry.
    #[serde(default)]
    pub phases: Vec<PhaseEntry>,
    /// How the work was done; absent only in receipts of other programs, which then prove nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<PipelineReceipt>,
    /// The receipt before this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<ReceiptLink>,
    /// The newest receipt before this one of the same phase that is no dry run; filled in when it is promoted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_real: Option<ReceiptLink>,
    /// The newest receipt before this one that tells of a real success of the same phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_success: Option<ReceiptLink>,
    /// The Crucible that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crucible_version: Option<String>,
    /// The SHA-256 of its canonical JSON without this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
}

/// Names another receipt of the same spec.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptLink {
    /// Its id.
    pub receipt_id: String,
    /// Its `digest`.
    pub digest: Digest,
}

/// What a phase did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhaseEntry {
    /// Which phase; a name that this version does not know is kept.
    pub phase_id: String,
    /// How it ended.
    pub status: PhaseStatus,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// The call that the phase ends with; absent where nobody was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llm: Option<LlmReceipt>,
    /// Attempts that were sent to a model, retries and corrections included.
    #[serde(default)]
    pub attempts: u64,
    /// What deserves a look.
    #[serde(default)]
    pub warnings: Vec<ReceiptWarning>,
    /// What the model was given, by path and digest: artifacts by their path in the spec's directory, files of the project by theirs behind
    /// `project/`.
    #[serde(default)]
    pub inputs: Vec<FileRecord>,
    /// The packet as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet: Option<PacketReceipt>,
    /// Of the phase `requirements`: the highest id of a requirement that was ever given, so that none comes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub highest_requirement: Option<u32>,
    /// What it wrote, by its path in the spec's directory (`artifacts/10-design.md`).
    #[serde(default)]
    pub outputs: Vec<FileRecord>,
    /// Of the phase `fixup`: what it proposes or changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixups: Option<FixupReceipt>,
    /// The hooks that ran before and after it.
    #[serde(default)]
    pub hooks: Vec<HookReceipt>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<PhaseFailure>,
    /// What was found wrong with the model's answers, also with those that were corrected.
    #[serde(default, deserialize_with = "form::loose_findings")]
    pub findings: Vec<Finding>,
}

/// How a phase ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseStatus {
    /// Its artifact was promoted.
    Success,
    /// It was not.
    Failed,
    /// Nobody was asked.
    DryRun,
}

/// A file by its digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// Its path.
    pub path: String,
    /// The SHA-256 of its bytes.
    pub sha256: Digest,
    /// Its length.
    pub bytes: u64,
}

/// What went into a packet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketReceipt {
    /// The SHA-256 of the packet's manifest, as canonical JSON.
    pub sha256: Digest,
    /// Bytes of all entries.
    pub bytes: u64,
    /// Lines of all entries.
    pub lines: u64,
    /// Entries.
    pub entries: u64,
    /// Files that were selected and left out for want of room.
    #[serde(default)]
    pub left_out: u64,
}

/// What a fixup is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FixupReceipt {
    /// Where it stands.
    pub stage: FixupStage,
    /// The canonical diff; absent where nothing is to be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<FileRecord>,
    /// The files that it changes.
    #[serde(default)]
    pub files: Vec<FixedFile>,
}

/// Where a fixup stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FixupStage {
    /// There is nothing to change.
    None,
    /// It is proposed, and the project's files are as they were.
    Pending,
    /// It is applied.
    Applied,
}

/// A file of the project before and after a fixup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FixedFile {
    /// Its path in the project.
    pub path: String,
    /// The SHA-256 before; absent where it did not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Digest>,
    /// The SHA-256 afterwards; absent where it is removed.
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
    /// Its exit code, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Milliseconds it took.
    pub duration_ms: u64,
    /// What its failure means.
    pub on_fail: OnFail,
    /// The walls around it; absent where it was never started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<IsolationReceipt>,
    /// The end of what it printed, or why it was not started; redacted and short.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub said: String,
}

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookMoment {
    /// Before a phase asks.
    PrePhase,
    /// After a phase has its document, before that is promoted: a hook that is set to `fail` keeps it from being promoted.
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
    /// Its time was over.
    TimedOut,
    /// It could not be started.
    NotStarted,
}

/// What the failure of a hook means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFail {
    /// A warning in the receipt; the work goes on.
    #[default]
    Warn,
    /// The phase or the gate fails.
    Fail,
}

/// Why a phase failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseFailure {
    /// A word for programs: `packet_over_limit`, `secret`, `provider`, `timeout`, `answer`, `hook`, `interrupted`, …
    pub class: String,
    /// The message, free of secrets.
    pub message: String,
}

impl PhaseEntry {
    /// Of a phase that began and has done nothing yet: it counts as failed until it says otherwise.
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
