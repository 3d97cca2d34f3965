//! From the settings to a council whose backend is prepared.
//!
//! Nothing here sends a request. A setting that no engine accepts is refused before a question is read.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crucible_llm::configured::{self, positive};
use crucible_llm::{
    Backend, CallBudget, CallObserver, FellBack, Limit, PriceTable, Recording, RecordingFile,
    Selected, UNSPECIFIED,
};
use crucible_model::Failure;
use crucible_sandbox::Runtime;
use crucible_settings::{DeltaRule, SettingSource, Settings, variable_of};

use crate::config::{
    CouncilLimits, DeltaChoice, EngineConfig, HintedModels, Observability, Wording,
};
use crate::degradation::Part;
use crate::engine::Crucible;
use crate::error::CouncilError;
use crate::seat::CouncilRole;
use crate::usage::CallUsage;

/// The delta strategies by name, in settings and arguments.
pub const DELTAS: [&str; 3] = ["judge", "similarity", "never"];

/// The entry of `hinted_models` that allows every model.
const ANY_MODEL: &str = "*";

/// The phases of a council, as `[phases]` names them.
const PHASES: [&str; 6] = [
    "council-triage",
    "council-direct",
    "council-seat",
    "council-red-team",
    "council-judge",
    "council-synthesis",
];

/// The fewest calls for an answer: the triage, and one answer without a council.
pub const MIN_CALLS: u64 = 2;

/// The models that a command line names for a council. Lists of models are not settings there, because a model name may
/// contain the comma that separates the entries of a list.
#[derive(Debug, Clone, Default)]
pub struct ModelArguments {
    /// The model of every call except the triage.
    pub model: Option<String>,
    /// Fallback models for OpenRouter, tried in order.
    pub fallback_models: Vec<String>,
    /// Models that the triage may choose.
    pub hinted_models: Vec<String>,
}

/// A configured council for any number of questions, and the record of its calls.
pub struct CouncilSession {
    council: ConfiguredCouncil,
    record: Option<RecordingFile>,
}

/// A configured council: its backend and its limits.
pub struct ConfiguredCouncil {
    backend: Backend,
    models: Models,
    delta: DeltaChoice,
    limits: CouncilLimits,
    prices: Arc<PriceTable>,
    fell_back: Option<FellBack>,
}

/// The models that the configuration names; an empty name selects the provider's own model.
#[derive(Default, PartialEq)]
struct Models {
    triage: String,
    default: String,
    fallback: Vec<String>,
    hinted: Vec<String>,
}

impl CouncilSession {
    /// Creates a session that records its calls in `record`, if given.
    #[must_use]
    pub fn new(council: ConfiguredCouncil, record: Option<RecordingFile>) -> Self {
        Self { council, record }
    }

    /// Creates an engine with its own budget.
    pub fn engine(&self, observability: Observability) -> Result<Crucible, Failure> {
        let recording = self
            .record
            .as_ref()
            .map(|record| record.recording(&self.council.backend))
            .transpose()?;
        Ok(Crucible::new(self.council.config(
            recording.unwrap_or(Recording::Off),
            observability,
        ))?)
    }

    /// Adds an observer of each call.
    pub fn with_observer(self, watch: Arc<dyn CallObserver>) -> Self {
        Self {
            council: ConfiguredCouncil {
                backend: self.council.backend.watched(watch),
                ..self.council
            },
            ..self
        }
    }

    /// The limits of one question.
    pub fn limits(&self) -> &CouncilLimits {
        self.council.limits()
    }

    /// The note that an interrupted question saves nothing.
    pub fn interruption_note(&self) -> String {
        let nothing = || "No partial result was saved; ask the question again.".to_owned();
        self.record
            .as_ref()
            .and_then(RecordingFile::interruption_note)
            .unwrap_or_else(nothing)
    }

    /// The models that these parts used, each once; empty if all used the provider's own. Models that the
    /// triage chose for seats are not included.
    pub fn models_used(&self, parts: &BTreeMap<Part, CallUsage>) -> Vec<&str> {
        self.council.asked_models(parts)
    }
}

