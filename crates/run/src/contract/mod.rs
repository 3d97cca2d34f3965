//! The artifacts of a run: each a small text or JSON document with a parser that refuses what it does not know.
//!
//! Parsing and checking are pure. What a document means is decided here, once; roles and the engine only
//! fill them in and read them.

mod dispatch;
mod guardrails;
mod key_lines;
mod plan;
mod record;
mod review;

pub use dispatch::{DispatchBudgets, DispatchConfig, DispatchMode, DispatchVersion, RoleProvider, RunRole};
pub use guardrails::{FindMode, Guardrails, GuardrailsError, WebLimits};
pub(crate) use plan::known_results;
pub use plan::{Plan, PlanStatus, check_plan, required_gates};
pub use record::{
    ContextSettings, ContractDocuments, PatchLimits, RunRecord, RunSettings, RunVersion, Signature,
    SignatureVersion,
};
pub use review::{Review, ReviewError, ReviewVerdict};
