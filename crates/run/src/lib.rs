//! The governed change: from a goal to a verified patch, and on to a commit.
//!
//! A run is a directory of artifacts. [`create`] makes one, [`advance`] takes it as far as it goes, [`land`]
//! commits what was verified, [`replay`] repeats it from its recording. Where a run stands is derived from its
//! files and the ledger ([`RunState`]), so a process that was killed anywhere is simply followed by the next.
//!
//! What always holds: nothing outside the run directory, the ledger and temporary copies changes before
//! [`land`]; every step is recorded once; what a model says is text until code has judged it.

mod analysis;
mod attempt;
mod budget;
mod call_book;
mod contract;
mod document;
mod engine;
mod error;
mod event_kind;
mod gate_files;
mod gatekeeper;
mod hidden;
mod journal;
mod land;
mod layout;
mod may_drop;
mod receipt;
mod recording;
mod replay;
mod role;
mod start;
mod state;
mod status;
mod trial;
mod world;

pub use analysis::{Analysis, AnalysisVersion, BehaviorCatalogue, GateResult};
pub use attempt::{AttemptEnd, AttemptOutcome, AttemptVersion};
pub use budget::raise_budget;
pub use call_book::LedgerBook;
pub use contract::{
    ContextSettings, ContractDocuments, DispatchBudgets, DispatchConfig, DispatchMode, DispatchVersion,
    FindMode, Guardrails, GuardrailsError, PatchLimits, Plan, PlanStatus, Review, ReviewError, ReviewVerdict,
    RoleProvider, RunRecord, RunRole, RunSettings, RunVersion, Signature, SignatureVersion, WebLimits,
    check_plan, required_gates,
};
pub use engine::advance;
pub use error::RunError;
pub use event_kind::EventKind;
pub use gatekeeper::{check_patch, plan_policy};
pub use journal::Witness;
pub use land::{LEDGER_TRAILER, Landing, LandingVersion, land};
pub use layout::{CASSETTE, RunDir, SOURCE};
pub use may_drop::is_definition_name;
pub use receipt::{PhaseReceipt, RunReceipt};
pub use recording::{AnswersFrom, Opening, check_recording, parameters_of_recording};
pub use replay::{Replayed, replay};
pub use start::{RunOptions, create};
pub use state::{Progress, RunState};
pub use status::{ArtifactStatus, RunStatus, answers_used, status};
pub use world::World;