impl ConfiguredCouncil {
    /// Reads the configuration and prepares this provider. Sends nothing.
    pub fn new(
        runtime: &Runtime<'_>,
        config: &Settings,
        arguments: &ModelArguments,
        provider: &str,
    ) -> Result<Self, Failure> {
        let (limits, delta) = (limits(config)?, delta(config)?);
        let prices = Arc::new(configured::prices(config)?);
        let context = configured::context(runtime, config)?;
        let Selected {
            backend, fell_back, ..
        } = configured::selected_with(runtime, config, &context, provider)?;
        let mut models = match &fell_back {
            None => {
                Models::new(config, arguments).or_those_of_openrouter(config, backend.provider())
            }
            Some(_) => Models::none_of(config, arguments, runtime, &backend),
        };
        // A model from the command line applies to every phase; one from the configuration only to phases
        // without their own. An invalid name stays, so that the engine refuses it.
        let backend = if arguments.model.is_some() || models.default.trim().is_empty() {
            backend
        } else {
            let default = std::mem::take(&mut models.default);
            each_phase_with_a_model(backend, &default)
        };
        let council = Self {
            backend,
            models,
            delta,
            limits,
            prices,
            fell_back,
        };
        // Settings that no engine accepts are refused here, before a question waits for an answer.
        Crucible::new(council.config(Recording::Off, Observability::Off))?;
        Ok(council)
    }

    /// Prepares the council that serves a run of this provider: `council.provider`, else the run's own if it is a model, else the
    /// configured one.
    pub fn for_run(
        runtime: &Runtime<'_>,
        config: &Settings,
        provider: &str,
    ) -> Result<Self, Failure> {
        let is_model = |name: &&str| crucible_llm::provider(name).is_ok();
        let named = config.council.provider.as_deref();
        let named = named
            .or(Some(provider).filter(is_model))
            .or(config.llm.provider.as_deref());
        let provider = named.ok_or_else(|| {
            let message = "a council serves this run, and it needs models";
            Failure::usage(format!("{UNSPECIFIED}: {message}")).hint(format!(
                "Set council.provider ({}).",
                variable_of("council.provider")
            ))
        })?;
        Self::new(runtime, config, &ModelArguments::default(), provider)
    }

    /// Creates an engine for one question under the caller's own budget and record. Each call also counts
    /// against `budget`, and the triage does not reword the question.
    pub(crate) fn engine_within(
        &self,
        budget: &Arc<CallBudget>,
        limits: CouncilLimits,
    ) -> Result<Crucible, CouncilError> {
        Crucible::new(EngineConfig {
            backend: self
                .backend
                .clone()
                .within(Arc::clone(budget), Arc::clone(&self.prices)),
            limits,
            wording: Wording::AsAsked,
            ..self.config(Recording::Off, Observability::On)
        })
    }

    fn config(&self, recording: Recording, observability: Observability) -> EngineConfig {
        EngineConfig {
            triage_model: self.models.triage.clone(),
            default_model: self.models.default.clone(),
            fallback_models: self.models.fallback.clone(),
            hinted_models: self.models.hinted(),
            observability,
            delta_strategy: self.delta.clone(),
            limits: self.limits.clone(),
            prices: Arc::clone(&self.prices),
            recording,
            ..EngineConfig::with_backend(self.backend.clone())
        }
    }

    /// The limits of one question.
    pub fn limits(&self) -> &CouncilLimits {
        &self.limits
    }

    /// The provider of every call.
    pub fn provider(&self) -> &'static str {
        self.backend.provider()
    }

    /// Why a fallback provider is used, if one is.
    pub fn fell_back(&self) -> Option<&FellBack> {
        self.fell_back.as_ref()
    }

    /// The models that these parts used, each once. Models that the triage chose for seats are not
    /// included.
    pub(crate) fn models_of(&self, parts: &BTreeMap<Part, CallUsage>) -> Vec<&str> {
        let mut models = Vec::new();
        for part in parts.keys() {
            let model = self.model_of(*part);
            if !models.contains(&model) {
                models.push(model);
            }
        }
        models
    }

    fn asked_models(&self, parts: &BTreeMap<Part, CallUsage>) -> Vec<&str> {
        let models = self.models_of(parts);
        let own = self.backend.default_model();
        if models.iter().any(|model| *model != own) {
            models
        } else {
            Vec::new()
        }
    }

    fn model_of(&self, part: Part) -> &str {
        let [triage, direct, seat, red_team, judge, synthesis] = PHASES;
        let phase = match part {
            Part::Triage if !self.models.triage.is_empty() => return &self.models.triage,
            _ if !self.models.default.is_empty() => return &self.models.default,
            Part::Triage => triage,
            Part::DirectAnswer => direct,
            Part::Seat(seat) if seat.role() == CouncilRole::RedTeam => red_team,
            Part::Seat(_) => seat,
            Part::Judge => judge,
            Part::Synthesis => synthesis,
        };
        self.backend
            .phase_models()
            .get(phase)
            .map_or(self.backend.default_model(), String::as_str)
    }
}

/// Gives this model to each phase of a council that has none of its own.
fn each_phase_with_a_model(backend: Backend, default: &str) -> Backend {
    let mut models = backend.phase_models().clone();
    for phase in PHASES {
        models
            .entry(phase.to_owned())
            .or_insert_with(|| default.to_owned());
    }
    backend.with_phase_models(models)
}

