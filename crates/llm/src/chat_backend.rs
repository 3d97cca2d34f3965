//! A backend for chat completions servers, shared by `gateway`, `openai` and `openrouter`.

use async_trait::async_trait;
use crucible_host::http::Payload;
use crucible_model::Secret;

use crate::backend::{Backend, BackendParts, ClientExtra, LlmBackend};
use crate::capability::Capabilities;
use crate::chat::{self, ChatDefaults, ChatFormat};
use crate::context::Context;
use crate::endpoint::Endpoint;
use crate::error::LlmError;
use crate::http_fault::CallTarget;
use crate::invocation::{LlmInvocation, LlmResult};
use crate::offered::ModelCatalogue;
use crate::provider_settings::{ProviderSettings, required};
use crate::wire_json::to_wire;

/// A kind of chat completions server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChatServer {
    /// The provider's name.
    pub(crate) provider: &'static str,
    /// The capabilities of its backends.
    pub(crate) capabilities: Capabilities,
    /// Its variant of the format.
    pub(crate) format: ChatFormat,
}

impl ChatServer {
    /// Creates a backend with these headers. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`LlmError::Misconfiguration`] naming the missing or invalid setting.
    pub(crate) fn backend(
        self,
        headers: Vec<(String, Secret)>,
        settings: &ProviderSettings,
        context: &Context,
    ) -> Result<Backend, LlmError> {
        let Self {
            provider,
            capabilities,
            format,
        } = self;
        let base_url = required(provider, "base_url", settings.base_url.as_deref())?;
        let endpoint = Endpoint::new(provider, base_url, "chat/completions", headers, context)?;
        let model = required(provider, "model", settings.model.clone())?;
        let defaults = ChatDefaults {
            max_tokens: required(provider, "max_tokens", settings.max_tokens)?,
            temperature: settings.temperature,
        };
        let inner = Box::new(ChatBackend {
            provider,
            endpoint,
            defaults,
            format,
        });
        let parts = BackendParts::live(provider, capabilities, model, defaults.max_tokens, inner);
        let extra = ClientExtra {
            fallbacks: format.fallbacks,
            ..parts.extra
        };
        Ok(Backend::new(BackendParts { extra, ..parts }))
    }

    /// Creates the list of the server's models.
    ///
    /// # Errors
    ///
    /// As [`ChatServer::backend`]; no model needs to be set.
    pub(crate) fn catalogue(
        self,
        headers: Vec<(String, Secret)>,
        settings: &ProviderSettings,
        context: &Context,
    ) -> Result<ModelCatalogue, LlmError> {
        let base_url = required(self.provider, "base_url", settings.base_url.as_deref())?;
        let endpoint = Endpoint::new(self.provider, base_url, "models", headers, context)?;
        Ok(ModelCatalogue::new(self.provider, endpoint))
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
        let target = CallTarget {
            provider: self.provider,
            model: &inv.model,
        };
        let time = self.endpoint.time(inv.timeout);
        let (body, ignored) = chat::request(target, &inv, self.defaults, self.format)?;
        let payload = Payload::Json(to_wire(&body, self.format.list_bounds));
        // While many calls wait for their models, each keeps only the encoded request.
        let LlmInvocation {
            model, messages, ..
        } = inv;
        drop((body, messages));
        let target = CallTarget {
            provider: self.provider,
            model: &model,
        };
        let answer = self.endpoint.send(target, time, payload).await?;
        chat::response(target, &answer, ignored, self.format)
    }
}
