//! Chooses the provider: the named one, or its fallback if that one cannot be prepared.
//!
//! A fallback is tried before anything is sent, never afterwards: a provider that fails during the work
//! fails the work. The receipt records the use of a fallback.

use crate::backend::Backend;
use crate::context::Context;
use crate::error::{Fault, LlmError};
use crate::provider_settings::ProviderSettings;
use crate::registry::{construct, provider};

/// A provider's name and settings.
#[derive(Clone)]
pub struct NamedProvider {
    /// The name in the registry.
    pub name: String,
    /// Its configuration.
    pub settings: ProviderSettings,
}

/// What to do if the named provider cannot be prepared.
#[derive(Clone)]
pub enum Fallback {
    /// Nothing.
    None,
    /// Prepare this one instead.
    To(Box<NamedProvider>),
}

/// A prepared backend.
pub struct Selected {
    /// The backend.
    pub backend: Backend,
    /// The provider that it was made from.
    pub candidate: NamedProvider,
    /// Why the fallback is used, if it is.
    pub fell_back: Option<FellBack>,
}

/// The use of a fallback, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FellBack {
    /// The named provider.
    pub primary: String,
    /// The class of its error, as in [`LlmError::class`].
    pub category: &'static str,
    /// The error, without secrets and without the name of the user's home, because it is recorded.
    pub reason: String,
    /// The provider that is used instead.
    pub fallback: String,
}

impl FellBack {
    /// The warning in receipts.
    #[must_use]
    pub fn warning(&self) -> String {
        let Self {
            primary,
            category,
            reason,
            fallback,
        } = self;
        format!(
            "Primary provider '{primary}' failed ({category}): {reason}. Using fallback '{fallback}'."
        )
    }
}

/// Prepares the named provider, or its fallback. Sends nothing.
///
/// # Errors
///
/// The error of the named provider; if the fallback cannot be prepared either, a [`LlmError::Misconfiguration`] with both errors.
pub fn select(
    primary: NamedProvider,
    fallback: Fallback,
    context: &Context,
) -> Result<Selected, LlmError> {
    // An unknown or empty name is a mistake to report, not a reason to use the fallback.
    provider(&primary.name)?;
    let error = match construct(&primary.name, &primary.settings, context) {
        Ok(backend) => {
            return Ok(Selected {
                backend,
                candidate: primary,
                fell_back: None,
            });
        }
        Err(error) => error,
    };
    let Fallback::To(fallback) = fallback else {
        return Err(error);
    };
    match construct(&fallback.name, &fallback.settings, context) {
        Ok(backend) => {
            let fell_back = FellBack {
                primary: primary.name,
                category: error.class(),
                reason: context.env.without_home(&error.to_string()),
                fallback: fallback.name.clone(),
            };
            Ok(Selected {
                backend,
                candidate: *fallback,
                fell_back: Some(fell_back),
            })
        }
        Err(second) => Err(LlmError::Misconfiguration(Fault::new(
            "llm",
            "",
            format!("neither the provider nor its fallback can be used:\n  {error}\n  {second}"),
            "fix one of them; `crucible doctor` shows what each needs",
        ))),
    }
}
