//! `openai`: OpenAI's own chat completions.
//!
//! `max_completion_tokens` limits the answer: OpenAI's reasoning models refuse the older `max_tokens`,
//! and its other models accept both. Reasoning models also refuse a temperature, so none is sent unless
//! it is configured.

use crucible_model::{EditFormat, Secret};

use crate::backend::Backend;
use crate::capability::{Capabilities, StructuredOutput};
use crate::chat::{ChatFormat, TokenLimit};
use crate::chat_backend::ChatServer;
use crate::context::Context;
use crate::endpoint::bearer;
use crate::error::LlmError;
use crate::offered::ModelCatalogue;
use crate::provider_kind::{KeyUse, ProviderClass, ProviderKind};
use crate::provider_settings::{ProviderSettings, required_key};

const SERVER: ChatServer = ChatServer {
    provider: "openai",
    capabilities: Capabilities {
        edit_format: EditFormat::SearchReplace,
        structured_output: StructuredOutput::JsonSchema,
    },
    format: ChatFormat {
        token_limit: TokenLimit::MaxCompletionTokens,
        ..ChatFormat::PLAIN
    },
};

/// The provider `openai`.
pub(crate) struct OpenAi;

impl ProviderKind for OpenAi {
    fn name(&self) -> &'static str {
        SERVER.provider
    }

    fn summary(&self) -> &'static str {
        "OpenAI's API, with a key in OPENAI_API_KEY"
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
        "Not measured here: search-and-replace is the form that other coding tools use with these models, at a fraction of \
         a whole file's tokens. OpenAI documents answers held to a JSON Schema (`response_format`)."
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
    Ok(vec![bearer(&required_key(
        SERVER.provider,
        settings,
        &context.env,
    )?)])
}
