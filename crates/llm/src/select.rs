//! Which provider answers: the one that was named, or its fallback where that one cannot even be made ready.
//!
//! A fallback is tried before anything is sent and never afterwards: a provider that fails while it works fails the
//! work (seed 002, *Fallback scope*). Whoever uses a fallback says so in its receipt.

use crate::backend::Backend;
use crate::error::{Fault, LlmError};
use crate::registry::{Context, ProviderSettings, construct, provider};

/// A provider by its name, with its settings.
#[derive(Clone)]
pub struct NamedProvider {
    /// The name in the registry.
    pub name: String,
    /// What the configuration says of it.
    pub settings: ProviderSettings,
}

/// What to do where the named provider cannot be made ready.
#[derive(Clone)]
pub enum Fallback {
    /// Nothing.
    None,
    /// Make this one ready instead.
    To(Box<NamedProvider>),
}

/// A backend that is ready.
pub struct Selected {
    /// The backend.
    pub backend: Backend,
    /// What it was made with.
    pub candidate: NamedProvider,
    /// The failure that led to the fallback; absent where the named provider is ready itself.
    pub fell_back: Option<FellBack>,
}

/// That a fallback is used, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FellBack {
    /// The provider that was named.
    pub primary: String,
    /// The class of its failure, as in [`LlmError::class`].
    pub category: &'static str,
    /// What is wrong with it. Without secrets, like every error, and without the name of the user's home: it is written down.
    pub reason: String,
    /// The provider that is used instead.
    pub fallback: String,
}

impl FellBack {
    /// The warning that receipts carry.
    #[must_use]
    pub fn warning(&self) -> String {
        let Self { primary, category, reason, fallback } = self;
        format!("Primary provider '{primary}' failed ({category}): {reason}. Using fallback '{fallback}'.")
    }
}

/// Makes the named provider ready, or its fallback. Sends nothing.
///
/// # Errors
///
/// The error of the named provider; with a fallback that cannot be made ready either, a
/// [`LlmError::Misconfiguration`] that tells both.
pub fn select(primary: NamedProvider, fallback: Fallback, context: &Context) -> Result<Selected, LlmError> {
    // A name that nobody has, or none at all, is a mistake to be told and no reason to ask somebody else.
    provider(&primary.name)?;
    let error = match construct(&primary.name, &primary.settings, context) {
        Ok(backend) => return Ok(Selected { backend, candidate: primary, fell_back: None }),
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
            Ok(Selected { backend, candidate: *fallback, fell_back: Some(fell_back) })
        }
        Err(second) => Err(LlmError::Misconfiguration(Fault::new(
            "llm",
            "",
            format!("neither the provider nor its fallback can be used:\n  {error}\n  {second}"),
            "fix one of them; `crucible doctor` shows what each needs",
        ))),
    }
}
