//! The trait of provider kinds, and how each of them reaches its models.
//!
//! Providers implement the trait of this file and do not import the list of providers, `registry.rs`.

use crate::backend::Backend;
use crate::capability::Capabilities;
use crate::context::Context;
use crate::error::{Fault, LlmError};
use crate::offered::ModelCatalogue;
use crate::provider_settings::{AddressOrigin, ProviderSettings};

/// A kind of provider: its name, its capabilities and its construction.
pub trait ProviderKind: Sync {
    /// The name in the configuration.
    fn name(&self) -> &'static str;

    /// A one-line description for users.
    fn summary(&self) -> &'static str;

    /// How it reaches its models, and what it needs for that.
    fn class(&self) -> ProviderClass;

    /// The default capabilities of its backends.
    fn capabilities(&self) -> Capabilities;

    /// The evidence for the edit format and the structured output in [`ProviderKind::capabilities`], in
    /// one or two sentences: measurements, or that nothing was measured.
    fn evidence(&self) -> &'static str;

    /// Creates a backend. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`LlmError::Misconfiguration`] with what is missing and where it was searched.
    fn construct(
        &self,
        settings: &ProviderSettings,
        context: &Context,
    ) -> Result<Backend, LlmError>;

    /// Creates the model list of its server. Sends nothing, and needs no configured model.
    ///
    /// # Errors
    ///
    /// [`LlmError::Unsupported`] if it has no such list; [`LlmError::Misconfiguration`] with what is missing.
    fn catalogue(
        &self,
        _settings: &ProviderSettings,
        _context: &Context,
    ) -> Result<ModelCatalogue, LlmError> {
        Err(LlmError::Unsupported(Fault::new(
            self.name(),
            "",
            "this provider does not list its models",
            "see its documentation for model names",
        )))
    }
}

/// How a provider reaches its models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderClass {
    /// Through its own client program (`binary`), which may have the user's login.
    Program {
        /// The command that installs it.
        install: &'static str,
    },
    /// Over HTTP, at `base_url`.
    Http {
        /// Whether it needs a key.
        key: KeyUse,
    },
    /// Not at all: it replays a recording.
    Recording,
}

/// Whether a provider needs a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyUse {
    /// It is required.
    Required,
    /// It is sent if `api_key_env` names a variable.
    Optional,
}

/// Refuses to send the user's credentials to an address that a project's file sets.
pub(crate) fn check_address(
    kind: &dyn ProviderKind,
    settings: &ProviderSettings,
) -> Result<(), LlmError> {
    let sends = match kind.class() {
        ProviderClass::Program { .. } => "the login or key of its program",
        ProviderClass::Http {
            key: KeyUse::Required,
        } => "your key",
        ProviderClass::Http {
            key: KeyUse::Optional,
        } if settings.api_key_env.is_some() => "your key",
        ProviderClass::Http {
            key: KeyUse::Optional,
        }
        | ProviderClass::Recording => return Ok(()),
    };
    if settings.address == AddressOrigin::User {
        return Ok(());
    }
    let provider = kind.name();
    Err(LlmError::Misconfiguration(Fault::new(
        provider,
        "",
        format!(
            "its address is set by the project's file, which may be untrusted: {sends} is not sent there"
        ),
        format!(
            "remove [llm.{provider}] base_url from the project's file, or set it in your own configuration or \
            environment"
        ),
    )))
}
