//! The configuration of an engine.
//!
//! Nothing is read from the environment or from files: the embedding program passes everything in.

use std::sync::Arc;
use std::time::Duration;

use crucible_llm::{
    Backend, BudgetLimits, Context, Fault, LlmError, PriceTable, ProviderSettings, Recording,
    construct,
};
use crucible_model::Secret;

use crate::delta::DeltaStrategy;

/// The provider of [`EngineConfig::openrouter`].
pub(crate) const PROVIDER: &str = "openrouter";

/// The most fallback models that OpenRouter accepts per call.
pub(crate) const MAX_FALLBACKS: usize = 3;

/// The variable name under which the key is passed to the provider. The environment is not read.
const KEY: &str = "OPENROUTER_API_KEY";

/// The configuration of an engine. Start from [`EngineConfig::openrouter`] or
/// [`EngineConfig::with_backend`] and change what differs.
pub struct EngineConfig {
    /// The backend of every call.
    pub backend: Backend,
    /// The model of the triage. If empty, [`EngineConfig::default_model`], or else the backend's own.
    pub triage_model: String,
    /// The model of every seat without a hint, of the judge, the synthesis and the direct answer, and of
    /// the triage if [`EngineConfig::triage_model`] is empty. If empty, the backend's own.
    pub default_model: String,
    /// Fallback models that the provider may use if the named model cannot answer, in this order.
    /// OpenRouter accepts at most three besides the named one; a longer list is refused when the engine
    /// is created. The model that answers is charged, and a cost limit assumes the most expensive one.
    /// Other backends ignore the list, and the result notes that.
    pub fallback_models: Vec<String>,
    /// The models that the triage may name for a seat. The default model replaces one that is unknown to
    /// the provider, or that has no price under a cost limit; the result notes that.
    pub hinted_models: HintedModels,
    /// The wording of the question that seats and synthesis see.
    pub wording: Wording,
    /// Whether to build a trace.
    pub observability: Observability,
    /// How to decide whether a loop changed anything.
    pub delta_strategy: DeltaChoice,
    /// The limits of one run.
    pub limits: CouncilLimits,
    /// Prices for cost estimates; a cost that the provider reports takes precedence.
    pub prices: Arc<PriceTable>,
    /// Where calls are recorded.
    pub recording: Recording,
}

/// The models that the triage may name for a seat. If it names another one, the seat uses the default
/// model, and the result notes that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HintedModels {
    /// Any model. Only the red team's hints are ignored: a question could persuade the triage to choose a
    /// weak opponent.
    Any,
    /// Only these models. Space around a name is ignored.
    Only(Vec<String>),
}

/// The wording of the question that seats and synthesis see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wording {
    /// The triage's unambiguous rewording; the synthesis also sees the original.
    Rewritten,
    /// The original question, byte for byte and of any length. It is for questions in which every word
    /// counts, such as one that contains files or prescribes a machine-readable answer. The question then
    /// decides the form of the answer; the triage's instruction applies only where the question leaves it
    /// open.
    AsAsked,
}

/// Whether to build a trace. Without a trace no record is created at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observability {
    /// Build no trace.
    Off,
    /// Build and return the whole trace.
    On,
}

/// How to decide whether a loop changed anything.
#[derive(Clone)]
pub enum DeltaChoice {
    /// The default model judges with YES or NO.
    Judge,
    /// By text: unchanged if every seat's position has at least this similarity to its earlier one, from
    /// 0 (nothing in common) to 1 (the same words).
    TextSimilarity {
        /// The similarity from which a position counts as unchanged.
        threshold: f64,
    },
    /// Never: every loop counts as changed, so all loops run.
    Never,
    /// A strategy of the embedding program.
    Custom(Arc<dyn DeltaStrategy>),
}

/// The limits of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct CouncilLimits {
    /// Calls, tokens and cost of one run, retries included. After the triage, the worst case of calls is
    /// checked. Only the surplus is used for retries, so that a dispensable part never takes the calls of
    /// a required one.
    pub budget: BudgetLimits,
    /// The time limit of each call, retries included.
    pub call_timeout: Duration,
    /// Bytes of a question. The council works on the triage's rewording, which has its own token limit,
    /// so questions of a few thousand characters are practical and long documents are not. The result
    /// notes a rewording that is much shorter.
    pub query_bytes: usize,
    /// Bytes of the context's JSON.
    pub context_bytes: usize,
    /// Bytes of one answer. A longer one is discarded.
    pub answer_bytes: usize,
    /// Characters of the deliberation in the synthesis prompt.
    pub summary_chars: usize,
}

