//! What an engine is made with (seed 001 §2.1, *Engine Configuration*).
//!
//! Nothing is read from an environment or a file here: whoever embeds the council passes all of it in.

use std::sync::Arc;
use std::time::Duration;

use crucible_llm::{
    Backend, BudgetLimits, Context, Fault, LlmError, PriceTable, ProviderSettings, Recording, construct,
};
use crucible_model::Secret;

use crate::delta::DeltaStrategy;

/// The provider of [`EngineConfig::openrouter`].
pub(crate) const PROVIDER: &str = "openrouter";

/// How many models to fall back to it takes in a call.
pub(crate) const MOST_FALLBACKS: usize = 3;

/// The variable under which the key is handed to the provider; no environment is read for it.
const KEY: &str = "OPENROUTER_API_KEY";

/// What an engine is made with. Start from [`EngineConfig::openrouter`] or [`EngineConfig::with_backend`] and change what differs.
pub struct EngineConfig {
    /// Who answers every call.
    pub backend: Backend,
    /// The model of the triage. Empty: [`EngineConfig::default_model`], and where that is empty too, the backend's own.
    pub triage_model: String,
    /// The model of every seat without a hint, of the judge, of the synthesis and of the direct answer; of the triage, too, where
    /// [`EngineConfig::triage_model`] is empty. Empty: the backend's own.
    pub default_model: String,
    /// Models that the transport may ask where the one named cannot answer, in this order (OpenRouter's `models`, which takes
    /// three at the most besides the model that is asked; more are refused when the engine is made). What answers is what is paid, and a limit in money counts with the dearest. Another backend passes
    /// over them, and the result says so.
    pub fallback_models: Vec<String>,
    /// Which models the triage may name for a seat. One that the provider does not know, or that has no price under a limit in money,
    /// is replaced by the default model, and the result says so.
    pub hinted_models: HintedModels,
    /// Which wording of a question those see who deliberate and answer.
    pub wording: Wording,
    /// Whether a trace is built.
    pub observability: Observability,
    /// What decides whether a loop changed anything.
    pub delta_strategy: DeltaChoice,
    /// How much one run may take.
    pub limits: CouncilLimits,
    /// What tokens cost, for estimates; what a provider reports comes first.
    pub prices: Arc<PriceTable>,
    /// Where calls are written down.
    pub recording: Recording,
}

/// Which models the triage may name for a seat. One that it may not name is not asked: the seat asks the default model, and the
/// result says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HintedModels {
    /// Any: hints are passed on as they are, but for the red team's: only a list grants it a model, as a question could talk the
    /// triage into a tame one.
    Any,
    /// These. Space around a name is no part of it.
    Only(Vec<String>),
}

/// Which wording of a question those see who deliberate and answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wording {
    /// The triage's own, without ambiguity; the synthesis sees the original besides (seed 001 §2.2).
    Rewritten,
    /// That of the question, byte for byte, of any length: for a question whose every word counts, such as one with files in it
    /// and a form that a program reads. The form of the answer is then the one that the question asks for; what the triage wishes
    /// for counts where the question leaves it open.
    AsAsked,
}

/// Whether a trace is built. Where it is not, no record is made at all (seed 001 §5.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observability {
    /// None is built.
    Off,
    /// The whole trace is built and returned.
    On,
}

/// What decides whether a loop changed anything.
#[derive(Clone)]
pub enum DeltaChoice {
    /// The default model, as a judge that answers YES or NO.
    Judge,
    /// The text: unchanged where every seat's position resembles its earlier one at least this much, from 0 (nothing in common)
    /// to 1 (the same words).
    TextSimilarity {
        /// The resemblance from which on a position counts as the same.
        threshold: f64,
    },
    /// Nothing: every loop counts as changed, so all of them run.
    Never,
    /// Somebody else.
    Custom(Arc<dyn DeltaStrategy>),
}

/// How much one run may take.
#[derive(Debug, Clone, PartialEq)]
pub struct CouncilLimits {
    /// Calls, tokens and money of one run, retries included. The worst case of calls is checked once the triage is known; what it
    /// leaves is for retries, so that a part that can be spared never takes the calls of one that cannot.
    pub budget: BudgetLimits,
    /// The time for each call, its retries included.
    pub call_timeout: Duration,
    /// Bytes of a question. The council works on what the triage makes of it, written anew within its own limit of tokens: a question
    /// of some thousand characters is practical, a long document is not. Where much is lost the result says so.
    pub query_bytes: usize,
    /// Bytes of the context's JSON.
    pub context_bytes: usize,
    /// Bytes of one answer. A longer one counts as none.
    pub answer_bytes: usize,
    /// Characters of the deliberation that the synthesis is shown.
    pub summary_chars: usize,
}

impl CouncilLimits {
    /// Calls of one run: the longest one that a triage can ask for takes 50 (itself, five loops of nine, three judgements and the
    /// synthesis), which leaves room for retries.
    pub const CALLS: u64 = 64;
}

impl Default for CouncilLimits {
    fn default() -> Self {
        Self {
            budget: BudgetLimits::calls(Self::CALLS),
            call_timeout: Duration::from_secs(300),
            query_bytes: 200_000,
            context_bytes: 64 * 1024,
            answer_bytes: 256 * 1024,
            summary_chars: 60_000,
        }
    }
}

