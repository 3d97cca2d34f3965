//! Whoever answers for the roles of a run: one client for each service.

use crucible_llm::ModelClient;
use crucible_model::Timestamp;

use crate::contract::Service;
use crate::error::RunError;

/// The clients of a run, by the name of their service: a model provider, [`crate::MANUAL_OUTBOX`], or
/// [`crate::API_AGENT`]. All of them record into the same file and share one budget.
pub trait Clients: Sync {
    /// The client of this name.
    ///
    /// # Errors
    ///
    /// Fails when there is none: whoever opened the run's clients did not expect it.
    fn client(&self, name: &str) -> Result<&ModelClient, RunError>;

    /// When the event of this key was recorded in the run that these clients repeat; nothing where they repeat none. What was
    /// judged by that instant then is judged by it again.
    fn recorded_at(&self, key: &str) -> Option<Timestamp> {
        let _now = key;
        None
    }
}

/// One client that answers whatever is asked, as a recording does.
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

/// What stands where a model would be named, for a service that is no provider of models; nothing for one that is, and for code.
#[must_use]
pub fn stand_in(service: &Service) -> Option<&'static str> {
    match service {
        Service::ManualOutbox => Some("person"),
        Service::ApiAgent => Some("command"),
        Service::Council => Some("council"),
        Service::LocalExec | Service::Model(_) => None,
    }
}
