//! `gateway`: any server that speaks OpenAI's chat completions, such as llama.cpp, Ollama, vLLM or LM Studio.
//!
//! The key is optional; local servers want none.

use crucible_model::{EditFormat, Secret};

use crate::backend::Backend;
use crate::capability::{Capabilities, StructuredOutput};
use crate::chat::ChatFormat;
use crate::chat_backend::ChatServer;
use crate::context::Context;
use crate::endpoint::bearer;
use crate::error::LlmError;
use crate::offered::ModelCatalogue;
use crate::provider_kind::{KeyUse, ProviderClass, ProviderKind};
use crate::provider_settings::{ProviderSettings, named_key};
use crate::wire_json::ListBounds;

const SERVER: ChatServer = ChatServer {
    provider: "gateway",
    capabilities: Capabilities {
        edit_format: EditFormat::WholeFile,
        structured_output: StructuredOutput::JsonSchema,
    },
    // llama.cpp, vLLM and Ollama enforce them; without them, a small model ends a list after its first
    // item.
    format: ChatFormat {
        list_bounds: ListBounds::Taken,
        ..ChatFormat::PLAIN
    },
};

/// The provider `gateway`.
pub(crate) struct Gateway;

impl ProviderKind for Gateway {
    fn name(&self) -> &'static str {
        SERVER.provider
    }

    fn summary(&self) -> &'static str {
        "any OpenAI-compatible server (llama.cpp, Ollama, vLLM, LM Studio); no key needed on your own machine"
    }

    fn class(&self) -> ProviderClass {
        ProviderClass::Http {
            key: KeyUse::Optional,
        }
    }

    fn capabilities(&self) -> Capabilities {
        SERVER.capabilities
    }

    fn evidence(&self) -> &'static str {
        "Ten tries of a local 1.5B model: the whole corrected file fixed the bug 7 times, a search-and-replace edit once, \
         a unified diff never. An object of a given shape came 2 times when it was asked for in words, and 10 times \
         under a JSON Schema."
    }

    fn construct(
        &self,
        settings: &ProviderSettings,
        context: &Context,
    ) -> Result<Backend, LlmError> {
        let key = optional_key(SERVER.provider, settings, context)?;
        SERVER.backend(key, settings, context)
    }

    fn catalogue(
        &self,
        settings: &ProviderSettings,
        context: &Context,
    ) -> Result<ModelCatalogue, LlmError> {
        let key = optional_key(SERVER.provider, settings, context)?;
        SERVER.catalogue(key, settings, context)
    }
}

/// Returns the header with the key that the settings name, if they name one.
pub(super) fn optional_key(
    provider: &str,
    settings: &ProviderSettings,
    context: &Context,
) -> Result<Vec<(String, Secret)>, LlmError> {
    let variable = settings.api_key_env.as_deref();
    let key = variable
        .map(|name| named_key(provider, name, &context.env))
        .transpose()?;
    Ok(key.as_ref().map(bearer).into_iter().collect())
}