impl EngineConfig {
    /// The model that configures a council at OpenRouter where nobody names one (seed 001 §2.1).
    pub const OPENROUTER_TRIAGE_MODEL: &str = "anthropic/claude-sonnet-4-20250514";

    /// The model of every other call there: OpenRouter chooses (seed 001 §2.1).
    pub const OPENROUTER_MODEL: &str = "openrouter/auto";

    /// OpenRouter with this key, and the models of seed 001 §2.1.
    ///
    /// # Errors
    ///
    /// [`LlmError::Misconfiguration`] where the key cannot be sent.
    pub fn openrouter(key: impl Into<String>) -> Result<Self, LlmError> {
        Self::openrouter_at("https://openrouter.ai/api/v1", Secret::new(key.into()))
    }

    /// The same at another address, for tests.
    fn openrouter_at(base_url: &str, key: Secret) -> Result<Self, LlmError> {
        let settings = ProviderSettings {
            base_url: Some(base_url.to_owned()),
            api_key_env: Some(KEY.to_owned()),
            model: Some(Self::OPENROUTER_MODEL.to_owned()),
            max_tokens: Some(16_000),
            referer: Some("https://crucible.invalid/".to_owned()),
            title: Some("Crucible".to_owned()),
            ..ProviderSettings::default()
        };
        let context = Context::http_only([(KEY.to_owned(), key)])?;
        // Everything else is fixed here, so only the key can be wrong; and whoever passed it set no variable.
        let backend = construct(PROVIDER, &settings, &context).map_err(|_| {
            LlmError::Misconfiguration(Fault::new(
                PROVIDER,
                "",
                "the key cannot be sent: it is empty, or contains a line break or a non-ASCII character",
                "pass the key as OpenRouter shows it",
            ))
        })?;
        Ok(Self {
            triage_model: Self::OPENROUTER_TRIAGE_MODEL.to_owned(),
            hinted_models: HintedModels::Any,
            ..Self::with_backend(backend)
        })
    }

    /// Any backend, with its own model for everything and no hints of others.
    #[must_use]
    pub fn with_backend(backend: Backend) -> Self {
        Self {
            backend,
            triage_model: String::new(),
            default_model: String::new(),
            fallback_models: Vec::new(),
            hinted_models: HintedModels::Only(Vec::new()),
            wording: Wording::Rewritten,
            observability: Observability::Off,
            delta_strategy: DeltaChoice::Judge,
            limits: CouncilLimits::default(),
            prices: Arc::default(),
            recording: Recording::Off,
        }
    }
}

#[cfg(test)]
mod tests {
    use crucible_model::PromptBuilder;
    use crucible_testkit::{FakeApi, Reply};
    use serde_json::json;

    use super::*;
    use crate::caller::{Ask, Caller};
    use crate::result::Part;

    #[test]
    fn openrouter_is_configured_as_the_seed_has_it() {
        let config = EngineConfig::openrouter("sk-or-0123").unwrap();
        assert_eq!(config.backend.provider(), "openrouter");
        assert_eq!(config.backend.default_model(), "openrouter/auto");
        assert_eq!(config.triage_model, "anthropic/claude-sonnet-4-20250514");
        assert_eq!(config.hinted_models, HintedModels::Any);
        assert_eq!(config.observability, Observability::Off);
        assert!(matches!(config.delta_strategy, DeltaChoice::Judge));
    }

    #[test]
    fn a_key_that_cannot_be_sent_is_told_and_not_shown() {
        for key in ["", "  ", "two-0123\nlines-0123", "end-0123\n", "k\u{e9}y-0123", "nul-0123\0"] {
            let error = EngineConfig::openrouter(key).err().unwrap();
            assert!(matches!(error, LlmError::Misconfiguration(_)), "{key:?}: {error}");
            assert!(error.to_string().contains("the key cannot be sent"), "{error}");
            assert!(!format!("{error} {error:?}").contains("0123"), "{error}");
        }
    }

    #[tokio::test]
    async fn the_key_the_name_and_the_models_reach_openrouter() {
        let server = FakeApi::start([Reply::Answer("fine".to_owned())]);
        let config = EngineConfig::openrouter_at(&server.base_url(), Secret::new("sk-or-0123".to_owned()));
        let config = EngineConfig {
            fallback_models: vec!["maker/second".to_owned(), "maker/third".to_owned()],
            ..config.unwrap()
        };
        let caller = Caller::new(&config);
        for part in [Part::Triage, Part::Synthesis] {
            let messages = vec![crucible_llm::Message::user(PromptBuilder::new().ours("Why?").build())];
            let ask = Ask { part, loop_number: None, model: String::new(), messages, schema: None };
            assert!(caller.ask(ask).await.is_ok());
        }
        let seen = server.requests();
        assert_eq!(seen[0].body["model"], "anthropic/claude-sonnet-4-20250514");
        assert_eq!(seen[1].body["model"], "openrouter/auto");
        for request in seen {
            assert_eq!(request.key(), Some("sk-or-0123"));
            assert_eq!(request.header("x-title"), Some("Crucible"));
            assert_eq!(request.header("http-referer"), Some("https://crucible.invalid/"));
            assert_eq!(request.body["models"], json!(["maker/second", "maker/third"]));
        }
        assert_eq!(caller.degradations(), []);
    }
}
