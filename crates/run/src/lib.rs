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
mod budget;
mod bundle;
mod call_book;
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
mod engine;
mod error;
mod event_kind;
mod exit_status;
mod find;
mod found;
mod gate_document;
mod gate_files;
mod gate_world;
mod gatekeeper;
mod hidden;
mod journal;
mod land;
mod layout;
mod ledger_check;
mod lookup;
mod may_drop;
mod pack_limits;
mod plan_check;
mod plan_evidence;
mod receipt;
mod recorded;
mod recording;
mod replay;
mod restore;
mod role;
mod rounds;
mod run_client;
mod scope;
mod start;
mod state;
mod status;
mod status_text;
mod trial;
mod unfinished;
mod verify_again;
mod verify_record;
mod world;

pub use allow::allow;
pub use analysis::{Analysis, AnalysisVersion, BehaviorCatalogue, GateResult};
pub use attempt::{AttemptEnd, AttemptOutcome, AttemptVersion};
pub use budget::raise_budget;
pub use bundle::RunBundle;
pub use call_book::LedgerBook;
pub use canary::{BrokenFiles, Canary, CanaryGate};
pub use catalogue::{check_repository_behaviors, listed_behaviors};
pub use check_gates::{GateCheck, GateState, check_gates, judge_checks};
pub use clients::{Clients, stand_in};
pub use commit_message::{SubjectError, check_subject};
pub use context_build::{BuiltContext, BuiltContextDocument, ContextRequest, WrittenDocument};
pub use contract::{
    API_AGENT, AgentCommands, AgentNetwork, COUNCIL, ContextSettings, ContractDocuments,
    DispatchBudgets, DispatchConfig, DispatchMode, DispatchVersion, FindMode, Guardrails,
    GuardrailsError, MANUAL_OUTBOX, PatchLimits, Plan, PlanStatus, Review, ReviewError,
    ReviewVerdict, RoleProvider, RunRecord, RunRole, RunSettings, RunVersion, Service, Signature,
    SignatureVersion, WebLimits, check_plan, required_gates,
};
pub use contract::{
    BEHAVIOR_INDEX, BEHAVIOR_PAGES, BehaviorFiles, BehaviorMarker, CatalogueText, EvidenceFound,
    ExpectedResult, NO_CATALOGUE, PlanDocuments, behavior_markers, check_behaviors, check_evidence,
    check_executed, check_reasons, is_page_name, read_results,
};
pub use dispatch::{AgentBackend, OutboxBackend, check_agents};
pub use doctor::{Examination, ExaminationDocument, ProviderChoice, readiness};
pub use engine::advance;
pub use error::RunError;
pub use event_kind::EventKind;
pub use find::{
    Domain, DomainError, FIND_WEB_SCHEMA, FindCandidate, FindResult, FindResultVersion, FindWeb,
    GoalKind, LocatorKind, MAX_FIND_WEB, PastRun, PastRuns, RepoFacts, WORKFLOWS_DIR,
    WebConstraints, WebLocator, WebResult, Workflow, WorkflowAdvice, WorkflowFault, WorkflowFits,
    WorkflowOrigin, Workflows, WorkflowsError, check_web, externals, resolve,
};
pub use found::{directory_in, found_gates, no_gates};
pub use gate_document::{CheckedGates, GateDocument, ListedGates};
pub use gatekeeper::{
    AppliedPatch, AppliedPatchDocument, SignedPlan, apply_patch, apply_patch_in_turn, check_patch,
    plan_policy, run_of, signed_plan,
};
pub use journal::{RunObserver, Unwatched};
pub use land::{Landing, LandingVersion, land};
pub use layout::{CASSETTE, EVENTS, PLAN, RunDir, SOURCE};
pub use ledger_check::{LedgerCheck, LedgerWitnesses, check_ledger};
pub use lookup::{find_run, missing_ledger, run_id};
pub use may_drop::is_definition_name;
pub use pack_limits::PackLimits;
pub use plan_check::{Evidence, PlanCheck};
pub use plan_evidence::{RunPlan, check_signature, check_status, executed_gates, find_evidence};
pub use receipt::{PhaseReceipt, RunReceipt};
pub use recording::{AnswersFrom, Opening, check_recording, parameters_of_recording};
pub use replay::{Replayed, replay};
pub use role::chair::{
    ContextRanking, ContextRankingVersion, HistoryUse, RankedFile, RankedOutcome, request_for_goal,
};
pub use role::librarian::pack_context;
pub use run_client::{CouncilService, RunClient, RunClients};
pub use scope::{NamedPlaceError, NamedPlaces, named_places};
pub use start::{RunOptions, create};
pub use state::{Progress, RunState};
pub use status::{ArtifactStatus, RunStatus, answers_used, status};
pub use verify_again::{VerifiedAgain, VerifiedAgainDocument, verify_again};
pub use verify_record::{
    AccountedFiles, FilesListed, RecordCheck, UnrecordedFiles, unrecorded, verify_record,
};
pub use world::World;
