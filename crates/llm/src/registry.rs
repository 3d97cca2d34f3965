//! The list of providers, and their construction from settings.
//!
//! A provider is one file under `providers/` and one line in [`registry`]. Construction sends nothing. It
//! checks the requirements (a program, a key, a recording, a valid address) and reports missing ones. So
//! an invalid configuration fails before any run starts, and a fallback can be tried.

use crate::backend::Backend;
use crate::context::Context;
use crate::error::{Fault, LlmError};
use crate::phase_models::phase_models;
use crate::provider_kind::{ProviderClass, ProviderKind, check_address};
use crate::provider_settings::ProviderSettings;
use crate::providers::{
    anthropic::Anthropic, claude_cli::ClaudeCli, codex_cli::CodexCli, gateway::Gateway,
    gemini_cli::GeminiCli, ollama::Ollama, openai::OpenAi, openrouter::OpenRouter, replay::Replay,
};
use crate::template::phase_templates;

/// All providers.
#[must_use]
pub fn registry() -> &'static [&'static dyn ProviderKind] {
    &[
        &Anthropic,
        &ClaudeCli,
        &CodexCli,
        &Gateway,
        &GeminiCli,
        &Ollama,
        &OpenAi,
        &OpenRouter,
        &Replay,
    ]
}

/// The error if a model is needed but no provider is named.
pub const UNSPECIFIED: &str = "LLM provider must be specified";

/// Returns the provider of this name.
///
/// # Errors
///
/// [`LlmError::Misconfiguration`] if the name is empty, [`LlmError::Unsupported`] if it is unknown.
pub fn provider(name: &str) -> Result<&'static dyn ProviderKind, LlmError> {
    let known = || {
        registry()
            .iter()
            .map(|kind| kind.name())
            .collect::<Vec<_>>()
            .join(", ")
    };
    if name.is_empty() {
        return Err(LlmError::Misconfiguration(Fault::new(
            "llm",
            "",
            UNSPECIFIED,
            format!(
                "set [llm] provider or CRUCIBLE_LLM_PROVIDER to one of {}; `crucible run start` also takes --provider",
                known()
            ),
        )));
    }
    registry()
        .iter()
        .find(|kind| kind.name() == name)
        .copied()
        .ok_or_else(|| {
            let text: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
            LlmError::Unsupported(Fault::new(
                text,
                "",
                "unknown provider",
                format!("choose one of {}", known()),
            ))
        })
}

/// Creates the backend of a provider. Sends nothing.
///
/// # Errors
///
/// As [`provider`] and [`ProviderKind::construct`].
pub fn construct(
    name: &str,
    settings: &ProviderSettings,
    context: &Context,
) -> Result<Backend, LlmError> {
    let kind = provider(name)?;
    check_address(kind, settings)?;
    let backend = kind.construct(settings, context)?;
    match kind.class() {
        // A recording is replayed without templates.
        ProviderClass::Recording => Ok(backend),
        ProviderClass::Program { .. } | ProviderClass::Http { .. } => {
            let templates = phase_templates(name, settings)?;
            Ok(backend
                .with_phase_models(phase_models(name, settings)?)
                .with_phase_templates(templates))
        }
    }
}
