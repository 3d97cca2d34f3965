//! `gateway`: any server that speaks OpenAI's chat completions, such as llama.cpp, Ollama, vLLM or LM Studio.
//!
//! One request a call, not streamed, bounded in time and size. The key is optional and leaves only in the
//! `authorization` header. What a server says in an error is never shown: it may quote the request.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use crucible_host::http::{HttpClient, HttpRequest, check_url};
use crucible_model::{ByteLimit, EditFormat, Secret};

use crate::backend::{Backend, BackendParts, LlmBackend, Origin, Speaker};
use crate::capability::{Capabilities, StructuredOutput};
use crate::chat::{self, ChatDefaults};
use crate::error::{Fault, LlmError};
use crate::http_fault::{Asked, CallTime};
use crate::invocation::{LlmInvocation, LlmResult};
use crate::registry::{Context, ProviderKind, ProviderSettings, named_key, required};

const NAME: &str = "gateway";

/// The longest answer that is read. A million tokens are about four megabytes.
const MAX_BODY: ByteLimit = ByteLimit(16 * 1024 * 1024);

/// The provider `gateway`.
pub(crate) struct Gateway;

impl ProviderKind for Gateway {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "any OpenAI-compatible server (llama.cpp, Ollama, vLLM, LM Studio); no key needed on your own machine"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { edit_format: EditFormat::WholeFile, structured_output: StructuredOutput::JsonSchema }
    }

    fn construct(&self, settings: &ProviderSettings, context: &Context) -> Result<Backend, LlmError> {
        let base_url = required(NAME, "base_url", settings.base_url.as_deref())?;
        let url = format!("{}/chat/completions", base_url.trim_end_matches('/'));
        check_url(&url).map_err(|error| {
            let next = format!("correct [llm.{NAME}] base_url");
            LlmError::Misconfiguration(Fault::new(NAME, "", error.to_string(), next))
        })?;
        let key =
            settings.api_key_env.as_deref().map(|name| named_key(NAME, name, &context.env)).transpose()?;
        let model = required(NAME, "model", settings.model.clone())?;
        let defaults = ChatDefaults {
            max_tokens: required(NAME, "max_tokens", settings.max_tokens)?,
            temperature: settings.temperature,
        };
        let http = Arc::clone(&context.http);
        Ok(Backend::new(BackendParts {
            provider: NAME,
            default_model: model.clone(),
            max_output_tokens: defaults.max_tokens,
            capabilities: self.capabilities(),
            speaker: Speaker { provider: NAME.to_owned(), model: model.clone() },
            origin: Origin::Live,
            parameters: BTreeMap::new(),
            inner: Box::new(GatewayBackend { http, url, key, model, defaults, cap: context.http_cap }),
        }))
    }
}

struct GatewayBackend {
    http: Arc<HttpClient>,
    url: String,
    key: Option<Secret>,
    model: String,
    defaults: ChatDefaults,
    cap: std::time::Duration,
}

#[async_trait]
impl LlmBackend for GatewayBackend {
    async fn invoke(&self, mut inv: LlmInvocation) -> Result<LlmResult, LlmError> {
        if inv.model.is_empty() {
            inv.model.clone_from(&self.model);
        }
        let asked = Asked { provider: NAME, model: &inv.model };
        let time = CallTime { call: inv.timeout, cap: self.cap };
        let (body, ignored) = chat::request(&inv, self.defaults);
        let authorization = self
            .key
            .as_ref()
            .map(|key| ("authorization".to_owned(), Secret::new(format!("Bearer {}", key.expose()))));
        let request = HttpRequest {
            url: self.url.clone(),
            headers: authorization.into_iter().collect(),
            body: body.to_string().into_bytes(),
            timeout: time.effective(),
            max_body: MAX_BODY,
        };
        let answer = self.http.post_json(request).await.map_err(|error| asked.on_http_error(&error, time))?;
        if answer.status != 200 {
            return Err(asked.on_status(answer.status, &answer.headers));
        }
        chat::response(asked, &answer.body, ignored)
    }
}
