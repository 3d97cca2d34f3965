//! `gateway`: any server that speaks OpenAI's chat completions, such as llama.cpp, Ollama, vLLM or LM Studio.
//!
//! The key is optional; local servers want none.

use std::collections::BTreeMap;

use async_trait::async_trait;
use crucible_host::http::Payload;
use crucible_model::EditFormat;

use crate::backend::{Backend, BackendParts, LlmBackend, Origin, Speaker};
use crate::capability::{Capabilities, StructuredOutput};
use crate::chat::{self, ChatDefaults};
use crate::endpoint::{Endpoint, bearer};
use crate::error::LlmError;
use crate::http_fault::Asked;
use crate::invocation::{LlmInvocation, LlmResult};
use crate::registry::{Context, KeyUse, ProviderClass, ProviderKind, ProviderSettings, named_key, required};

const NAME: &str = "gateway";

/// The provider `gateway`.
pub(crate) struct Gateway;

impl ProviderKind for Gateway {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "any OpenAI-compatible server (llama.cpp, Ollama, vLLM, LM Studio); no key needed on your own machine"
    }

    fn class(&self) -> ProviderClass {
        ProviderClass::Http { key: KeyUse::Optional }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { edit_format: EditFormat::WholeFile, structured_output: StructuredOutput::JsonSchema }
    }

    fn construct(&self, settings: &ProviderSettings, context: &Context) -> Result<Backend, LlmError> {
        let base_url = required(NAME, "base_url", settings.base_url.as_deref())?;
        let key =
            settings.api_key_env.as_deref().map(|name| named_key(NAME, name, &context.env)).transpose()?;
        let headers = key.as_ref().map(bearer).into_iter().collect();
        let endpoint = Endpoint::new(NAME, base_url, "chat/completions", headers, context)?;
        let model = required(NAME, "model", settings.model.clone())?;
        let defaults = ChatDefaults {
            max_tokens: required(NAME, "max_tokens", settings.max_tokens)?,
            temperature: settings.temperature,
        };
        Ok(Backend::new(BackendParts {
            provider: NAME,
            default_model: model.clone(),
            phase_models: BTreeMap::new(),
            max_output_tokens: defaults.max_tokens,
            capabilities: self.capabilities(),
            speaker: Speaker { provider: NAME.to_owned(), model: model.clone() },
            origin: Origin::Live,
            parameters: BTreeMap::new(),
            inner: Box::new(GatewayBackend { endpoint, model, defaults }),
        }))
    }
}

struct GatewayBackend {
    endpoint: Endpoint,
    model: String,
    defaults: ChatDefaults,
}

#[async_trait]
impl LlmBackend for GatewayBackend {
    async fn invoke(&self, mut inv: LlmInvocation) -> Result<LlmResult, LlmError> {
        if inv.model.is_empty() {
            inv.model.clone_from(&self.model);
        }
        let asked = Asked { provider: NAME, model: &inv.model };
        let time = self.endpoint.time(inv.timeout);
        let (body, ignored) = chat::request(&inv, self.defaults);
        let payload = Payload::Json(body.to_string().into_bytes());
        let answer = self.endpoint.send(asked, time, payload).await?;
        chat::response(asked, &answer, ignored)
    }
}