impl Models {
    fn new(config: &Settings, arguments: &ModelArguments) -> Self {
        let list = |inputs: &[String], configured: &[String]| match inputs {
            [] => configured
                .iter()
                .filter(|model| !model.is_empty())
                .cloned()
                .collect(),
            given => given.to_vec(),
        };
        let council = &config.council;
        Self {
            triage: council.triage_model.clone().unwrap_or_default(),
            default: council.default_model.clone().unwrap_or_default(),
            fallback: list(&arguments.fallback_models, &council.fallback_models),
            hinted: list(&arguments.hinted_models, &council.hinted_models),
        }
    }

    /// Uses the default models of [`EngineConfig`] for OpenRouter if no model is configured for the
    /// council or the provider.
    fn or_those_of_openrouter(self, config: &Settings, provider: &str) -> Self {
        let key = format!("llm.{provider}.model");
        let is_unnamed =
            matches!(config.source(&key), Some(SettingSource::Default)) && self.default.is_empty();
        if provider != "openrouter" || !is_unnamed {
            return self;
        }
        let triage = if self.triage.is_empty() {
            EngineConfig::OPENROUTER_TRIAGE_MODEL.to_owned()
        } else {
            self.triage
        };
        let hinted = if self.hinted.is_empty() {
            vec![ANY_MODEL.to_owned()]
        } else {
            self.hinted
        };
        Self {
            triage,
            default: EngineConfig::OPENROUTER_MODEL.to_owned(),
            hinted,
            ..self
        }
    }

    /// Drops the configured models: a fallback provider does not know models of another provider.
    fn none_of(
        config: &Settings,
        arguments: &ModelArguments,
        runtime: &Runtime<'_>,
        backend: &Backend,
    ) -> Self {
        if Self::new(config, arguments) != Self::default() {
            runtime.notices.notice(&format!(
                "note: the fallback uses its own model {}, not the models of [council] or the command line",
                backend.default_model()
            ));
        }
        Self::default()
    }

    /// The models that the triage may name.
    fn hinted(&self) -> HintedModels {
        if self.hinted.iter().any(|model| model == ANY_MODEL) {
            return HintedModels::Any;
        }
        HintedModels::Only(self.hinted.clone())
    }
}

/// Returns the provider of a council: its own, else the general one.
///
/// # Errors
///
/// Fails if the settings name none.
pub fn provider(config: &Settings) -> Result<&str, Failure> {
    config.council.provider.as_deref().or(config.llm.provider.as_deref()).ok_or_else(|| {
        Failure::usage(format!("{UNSPECIFIED}: a council needs a model")).hint(format!(
            "Pass --provider NAME, or set {} for every command; `crucible doctor` shows which providers are ready.",
            variable_of("llm.provider")
        ))
    })
}

/// The limits of one question: its own call limit, and the general limits of tokens and cost.
fn limits(config: &Settings) -> Result<CouncilLimits, Failure> {
    let mut budget = configured::limits(config)?;
    let council = &config.council;
    let calls = positive("council.calls", council.calls)?;
    if calls < MIN_CALLS {
        return Err(Failure::usage(format!(
            "council.calls is {calls}, which is too few for an answer"
        ))
        .hint(format!("Set a whole number of at least {MIN_CALLS}.")));
    }
    budget.calls = Limit::At(calls);
    let size = |key: &str, value: u64| {
        positive(key, value).map(|number| usize::try_from(number).unwrap_or(usize::MAX))
    };
    Ok(CouncilLimits {
        budget,
        call_timeout: Duration::from_secs(positive("llm.timeout_s", config.llm.timeout_s)?),
        query_bytes: size("council.max_query_bytes", council.max_query_bytes)?,
        context_bytes: size("council.max_context_bytes", council.max_context_bytes)?,
        answer_bytes: size("council.max_answer_bytes", council.max_answer_bytes)?,
        summary_chars: size("council.summary_chars", council.summary_chars)?,
    })
}

fn delta(config: &Settings) -> Result<DeltaChoice, Failure> {
    let threshold = config.council.similarity;
    if !(0.0..=1.0).contains(&threshold) {
        return Err(Failure::usage(format!("council.similarity is {threshold}"))
            .hint("Set a number from 0 (nothing in common) to 1 (the same words)."));
    }
    match config.council.delta.get() {
        Ok(DeltaRule::Judge) => Ok(DeltaChoice::Judge),
        Ok(DeltaRule::Never) => Ok(DeltaChoice::Never),
        Ok(DeltaRule::Similarity) => Ok(DeltaChoice::TextSimilarity { threshold }),
        Err(other) => Err(Failure::usage(format!("council.delta is {other:?}"))
            .hint(format!("Use one of: {}.", DELTAS.join(", ")))),
    }
}
