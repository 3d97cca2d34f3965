//! `ollama`: Ollama on this machine, by its OpenAI-compatible API.
//!
//! It is `gateway` with Ollama's usual address.

use crucible_model::EditFormat;

use super::gateway::optional_key;
use crate::backend::Backend;
use crate::capability::{Capabilities, StructuredOutput};
use crate::chat::ChatFormat;
use crate::chat_backend::ChatServer;
use crate::context::Context;
use crate::error::LlmError;
use crate::offered::ModelCatalogue;
use crate::provider_kind::{KeyUse, ProviderClass, ProviderKind};
use crate::provider_settings::ProviderSettings;
use crate::wire_json::ListBounds;

const SERVER: ChatServer = ChatServer {
    provider: "ollama",
    capabilities: Capabilities {
        edit_format: EditFormat::WholeFile,
        structured_output: StructuredOutput::JsonSchema,
    },
    format: ChatFormat {
        list_bounds: ListBounds::Taken,
        ..ChatFormat::PLAIN
    },
};

/// The provider `ollama`.
pub(crate) struct Ollama;

impl ProviderKind for Ollama {
    fn name(&self) -> &'static str {
        SERVER.provider
    }

    fn summary(&self) -> &'static str {
        "Ollama on your own machine, at its usual address; no key needed"
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
        "Not measured here: small local models do best with whole files (see gateway). Ollama documents answers held to a \
         JSON Schema."
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
