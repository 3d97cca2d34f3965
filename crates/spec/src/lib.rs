//! From a rough idea to tasks, fixups and a gate that CI can trust.
//!
//! A spec goes through six phases: requirements, design, tasks, review, fixup, final. Each calls a model,
//! parses its answer with a pure function, and writes an artifact and a receipt. [`PhaseDefinition`]s in
//! [`phases`] contain the prompts and parsers. [`build_packet`] gathers what the model may see, within
//! limits and without secrets. [`SpecStore`] keeps artifacts and receipts, promoted together or not at
//! all. `gate_findings` compares receipts with the files on disk.
//!
//! Invariants: a model's words reach the disk only as an artifact in `.crucible/`. A fixup reaches the
//! user's files only through the patch gate, on request, for all files or none. A dry run or a failed run
//! never counts as success. Every receipt of a failed phase states the reason.

mod document;
mod engine;
mod error;
mod exit_status;
mod fixup;
mod gate;
pub mod gate_output;
mod hook;
mod id;
mod ignored;
mod json_output;
mod outline;
mod packet;
mod phase;
mod phase_id;
mod project;
mod receipt;
pub mod session;
mod source;
mod state;
mod store;
mod template;
pub mod text;
mod words;
mod workspace;

pub use engine::Trial;
pub use error::{SpecAbsence, SpecError};
pub use fixup::{AppliedFixup, FixupUnderWay, fixup_under_way};
pub use gate::{
    AgeError, GateFinding, GatePhase, GatePolicy, GatePolicyReport, GateReport, OnPendingFixups,
    age_words, parse_age,
};
pub use hook::{HookConsequence, HookOutcome, HookSubject, Hooks};
pub use id::{SpecId, SpecIdError};
pub use ignored::keep_out_of_git;
pub use json_output::{
    ConfigSummary, PhaseOverview, RESUME_SCHEMA, ResumeOverview, SPEC_SCHEMA, SpecOverview,
};
pub use json_output::{
    NextStep, PhaseCondition, PhaseSummary, STATUS_SCHEMA, SpecStatus, StatusProblem, StepReason,
    pending_fixups, spec_status,
};
pub use outline::{
    OutlineRequirement, OutlineTask, SpecFolder, SpecOutline, find_spec_folder, task_goal,
};
pub use packet::{
    EntryKind, Omission, OmissionReason, Packet, PacketEntry, PacketLimits, PacketManifest,
    PacketRow, Selection, build_packet, build_packet_with,
};
pub use phase::{
    CorrectionBrief, LastArtifact, PhaseDefinition, PhaseDocument, PhaseInput, phases,
};
pub use phase_id::{PhaseId, PhaseIdError};
pub use project::{IDEA, SpecProject, repository_of};
pub use receipt::{
    FileRecord, FixedFile, FixupReceipt, FixupStage, HookEnd, HookMoment, HookReceipt, OnFail,
    PacketReceipt, PhaseEntry, PhaseFailure, PhaseStatus, RECEIPT_SCHEMA, ReceiptId,
    ReceiptIdError, ReceiptLink, SpecReceipt,
};
pub use source::{FileSelectors, Idea, IdeaBuilder, IssueRef, gather_packet, select_files};
pub use state::{
    FileState, PhaseState, ReceiptProblem, ReceiptProblemKind, SpecState, TrackedRecord,
};
pub use store::{LockClaim, PhaseOutput, Promotion, PromotionEnd, SpecLock, SpecStore};
pub use template::{OnExisting, SpecTemplate, StartedSpec, TEMPLATES, TemplateStart};
pub use workspace::{
    EntryChange, HistoryProblem, HistoryRow, HistoryTotals, OnListed, SpecHistory, SpecStanding,
    SpecTag, SpecTagError, SpecWorkspace, WorkspaceCounts, WorkspaceEntry, WorkspaceFile,
    WorkspaceSpec, WorkspaceStatus, WorkspaceSurvey, spec_history,
};
