//! The governed change: from a goal to a verified patch, and on to a commit.
//!
//! A run is a directory of artifacts. [`create`] makes one, [`advance`] takes it as far as possible, [`land`]
//! commits what was verified, [`replay`] repeats it from its recording. The state of a run is derived from
//! its files and the ledger ([`RunState`]), so another process can continue after a kill at any point.
//!
//! Invariants: nothing outside the run directory, the ledger and temporary copies changes before [`land`];
//! every step is recorded once; what a model says is text until code has judged it.

mod allow;
mod analysis;
mod attempt;
mod attestation;
mod broken_change;
mod budget;
mod bundle;
mod canary;
mod catalogue;
mod check_gates;
mod clients;
mod commit_message;
pub mod configured;
mod context_build;
mod context_text;
mod contract;
pub mod demo;
mod dispatch;
mod doctor;
mod document;
mod documents;
mod engine;
mod error;
mod event_kind;
mod exit_status;
mod find;
mod found;
mod gate_document;
mod gate_files;
mod gate_programs;
mod gate_workspace;
mod gatekeeper;
mod held_out;
mod held_out_gates;
mod hidden;
mod journal;
mod land;
mod landing_evidence;
mod layout;
mod ledger_check;
mod lookup;
mod may_drop;
mod objections;
mod other_world;
mod pack_limits;
mod plan_check;
mod plan_evidence;
mod policy_replay;
mod progress;
mod proposal;
mod receipt;
mod recorded;
mod recording;
mod replay;
mod requirement_evidence;
mod reservations;
mod restore;
mod role;
mod rounds;
mod run_client;
mod run_context;
mod scope;
mod second_world;
mod shown;
mod start;
mod state;
mod status;
mod status_text;
mod strength;
mod timeline;
mod trial;
mod unfinished;
mod verification;
mod verify_again;
mod verify_record;

pub use allow::{Permission, allow};
pub use analysis::AnalysisVersion;
pub use attempt::{AttemptEnd, AttemptOutcome, AttemptVersion};
pub use attestation::{
    ApprovalDocument, ApprovalSource, ApprovalVersion, CheckedCommit, CommitsCheck, Signing,
    approve, carry, check_commits, check_push, claim_runs, key_directory, push_notes, read_note,
    rerun_gates,
};
pub use bundle::RunBundle;
pub use catalogue::check_repository_behaviors;
pub use check_gates::{GateCheck, GateState, check_gates};
pub use clients::Clients;
pub use commit_message::{SubjectError, check_subject};
pub use context_build::{BuiltContext, BuiltContextDocument, ContextRequest, WrittenDocument};
pub use contract::{
    AgentCommands, AgentNetwork, COUNCIL, CodingAgentSettings, ContextSettings, ContractDocuments,
    DispatchBudgets, DispatchConfig, DispatchMode, DispatchVersion, MANUAL_OUTBOX, PatchLimits,
    Plan, PlanStatus, Review, ReviewVerdict, RoleProvider, RunRecord, RunRole, RunSettings,
    RunVersion, Service, Signature, SignatureVersion, WebLimits, required_gates,
};
pub use contract::{EvidenceFound, ExpectedResult, NO_CATALOGUE, check_evidence};
pub use dispatch::{AgentProgress, OutboxBackend};
pub use doctor::{Examination, ExaminationDocument, ProviderChoice, readiness};
pub use documents::{
    ApprovalRecord, AttemptDocuments, BaselineGate, Exchange, GateLog, ReviewText, RunDocuments,
    UnrequestedFile, documents, existing_run, parse_record,
};
pub use engine::advance;
pub use error::RunError;
pub use event_kind::RECORD_KEY;
pub use find::{
    Domain, DomainError, FindCandidate, FindResult, FindResultVersion, GoalKind, PastRun, PastRuns,
    RepoFacts, Workflow, WorkflowAdvice, WorkflowConditions, WorkflowFault, WorkflowOrigin,
    Workflows, WorkflowsError, resolve,
};
pub use gate_document::{CheckedGates, GateDocument, ListedGates};
pub use gatekeeper::{
    AppliedPatch, AppliedPatchDocument, SignedPlan, apply_patch_locked, check_patch, plan_policy,
    run_of, signed_plan,
};
pub use journal::{NoopObserver, RunObserver};
pub use land::{Landing, LandingVersion, land};
pub use layout::{CASSETTE, EVENTS, PLAN, RunDir, SOURCE};
pub use ledger_check::{LedgerCheck, LedgerWitnesses, check_ledger};
pub use lookup::{find_run, missing_ledger, run_id};
pub use may_drop::is_definition_name;
pub use plan_check::{EvidenceCheck, PlanCheck};
pub use plan_evidence::executed_gates;
pub use policy_replay::{ReplayPolicy, RuleAnswer, RuleResult, replay_policy};
pub use progress::PendingRequest;
pub use proposal::submit_proposal;
pub use recording::{AnswerSource, ClientContext};
pub use replay::{Replayed, replay};
pub use requirement_evidence::{EvidenceRequest, SpecEvidence, defined_tests, spec_evidence};
pub use reservations::LedgerReservations;
pub use role::chair::{
    ContextRanking, ContextRankingVersion, HistoryUse, RankedFile, RankedOutcome,
};
pub use run_client::CouncilService;
pub use run_context::RunContext;
pub use scope::NamedPlaceError;
pub use shown::report_lines;
pub use start::{RunOptions, create};
pub use state::{Progress, RunState};
pub use status::{ArtifactStatus, BudgetStatus, RunStatus, answers_used, status};
pub use timeline::{PartKind, Stage, TimelinePart, first_end, timeline};
pub use verify_again::{VerifiedAgain, VerifiedAgainDocument, verify_again};
pub use verify_record::{FilesListed, RecordCheck, UnrecordedFiles, unrecorded, verify_record};
