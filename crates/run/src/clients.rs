//! The services that answer in the roles of a run: one client for each service.

use crucible_llm::ModelClient;
use crucible_model::Timestamp;
use tokio::sync::watch;

use crate::contract::Service;
use crate::dispatch::AgentProgress;
use crate::error::RunError;

/// The clients of a run, by the name of their service: a model provider, [`crate::MANUAL_OUTBOX`], or
/// [`crate::API_AGENT`]. All of them record into the same file and share one budget.
pub trait Clients: Sync {
    /// Returns the client of this name.
    ///
    /// # Errors
    ///
    /// Fails if the run's clients were opened without this service.
    fn client(&self, name: &str) -> Result<&ModelClient, RunError>;

    /// Returns what the agent behind this client has done, as it changes; `None` for other services.
    fn progress(&self, name: &str) -> Option<watch::Receiver<AgentProgress>> {
        let _none = name;
        None
    }

    /// Returns the time of the event with this key in the replayed run; `None` outside a replay. Checks
    /// against a time then use it again.
    fn recorded_at(&self, key: &str) -> Option<Timestamp> {
        let _now = key;
        None
    }
}

/// A single client that serves every name, as a recording does.
impl Clients for ModelClient {
    fn client(&self, _: &str) -> Result<&ModelClient, RunError> {
        Ok(self)
    }
}

/// The same, borrowed.
impl Clients for &ModelClient {
    fn client(&self, _: &str) -> Result<&ModelClient, RunError> {
        Ok(self)
    }
}

/// Returns the placeholder for a model name if the service is not a model provider; `None` for a provider and
/// for code.
#[must_use]
pub(crate) fn model_placeholder(service: &Service) -> Option<&'static str> {
    match service {
        Service::ManualOutbox => Some("person"),
        Service::ApiAgent => Some("command"),
        Service::Council => Some("council"),
        Service::Agent(_) => Some("agent"),
        Service::LocalExec | Service::Model(_) => None,
    }
}
