//! The artifacts of a run: small text or JSON documents, each with a strict parser.
//!
//! Parsing and checking are pure. The meaning of a document is defined once, here; roles and the engine only
//! write and read documents.

mod behavior_marker;
mod behaviors;
mod dispatch;
mod expected_results;
mod guardrails;
mod ids;
pub(crate) mod key_lines;
mod plan;
mod plan_documents;
mod reasons;
mod record;
mod review;

pub use behavior_marker::{BehaviorMarker, behavior_markers};
pub use behaviors::{
    BEHAVIOR_INDEX, BEHAVIOR_PAGES, BehaviorFiles, CatalogueText, NO_CATALOGUE, check_behaviors,
    is_page_name,
};
pub use dispatch::{
    API_AGENT, COUNCIL, DispatchBudgets, DispatchConfig, DispatchMode, DispatchVersion,
    MANUAL_OUTBOX, RoleProvider, RunRole, Service,
};
pub use expected_results::{EvidenceFound, ExpectedResult, check_evidence, read_results};
pub use guardrails::{FindMode, Guardrails, GuardrailsError, WebLimits};
pub use plan::{Plan, PlanStatus, check_plan, required_gates};
pub(crate) use plan::{StopCondition, places};
pub use plan_documents::{PlanDocuments, check_executed};
pub use reasons::check_reasons;
pub use record::{
    AgentCommands, AgentNetwork, ContextSettings, ContractDocuments, PatchLimits, RunRecord,
    RunSettings, RunVersion, Signature, SignatureVersion,
};
pub use review::{Review, ReviewError, ReviewVerdict};
