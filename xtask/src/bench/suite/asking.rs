//! How the benches of the model layer ask: the client as a run makes it, the same backend without its layers, and the
//! HTTP client alone.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crucible_host::env::Environment;
use crucible_host::http::{HttpClient, HttpRequest, Payload};
use crucible_llm::{
    Backend, BudgetLimits, CallBudget, ClientOptions, Context as Surroundings, Limit,
    LlmInvocation, Message, ModelClient, ProviderSettings, Recording, construct,
};
use crucible_model::{ByteLimit, PromptBuilder, Untrusted};
use crucible_sandbox::Sandbox;
use tokio::runtime::Runtime;

use super::bench::unmeasured;
use crate::error::TaskError;

/// More than any call of a bench takes.
const TIMEOUT: Duration = Duration::from_secs(60);

/// One process's means to ask one server, with one pool of connections.
pub(super) struct Asking {
    bench: &'static str,
    address: SocketAddr,
    surroundings: Surroundings,
    /// The event loop, of the kind a command has.
    pub(super) runtime: Runtime,
}

impl Asking {
    /// Makes ready to ask the server at `address`; nothing is sent.
    pub(super) fn new(bench: &'static str, address: SocketAddr) -> Result<Self, TaskError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(TaskError::io("start", "the event loop"))?;
        let env = Environment::from_pairs([("LANG", "C")], "/");
        let surroundings = Surroundings {
            sandbox: Arc::new(Sandbox::new(None, &env)),
            http: Arc::new(HttpClient::new().map_err(unmeasured(bench))?),
            env,
            temporary: "/tmp".into(),
            cli_cap: Surroundings::CLI_CAP,
            http_cap: Surroundings::HTTP_CAP,
        };
        Ok(Self {
            bench,
            address,
            surroundings,
            runtime,
        })
    }

    /// The backend without its layers.
    pub(super) fn backend(&self) -> Result<Backend, TaskError> {
        let settings = ProviderSettings {
            base_url: Some(format!("http://{}/v1", self.address)),
            model: Some("bench-model".to_owned()),
            max_tokens: Some(4096),
            ..ProviderSettings::default()
        };
        construct("gateway", &settings, &self.surroundings).map_err(unmeasured(self.bench))
    }

    /// The backend in all its layers.
    pub(super) fn client(
        &self,
        recording: Recording,
        budget: Arc<CallBudget>,
    ) -> Result<ModelClient, TaskError> {
        let options = ClientOptions {
            recording,
            ..ClientOptions::new(budget)
        };
        Ok(ModelClient::new(self.backend()?, options))
    }

    /// The HTTP client, which the backends share.
    pub(super) fn http(&self) -> &HttpClient {
        &self.surroundings.http
    }

    /// A request of these bytes, as the backend would send them.
    pub(super) fn request(&self, body: Vec<u8>) -> HttpRequest {
        HttpRequest {
            url: format!("http://{}/v1/chat/completions", self.address),
            headers: Vec::new(),
            payload: Payload::Json(body),
            timeout: TIMEOUT,
            max_body: ByteLimit(16 * 1024 * 1024),
        }
    }
}

/// A question about some text.
pub(super) fn question(text: &str) -> LlmInvocation {
    let prompt = PromptBuilder::new()
        .fixed_text("Review this.\n")
        .untrusted("lib.rs", &Untrusted::new(text))
        .build();
    LlmInvocation {
        spec_id: "bench".to_owned(),
        phase_id: "patch".to_owned(),
        model: "bench-model".to_owned(),
        timeout: TIMEOUT,
        messages: vec![
            Message::system(
                PromptBuilder::new()
                    .fixed_text("You review code.\n")
                    .build(),
            ),
            Message::user(prompt),
        ],
        metadata: BTreeMap::from([("max_tokens".to_owned(), 4096.into())]),
    }
}

/// Limits that hold nothing back and are still checked at each call.
pub(super) const AMPLE: BudgetLimits = BudgetLimits {
    calls: Limit::At(1 << 40),
    tokens: Limit::At(1 << 50),
    micro_dollars: Limit::Unlimited,
};
