//! Asking a role that no model serves: a person through `outbox/`, or a configured command.
//!
//! Both get the same question: the task, the answer format, the limits, and the four evidence files. The
//! question has no absolute path, so a replay asks the same one; only the file for a person begins with one.

mod action;
pub(crate) mod agent;
pub(crate) mod answer_equality;
pub(crate) mod coding_agent;
mod council;
pub(crate) mod evidence;
pub(crate) mod outbox;
mod provider;
pub(crate) mod service;

pub(crate) use action::Action;
use agent::CommandService;
pub(crate) use agent::{AgentBackend, check_agents};
pub use coding_agent::AgentProgress;
use coding_agent::CodingAgentService;
use council::CouncilService;
pub use outbox::OutboxBackend;
use outbox::PersonService;
use provider::ProviderService;
use service::RoleService;

use crate::contract::{AGENT_PREFIX, API_AGENT, COUNCIL, MANUAL_OUTBOX};

/// Returns the service behind the client of this name.
pub(crate) fn role_service(client: &str) -> &'static dyn RoleService {
    match client {
        MANUAL_OUTBOX => &PersonService,
        API_AGENT => &CommandService,
        COUNCIL => &CouncilService,
        agent if agent.starts_with(AGENT_PREFIX) => &CodingAgentService,
        _ => &ProviderService,
    }
}
