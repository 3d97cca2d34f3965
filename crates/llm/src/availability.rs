//! Requests the models of a provider by its name.

use std::time::Duration;

use crate::context::Context;
use crate::error::LlmError;
use crate::offered::Offered;
use crate::provider_kind::check_address;
use crate::provider_settings::ProviderSettings;
use crate::registry::provider;

/// Whether a provider's server is available.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Availability {
    /// It answers with a list of models.
    Available,
    /// It does not answer, or with something else.
    Unavailable(LlmError),
}

/// Requests the models of a provider's server, whatever model is configured.
///
/// # Errors
///
/// [`LlmError::Unsupported`] for a provider without a list; otherwise as for a call.
pub async fn offered(
    name: &str,
    settings: &ProviderSettings,
    context: &Context,
    timeout: Duration,
) -> Result<Offered, LlmError> {
    let kind = provider(name)?;
    check_address(kind, settings)?;
    kind.catalogue(settings, context)?.models(timeout).await
}

/// Checks whether a provider's server is available, by requesting its models.
pub async fn availability(
    name: &str,
    settings: &ProviderSettings,
    context: &Context,
    timeout: Duration,
) -> Availability {
    match offered(name, settings, context, timeout).await {
        Ok(_) => Availability::Available,
        Err(error) => Availability::Unavailable(error),
    }
}
