//! A server that speaks chat completions, as a backend: what `gateway`, `openai` and `openrouter` share.

use async_trait::async_trait;
use crucible_host::http::Payload;
use crucible_model::Secret;

use crate::backend::{Backend, BackendParts, ClientExtra, LlmBackend};
use crate::capability::Capabilities;
use crate::chat::{self, ChatDefaults, ChatFormat};
use crate::endpoint::Endpoint;
use crate::error::LlmError;
use crate::http_fault::CallTarget;
use crate::invocation::{LlmInvocation, LlmResult};
use crate::offered::Catalogue;
use crate::registry::{Context, ProviderSettings, required};
use crate::wire_json::to_wire;

/// A kind of server that speaks chat completions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChatServer {
    /// The provider's name.
    pub(crate) provider: &'static str,
    /// What its backends are good at.
    pub(crate) capabilities: Capabilities,
    /// How its format differs from others.
    pub(crate) format: ChatFormat,
}

impl ChatServer {
    /// Makes a backend ready that sends these headers. Nothing is sent.
    ///
    /// # Errors
    ///
    /// [`LlmError::Misconfiguration`] naming the setting that is missing or wrong.
    pub(crate) fn backend(
        self,
        headers: Vec<(String, Secret)>,
        settings: &ProviderSettings,
        context: &Context,
    ) -> Result<Backend, LlmError> {
        let Self { provider, capabilities, format } = self;
        let base_url = required(provider, "base_url", settings.base_url.as_deref())?;
        let endpoint = Endpoint::new(provider, base_url, "chat/completions", headers, context)?;
        let model = required(provider, "model", settings.model.clone())?;
        let defaults = ChatDefaults {
            max_tokens: required(provider, "max_tokens", settings.max_tokens)?,
            temperature: settings.temperature,
        };
        let inner = Box::new(ChatBackend { provider, endpoint, defaults, format });
        let parts = BackendParts::live(provider, capabilities, model, defaults.max_tokens, inner);
        let extra = ClientExtra { fallbacks: format.fallbacks, ..parts.extra };
        Ok(Backend::new(BackendParts { extra, ..parts }))
    }

    /// Where the server lists its models.
    ///
    /// # Errors
    ///
    /// As [`ChatServer::backend`]; a model need not be set.
    pub(crate) fn catalogue(
        self,
        headers: Vec<(String, Secret)>,
        settings: &ProviderSettings,
        context: &Context,
    ) -> Result<Catalogue, LlmError> {
        let base_url = required(self.provider, "base_url", settings.base_url.as_deref())?;
        let endpoint = Endpoint::new(self.provider, base_url, "models", headers, context)?;
        Ok(Catalogue::new(self.provider, endpoint))
    }
}

struct ChatBackend {
    provider: &'static str,
    endpoint: Endpoint,
    defaults: ChatDefaults,
    format: ChatFormat,
}

#[async_trait]
impl LlmBackend for ChatBackend {
    async fn invoke(&self, inv: LlmInvocation) -> Result<LlmResult, LlmError> {
        let asked = CallTarget { provider: self.provider, model: &inv.model };
        let time = self.endpoint.time(inv.timeout);
        let (body, ignored) = chat::request(asked, &inv, self.defaults, self.format)?;
        let payload = Payload::Json(to_wire(&body, self.format.list_bounds));
        // While many calls wait for their models, each holds its question only as it is sent.
        let LlmInvocation { model, messages, .. } = inv;
        drop((body, messages));
        let asked = CallTarget { provider: self.provider, model: &model };
        let answer = self.endpoint.send(asked, time, payload).await?;
        chat::response(asked, &answer, ignored, self.format)
    }
}
