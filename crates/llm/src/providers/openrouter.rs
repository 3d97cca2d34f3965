//! `openrouter`: one key for the models of many providers, in OpenAI's format.
//!
//! Each request names the calling program (`HTTP-Referer`, `X-Title`); both are settings. The reported
//! cost of an answer takes precedence over an estimate. A request with a `response_format` is routed only
//! to servers that support it.
//!
//! The hint `models` lists fallback models. OpenRouter documents it ("Model Fallbacks", formerly "Model
//! Routing"): `model` is tried first and then `models` in order. Any error moves on to the next one,
//! including a prompt that is too long, a rate limit and a refusal by moderation. If the last one fails,
//! its error is the answer. The answer's `model` names the model that was used, which is charged. So a
//! fallback can cost more than the requested model, and the budget reserves for the most expensive one.
//! Users report ("Message request crash when OpenRouter has > 3 configured models") that a list of more
//! than three is refused. The service decides that, because its limit may change.

use crucible_model::{EditFormat, Secret};

use crate::backend::Backend;
use crate::capability::{Capabilities, StructuredOutput};
use crate::chat::{ChatFormat, CostReport, Form};
use crate::chat_backend::ChatServer;
use crate::context::Context;
use crate::endpoint::bearer;
use crate::error::LlmError;
use crate::invocation::FallbackList;
use crate::offered::ModelCatalogue;
use crate::provider_kind::{KeyUse, ProviderClass, ProviderKind};
use crate::provider_settings::{ProviderSettings, required, required_key};

const SERVER: ChatServer = ChatServer {
    provider: "openrouter",
    capabilities: Capabilities {
        edit_format: EditFormat::WholeFile,
        structured_output: StructuredOutput::JsonSchema,
    },
    format: ChatFormat {
        form: Form::Routed,
        cost: CostReport::Dollars,
        fallbacks: FallbackList::Taken,
        ..ChatFormat::PLAIN
    },
};

/// The provider `openrouter`.
pub(crate) struct OpenRouter;

impl ProviderKind for OpenRouter {
    fn name(&self) -> &'static str {
        SERVER.provider
    }

    fn summary(&self) -> &'static str {
        "OpenRouter: the models of many providers with one key, in OPENROUTER_API_KEY"
    }

    fn class(&self) -> ProviderClass {
        ProviderClass::Http {
            key: KeyUse::Required,
        }
    }

    fn capabilities(&self) -> Capabilities {
        SERVER.capabilities
    }

    fn evidence(&self) -> &'static str {
        "Any model may answer, and whole files are what even a 1.5B model got right most often (7 of 10; edits 1, diffs 0). \
         OpenRouter documents answers held to a JSON Schema; the request restricts it to servers that do so."
    }

    fn construct(
        &self,
        settings: &ProviderSettings,
        context: &Context,
    ) -> Result<Backend, LlmError> {
        SERVER.backend(headers(settings, context)?, settings, context)
    }

    fn catalogue(
        &self,
        settings: &ProviderSettings,
        context: &Context,
    ) -> Result<ModelCatalogue, LlmError> {
        SERVER.catalogue(headers(settings, context)?, settings, context)
    }
}

fn headers(
    settings: &ProviderSettings,
    context: &Context,
) -> Result<Vec<(String, Secret)>, LlmError> {
    let key = required_key(SERVER.provider, settings, &context.env)?;
    let named = |key: &str, value: &Option<String>| {
        required(SERVER.provider, key, value.clone()).map(Secret::new)
    };
    Ok(vec![
        bearer(&key),
        (
            "http-referer".to_owned(),
            named("referer", &settings.referer)?,
        ),
        ("x-title".to_owned(), named("title", &settings.title)?),
    ])
}
