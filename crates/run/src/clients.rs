//! Whoever answers for the roles of a run: one client for each service.

use crucible_llm::ModelClient;

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
