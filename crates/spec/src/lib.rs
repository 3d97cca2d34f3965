//! From a rough idea to tasks, fixups and a gate that CI can trust (seed 002).
//!
//! A spec goes through six phases: requirements, design, tasks, review, fixup, final. Each calls a model,
//! parses its answer with a pure function, and writes an artifact and a receipt. [`PhaseDefinition`]s in
//! [`phases`] contain the prompts and parsers. [`build_packet`] gathers what the model may see, within
//! limits and without secrets. [`SpecStore`] keeps artifacts and receipts, promoted together or not at
//! all. [`judge_gate`] compares receipts with the files on disk.
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
mod nearest;
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

pub use document::{RequirementId, requirement_ids, review_targets};
pub use engine::{
    FixupRun, PhaseOrder, PhaseRun, Trial, WaitingFixup, check_transition, failure_class,
    phases_to_run, valid_phases, waiting_fixup,
};
pub use error::{SpecAbsence, SpecError};
pub use fixup::{
    AppliedFixup, FIXUP_DIFF, FixupChange, FixupChangeKind, FixupChoice, FixupUnderWay,
    PendingFixup, ProposedFixup, apply_fixup, describe_fixup, fixup_changes, fixup_links,
    fixup_policy, fixup_under_way, not_nameable, pending_fixup, place_fixup, propose_fixup,
    recover_fixup,
};
pub use gate::{
    AgeError, GATE_SCHEMA, GateFinding, GatePhase, GatePolicy, GatePolicyReport, GateReport,
    OnPendingFixups, age_words, gate_findings, gate_hook_findings, judge_gate, limit_words,
    parse_age, problem_code,
};
pub use hook::{
    HOOK_SCHEMA, Hook, HookConsequence, HookOutcome, HookPlace, HookSubject, HookWalls, Hooks,
    run_hooks, weigh_hooks,
};
pub use id::{SpecId, SpecIdError};
pub use ignored::keep_out_of_git;
pub use json_output::{
    ConfigSummary, PhaseOverview, RESUME_SCHEMA, ResumeOverview, SPEC_SCHEMA, SpecOverview,
};
pub use json_output::{
    NextStep, PhaseStanding, STATUS_SCHEMA, SpecStatus, Standing, StatusProblem, StepReason,
    pending_fixups, spec_status,
};
pub use packet::{
    EntryKind, Packet, PacketEntry, PacketLimits, PacketManifest, PacketRow, PassedOver,
    PassedOverReason, Selection, build_packet, build_packet_with,
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
pub use source::{
    FileSelectors, Idea, IdeaBuilder, IssueRef, check_named_files, gather_packet, select_files,
};
pub use state::{
    FileState, PhaseState, ReceiptProblem, ReceiptProblemKind, SpecState, TrackedRecord,
};
pub use store::{LockClaim, PhaseOutput, Promotion, PromotionEnd, SpecLock, SpecStore};
pub use template::{OnExisting, SpecTemplate, StartedSpec, TEMPLATES, TemplateStart};
pub use workspace::{
    EntryChange, HISTORY_SCHEMA, HistoryProblem, HistoryRow, HistoryTotals, OnListed, SpecHistory,
    SpecStanding, SpecTag, SpecTagError, SpecWorkspace, WORKSPACE_STATUS_SCHEMA, WorkspaceCounts,
    WorkspaceEntry, WorkspaceFile, WorkspaceSpec, WorkspaceStatus, WorkspaceSurvey, spec_history,
};
