//! A provider's server, for code that forwards requests to it unchanged.
//!
//! The settings are those of the provider itself: its address, the variable with its key, its limit of
//! tokens. A client program has no address of its own unless the settings name one, so its vendor's is used.
//!
//! What always holds: the key is that of the user, and never goes to an address that a project's file sets.

use crucible_host::env::Environment;
use crucible_model::Secret;

use crate::error::{Fault, LlmError};
use crate::provider_kind::{KeyUse, ProviderClass, check_address};
use crate::provider_settings::{ProviderSettings, checked_url, named_key, required, required_key};
use crate::registry::provider;

/// Tokens of an answer where the settings name no limit.
const MAX_TOKENS: u64 = 16_000;

/// The addresses of the vendors whose client programs need none.
const VENDORS: [(&str, &str); 3] = [
    ("claude-cli", "https://api.anthropic.com"),
    ("codex-cli", "https://api.openai.com/v1"),
    ("gemini-cli", "https://generativelanguage.googleapis.com"),
];

/// Where requests are forwarded to.
#[derive(Clone)]
pub struct Upstream {
    /// The provider's name in the registry.
    pub provider: &'static str,
    /// The address without a final `/` or `/v1`.
    pub origin: String,
    /// The user's key; `None` if the server needs none.
    pub key: Option<Secret>,
    /// The most tokens of an answer if a request sets no limit.
    pub max_tokens: u64,
}

impl Upstream {
    /// Finds the server of a provider. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`LlmError::Misconfiguration`] if there is no such provider, if it has no server, or if its address or
    /// its key cannot be used.
    pub fn from_settings(
        name: &str,
        settings: &ProviderSettings,
        env: &Environment,
    ) -> Result<Self, LlmError> {
        let kind = provider(name)?;
        check_address(kind, settings)?;
        let vendor = VENDORS.iter().find(|(program, _)| *program == kind.name());
        let vendor = vendor.map(|(_, address)| (*address).to_owned());
        let own = settings.base_url.clone().filter(|url| !url.is_empty());
        let base = required(kind.name(), "base_url", own.or(vendor))?;
        let base = checked_url(kind.name(), &base)?;
        if base.contains(['?', '#']) {
            return Err(LlmError::Misconfiguration(Fault::new(
                kind.name(),
                "",
                "the address cannot be used: it contains a query or a fragment",
                format!("correct [llm.{}] base_url", kind.name()),
            )));
        }
        let key = match kind.class() {
            ProviderClass::Http {
                key: KeyUse::Optional,
            } => {
                let variable = settings.api_key_env.as_deref();
                variable
                    .map(|variable| named_key(kind.name(), variable, env))
                    .transpose()?
            }
            ProviderClass::Http {
                key: KeyUse::Required,
            }
            | ProviderClass::Program { .. } => Some(required_key(kind.name(), settings, env)?),
            ProviderClass::Recording => {
                return Err(LlmError::Misconfiguration(Fault::new(
                    kind.name(),
                    "",
                    "a recording has no server",
                    "name a provider that has one",
                )));
            }
        };
        let base = base.trim_end_matches('/');
        Ok(Self {
            provider: kind.name(),
            origin: base.strip_suffix("/v1").unwrap_or(base).to_owned(),
            key,
            max_tokens: settings.max_tokens.unwrap_or(MAX_TOKENS),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider_settings::AddressOrigin;

    fn env() -> Environment {
        Environment::from_pairs([("KEY", "some-key-of-the-user")], "/")
    }

    fn settings(base_url: &str, key: &str) -> ProviderSettings {
        ProviderSettings {
            base_url: Some(base_url.to_owned()),
            api_key_env: Some(key.to_owned()).filter(|key| !key.is_empty()),
            ..ProviderSettings::default()
        }
    }

    #[test]
    fn address_ends_before_its_version() {
        for base in ["http://h:1/v1", "http://h:1", "http://h:1/v1/"] {
            let upstream = Upstream::from_settings("gateway", &settings(base, ""), &env()).unwrap();
            assert_eq!(
                (upstream.origin.as_str(), upstream.key.is_none()),
                ("http://h:1", true)
            );
        }
        let vendor = Upstream::from_settings("gemini-cli", &settings("", "KEY"), &env()).unwrap();
        assert_eq!(vendor.origin, "https://generativelanguage.googleapis.com");
    }

    #[test]
    fn missing_key_and_foreign_address_are_refused() {
        let missing = Upstream::from_settings("anthropic", &settings("http://h", "NONE"), &env());
        assert!(missing.is_err_and(|error| error.to_string().contains("NONE")));
        let foreign = ProviderSettings {
            address: AddressOrigin::Project,
            ..settings("http://h", "KEY")
        };
        let foreign = Upstream::from_settings("anthropic", &foreign, &env());
        assert!(foreign.is_err_and(|error| error.to_string().contains("project")));
        assert!(Upstream::from_settings("replay", &settings("http://h", ""), &env()).is_err());
    }
}