impl CouncilLimits {
    /// The default call limit of one run. The longest council takes 50 calls (the triage, five loops of
    /// nine, three judgements and the synthesis), which leaves room for retries.
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
    /// The default triage model at OpenRouter.
    pub(crate) const OPENROUTER_TRIAGE_MODEL: &str = "anthropic/claude-sonnet-4-20250514";

    /// The default model of every other call there: OpenRouter chooses.
    pub(crate) const OPENROUTER_MODEL: &str = "openrouter/auto";

    /// Creates a configuration for OpenRouter with this key and the two default models.
    ///
    /// # Errors
    ///
    /// [`LlmError::Misconfiguration`] if the key cannot be sent.
    pub fn openrouter(key: impl Into<String>) -> Result<Self, LlmError> {
        Self::openrouter_at("https://openrouter.ai/api/v1", Secret::new(key.into()))
    }

    /// The same with another address, for tests.
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
        // Everything else is fixed here, so only the key can be wrong. The caller set no variable.
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

    /// Creates a configuration for any backend, with its own model for all calls and no model hints.
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
    use crate::caller::{CallRequest, Caller};
    use crate::degradation::Part;

    #[test]
    fn openrouter_defaults_match_the_seed() {
        let config = EngineConfig::openrouter("sk-or-0123").unwrap();
        assert_eq!(config.backend.provider(), "openrouter");
        assert_eq!(config.backend.default_model(), "openrouter/auto");
        assert_eq!(config.triage_model, "anthropic/claude-sonnet-4-20250514");
        assert_eq!(config.hinted_models, HintedModels::Any);
        assert_eq!(config.observability, Observability::Off);
        assert!(matches!(config.delta_strategy, DeltaChoice::Judge));
    }

    #[test]
    fn invalid_key_is_refused_without_its_text() {
        for key in [
            "",
            "  ",
            "two-0123\nlines-0123",
            "end-0123\n",
            "k\u{e9}y-0123",
            "nul-0123\0",
        ] {
            let error = EngineConfig::openrouter(key).err().unwrap();
            assert!(
                matches!(error, LlmError::Misconfiguration(_)),
                "{key:?}: {error}"
            );
            assert!(
                error.to_string().contains("the key cannot be sent"),
                "{error}"
            );
            assert!(!format!("{error} {error:?}").contains("0123"), "{error}");
        }
    }

    #[tokio::test]
    async fn openrouter_gets_key_title_and_models() {
        let server = FakeApi::start([Reply::Answer("fine".to_owned())]);
        let config =
            EngineConfig::openrouter_at(&server.base_url(), Secret::new("sk-or-0123".to_owned()));
        let config = EngineConfig {
            fallback_models: vec!["maker/second".to_owned(), "maker/third".to_owned()],
            ..config.unwrap()
        };
        let caller = Caller::new(&config);
        for part in [Part::Triage, Part::Synthesis] {
            let messages = vec![crucible_llm::Message::user(
                PromptBuilder::new().fixed_text("Why?").build(),
            )];
            let ask = CallRequest {
                part,
                loop_number: None,
                model: String::new(),
                messages,
                schema: None,
            };
            assert!(caller.ask(ask).await.is_ok());
        }
        let seen = server.requests();
        assert_eq!(seen[0].body["model"], "anthropic/claude-sonnet-4-20250514");
        assert_eq!(seen[1].body["model"], "openrouter/auto");
        for request in seen {
            assert_eq!(request.key(), Some("sk-or-0123"));
            assert_eq!(request.header("x-title"), Some("Crucible"));
            assert_eq!(
                request.header("http-referer"),
                Some("https://crucible.invalid/")
            );
            assert_eq!(
                request.body["models"],
                json!(["maker/second", "maker/third"])
            );
        }
        assert_eq!(caller.degradations(), []);
    }
}
