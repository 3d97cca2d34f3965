//! What providers get from the process: environment, connections, sandbox and time caps.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crucible_host::env::Environment;
use crucible_host::http::HttpClient;
use crucible_model::Secret;
use crucible_sandbox::Sandbox;

use crate::error::{Fault, LlmError};

/// The environment that providers need.
#[derive(Clone)]
pub struct Context {
    /// The environment variables.
    pub env: Environment,
    /// The HTTP connections of the process.
    pub http: Arc<HttpClient>,
    /// The sandbox for client programs.
    pub sandbox: Arc<Sandbox>,
    /// The parent of client programs' private directories; created if missing.
    pub temporary: PathBuf,
    /// The time cap of a client program's call.
    pub cli_cap: Duration,
    /// The time cap of an HTTP request.
    pub http_cap: Duration,
}

impl Context {
    /// The longest time of a call of a client program.
    pub const CLI_CAP: Duration = Duration::from_secs(600);

    /// The longest time of an HTTP request.
    pub const HTTP_CAP: Duration = Duration::from_secs(300);

    /// Creates a context for HTTP only, to embed a provider in a program: with these variables and no others. `PATH` is not included
    /// unless given, so client programs are not found by name.
    ///
    /// # Errors
    ///
    /// [`LlmError::Misconfiguration`] if the HTTP client cannot be created.
    pub fn http_only(keys: impl IntoIterator<Item = (String, Secret)>) -> Result<Self, LlmError> {
        let pairs = keys
            .into_iter()
            .map(|(name, key)| (name, key.expose().to_owned()));
        let env = Environment::from_pairs(pairs, "/");
        let http = HttpClient::new().map_err(|error| {
            LlmError::Misconfiguration(Fault::new(
                "llm",
                "",
                error.to_string(),
                "check the system's TLS certificates",
            ))
        })?;
        Ok(Self {
            sandbox: Arc::new(Sandbox::new(None, &env)),
            temporary: env.temporary_directory(),
            env,
            http: Arc::new(http),
            cli_cap: Self::CLI_CAP,
            http_cap: Self::HTTP_CAP,
        })
    }
}
