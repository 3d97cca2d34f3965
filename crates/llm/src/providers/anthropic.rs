//! `anthropic`: Anthropic's own messages API.
//!
//! `base_url` may end before `/v1`, as Anthropic's own programs want it, or with it, as the other providers' do.

use async_trait::async_trait;
use crucible_host::http::Payload;
use crucible_model::{EditFormat, Secret};

use crate::backend::{Backend, BackendParts, LlmBackend};
use crate::capability::{Capabilities, StructuredOutput};
use crate::context::Context;
use crate::endpoint::Endpoint;
use crate::error::LlmError;
use crate::http_fault::CallTarget;
use crate::invocation::{LlmInvocation, LlmResult};
use crate::messages::{self, MessageDefaults};
use crate::offered::ModelCatalogue;
use crate::provider_kind::{KeyUse, ProviderClass, ProviderKind};
use crate::provider_settings::{ProviderSettings, required, required_key};
use crate::wire_json::{ListBounds, to_wire};

const NAME: &str = "anthropic";

/// The API version that this code is written for.
const VERSION: &str = "2023-06-01";

/// The provider `anthropic`.
pub(crate) struct Anthropic;

impl ProviderKind for Anthropic {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "Anthropic's API, with a key in ANTHROPIC_API_KEY"
    }

    fn class(&self) -> ProviderClass {
        ProviderClass::Http {
            key: KeyUse::Required,
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            edit_format: EditFormat::SearchReplace,
            structured_output: StructuredOutput::JsonSchema,
        }
    }

    fn evidence(&self) -> &'static str {
        "Not measured here: search-and-replace is the form that other coding tools use with these models, at a fraction of \
         a whole file's tokens. Anthropic documents answers held to a JSON Schema (`output_config.format`) for its models \
         since 4.5."
    }

    fn construct(
        &self,
        settings: &ProviderSettings,
        context: &Context,
    ) -> Result<Backend, LlmError> {
        let endpoint = endpoint("messages", settings, context)?;
        let model = required(NAME, "model", settings.model.clone())?;
        let defaults = MessageDefaults {
            max_tokens: required(NAME, "max_tokens", settings.max_tokens)?,
            temperature: settings.temperature,
        };
        let inner = Box::new(AnthropicBackend { endpoint, defaults });
        let parts =
            BackendParts::live(NAME, self.capabilities(), model, defaults.max_tokens, inner);
        Ok(Backend::new(parts))
    }

    fn catalogue(
        &self,
        settings: &ProviderSettings,
        context: &Context,
    ) -> Result<ModelCatalogue, LlmError> {
        // The largest page; the default is twenty.
        Ok(ModelCatalogue::new(
            NAME,
            endpoint("models?limit=1000", settings, context)?,
        ))
    }
}

fn endpoint(
    path: &str,
    settings: &ProviderSettings,
    context: &Context,
) -> Result<Endpoint, LlmError> {
    let base_url = required(NAME, "base_url", settings.base_url.as_deref())?.trim_end_matches('/');
    let origin = base_url.strip_suffix("/v1").unwrap_or(base_url);
    let key = required_key(NAME, settings, &context.env)?;
    let headers = vec![
        ("x-api-key".to_owned(), key),
        (
            "anthropic-version".to_owned(),
            Secret::new(VERSION.to_owned()),
        ),
    ];
    Endpoint::new(NAME, origin, &format!("v1/{path}"), headers, context)
}

struct AnthropicBackend {
    endpoint: Endpoint,
    defaults: MessageDefaults,
}

#[async_trait]
impl LlmBackend for AnthropicBackend {
    async fn invoke(&self, inv: LlmInvocation) -> Result<LlmResult, LlmError> {
        let target = CallTarget {
            provider: NAME,
            model: &inv.model,
        };
        let time = self.endpoint.time(inv.timeout);
        let (body, ignored) = messages::request(target, &inv, self.defaults)?;
        let payload = Payload::Json(to_wire(&body, ListBounds::LeftOut));
        // While many calls wait for their models, each keeps only the encoded request.
        let LlmInvocation {
            model, messages, ..
        } = inv;
        drop((body, messages));
        let target = CallTarget {
            provider: NAME,
            model: &model,
        };
        let answer = self.endpoint.send(target, time, payload).await?;
        messages::response(target, &answer, ignored)
    }
}
