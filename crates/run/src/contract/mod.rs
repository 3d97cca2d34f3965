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

pub(crate) use behavior_marker::behavior_markers;
pub use behaviors::NO_CATALOGUE;
pub(crate) use behaviors::{
    BEHAVIOR_INDEX, BEHAVIOR_PAGES, BehaviorFiles, CatalogueText, check_behaviors, is_page_name,
};
pub(crate) use dispatch::{AGENT, AGENT_PREFIX, API_AGENT};
pub use dispatch::{
    COUNCIL, DispatchBudgets, DispatchConfig, DispatchMode, DispatchVersion, MANUAL_OUTBOX,
    RoleProvider, RunRole, Service,
};
pub use expected_results::{EvidenceFound, ExpectedResult, check_evidence};
pub use guardrails::WebLimits;
pub(crate) use guardrails::{FindMode, Guardrails};
pub(crate) use plan::check_plan;
pub use plan::{Plan, PlanStatus, required_gates};
pub(crate) use plan::{StopCondition, parse_items};
pub(crate) use plan_documents::{PlanDocuments, check_executed};
pub use record::{
    AgentCommands, AgentNetwork, CodingAgentSettings, ContextSettings, ContractDocuments,
    PatchLimits, RunRecord, RunSettings, RunVersion, Signature, SignatureVersion,
};
pub use review::{Review, ReviewVerdict};
