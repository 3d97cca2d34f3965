//! The model that gives advice after a failure.

use std::path::Path;
use std::time::Duration;

use crucible_ledger::Ledger;
use crucible_llm::{
    AdviceError, AdviceLimits, Advisor, Fallback, ModelClient, RecordingFile, UNSPECIFIED,
    configured, select,
};
use crucible_model::Failure;
use crucible_sandbox::Runtime;
use crucible_settings::{Settings, Switch};

use super::{all_positive, client};
use crate::context::ForgeContext;
use crate::name::SkillName;
use crate::project::ForgeProject;
use crate::research::{AdviceSource, ResearchError, ResearchOutcome, research};

/// The model that is asked for advice, if any.
pub enum ConfiguredAdviser {
    /// No model is asked.
    Nobody,
    /// This one is.
    Model(Box<ModelClient>, AdviceLimits),
    /// The configured one cannot be prepared, so there is no advice.
    Unavailable(AdviceError),
}

impl ConfiguredAdviser {
    /// Prepares the adviser, if `is_requested` or configured.
    ///
    /// # Errors
    ///
    /// Fails if a setting or an argument cannot be used. A provider that cannot be prepared is not an error.
    pub fn from_settings(
        runtime: &Runtime<'_>,
        settings: &Settings,
        is_requested: bool,
        cassette: Option<&Path>,
        record: Option<&RecordingFile>,
    ) -> Result<Self, Failure> {
        let forge = &settings.forge;
        let is_configured = match forge.advise.get() {
            Ok(Switch::On) => true,
            Ok(Switch::Off) | Err("") => false,
            Err(other) => {
                return Err(Failure::usage(format!(
                    "forge.advise: {other:?} is neither on nor off"
                )));
            }
        };
        if !is_requested && !is_configured {
            return Ok(Self::Nobody);
        }
        let named = settings.llm.provider.as_deref().ok_or_else(|| {
            Failure::usage(format!("{UNSPECIFIED}: advice is asked of a model"))
                .hint("Pass --provider NAME.")
        })?;
        let (chars, seconds) = (forge.advice_prompt_chars, forge.advice_timeout_s);
        let positive = [
            ("forge.advice_prompt_chars", chars),
            ("forge.advice_timeout_s", seconds),
        ];
        all_positive(positive, "nobody can be asked")?;
        configured::check_budget(settings)?;
        configured::check_cassette(cassette, named)?;
        let context = configured::context(runtime, settings)?;
        let provider = configured::named_provider(runtime, settings, named);
        let selected = match select(provider, Fallback::None, &context) {
            Ok(selected) => selected,
            Err(error) => return Ok(Self::Unavailable(error.into())),
        };
        let bounds = AdviceLimits {
            max_prompt_chars: usize::try_from(chars).unwrap_or(usize::MAX),
            timeout: Duration::from_secs(seconds),
        };
        let client = client(settings, selected.backend, record)?;
        Ok(Self::Model(Box::new(client), bounds))
    }

    /// Returns the provider that is asked, if any.
    #[must_use]
    pub fn provider(&self) -> Option<&str> {
        match self {
            Self::Model(client, _) => Some(client.provider()),
            Self::Nobody | Self::Unavailable(_) => None,
        }
    }

    /// Analyses the last failure of a skill, with the advice of this model.
    ///
    /// # Errors
    ///
    /// See [`ResearchError`].
    pub async fn research(
        self,
        world: &ForgeContext<'_>,
        project: &ForgeProject,
        name: &SkillName,
        ledger: &mut Ledger,
    ) -> Result<ResearchOutcome, ResearchError> {
        let advisor;
        let source = match self {
            Self::Nobody => AdviceSource::NotAsked,
            Self::Unavailable(error) => AdviceSource::Unavailable(error),
            Self::Model(ref client, limits) => {
                advisor = Advisor::new(client, limits);
                AdviceSource::Of(&advisor)
            }
        };
        research(world, project, name, ledger, source).await
    }
}
