//! `crucible ask` and `crucible chat`: the council on the command line.
//!
//! Both are thin clients of `crucible_council` and offer only what the engine offers (seed 001 §6.5).
//! This module holds what they share: the backend and the limits of a council, read once from `[council]`
//! and `[llm]` before anything is sent. Each question then gets its own engine and budget.

pub(crate) mod ask;
pub(crate) mod chat;
mod progress;
mod show;

pub(crate) use show::{degraded, summary};

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, RangedI64ValueParser};
use crucible_council::{
    CallUsage, CouncilError, CouncilLimits, CouncilRole, Crucible, DeltaChoice, EngineConfig,
    HintedModels, Observability, Part, Wording,
};
use crucible_llm::{
    Backend, CallBudget, CallWatch, FellBack, Limit, PriceTable, Recording, Selected, UNSPECIFIED,
};
use crucible_settings::{DeltaRule, SettingSource, Settings, variable_of};

use crate::app::App;
use crate::commands::model;
use crate::commands::record::Record;
use crate::commands::run::{providers, shared_sandbox};
use crate::error::CommandError;

/// The delta strategies by name, on the command line and in the configuration.
const DELTAS: [&str; 3] = ["judge", "similarity", "never"];

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
const FEWEST_CALLS: u64 = 2;

/// The flags that choose the models and limits of a council.
#[derive(Args, Default)]
pub(crate) struct CouncilFlags {
    /// Provider of every call [default: council.provider, else llm.provider]
    #[arg(long, alias = "llm-provider", value_name = "NAME", value_parser = providers())]
    provider: Option<String>,
    /// The recording to answer from, for the provider `replay`
    #[arg(long, value_name = "FILE")]
    cassette: Option<PathBuf>,
    /// Model that configures the council [default: council.triage_model, else as for other calls]
    #[arg(long, value_name = "MODEL")]
    triage_model: Option<String>,
    /// Model of all other calls [default: the phase's in [phases], council.default_model or the
    /// provider's]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Fallback model for OpenRouter, tried in order (repeatable)
    #[arg(long = "fallback-model", value_name = "MODEL", value_parser = model_name)]
    fallback_models: Vec<String>,
    /// Model that the triage may choose; `*` allows any (repeatable)
    #[arg(long = "hint-model", value_name = "MODEL", value_parser = model_name)]
    hinted_models: Vec<String>,
    /// How to detect that a loop changed nothing [default: council.delta, judge]
    #[arg(long, value_name = "HOW", value_parser = PossibleValuesParser::new(DELTAS))]
    delta: Option<String>,
    /// Maximum calls per question, retries included, at least 2 [default: council.calls, 64]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = RangedI64ValueParser::<u64>::new().range(FEWEST_CALLS as i64..))]
    max_calls: Option<u64>,
    /// Record every call in this new file, for the provider `replay`
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

/// A configured council whose backend is ready, for any number of questions, and the record of its calls.
pub(crate) struct Assembly {
    bench: Bench,
    record: Option<Record>,
}

/// A configured council: its backend and its limits.
pub(crate) struct Bench {
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

impl CouncilFlags {
    /// The settings that the options override. Lists of models are not among them, because a model name
    /// may contain the comma that separates list entries.
    fn settings(&self) -> Vec<(&'static str, String)> {
        let mut settings = Vec::new();
        let mut add = |key, value: Option<String>| settings.extend(value.map(|value| (key, value)));
        add("council.provider", self.provider.clone());
        add("council.triage_model", self.triage_model.clone());
        add("council.default_model", self.model.clone());
        add("council.delta", self.delta.clone());
        add(
            "council.calls",
            self.max_calls.map(|calls| calls.to_string()),
        );
        add(
            "llm.replay.cassette",
            self.cassette
                .as_ref()
                .map(|path| path.display().to_string()),
        );
        settings
    }
}

impl Assembly {
    /// Reads the configuration and prepares the provider. Sends nothing.
    pub(crate) fn choose(app: &App, flags: &CouncilFlags) -> Result<Self, CommandError> {
        let config = app.config(app.env.working_directory(), &flags.settings())?;
        let provider = provider(&config)?;
        model::check_cassette(flags.cassette.as_deref(), provider)?;
        let bench = Bench::of(app, &config, flags, provider)?;
        let record = flags
            .record
            .as_deref()
            .map(|path| Record::at(app.absolute(path)))
            .transpose()?;
        Ok(Self { bench, record })
    }

    /// Creates an engine with its own budget.
    pub(crate) fn engine(&self, observability: Observability) -> Result<Crucible, CommandError> {
        let recording = self
            .record
            .as_ref()
            .map(|record| record.of(&self.bench.backend))
            .transpose()?;
        Ok(Crucible::new(self.bench.config(
            recording.unwrap_or(Recording::Off),
            observability,
        ))?)
    }

    /// Adds an observer of each call.
    pub(crate) fn watched(self, watch: Arc<dyn CallWatch>) -> Self {
        Self {
            bench: Bench {
                backend: self.bench.backend.watched(watch),
                ..self.bench
            },
            ..self
        }
    }

    /// The limits of one question.
    pub(crate) fn limits(&self) -> &CouncilLimits {
        self.bench.limits()
    }

    /// The note that an interrupted question saves nothing.
    pub(crate) fn kept(&self) -> String {
        let nothing = || "No partial result was saved; ask the question again.".to_owned();
        self.record
            .as_ref()
            .and_then(Record::kept)
            .unwrap_or_else(nothing)
    }

    /// The models that these parts used, each once; empty if all used the provider's own. Models that the
    /// triage chose for seats are not included.
    pub(crate) fn asked(&self, parts: &BTreeMap<Part, CallUsage>) -> Vec<&str> {
        self.bench.asked(parts)
    }
}

impl Bench {
    /// Reads the configuration and prepares this provider. Sends nothing.
    pub(crate) fn of(
        app: &App,
        config: &Settings,
        flags: &CouncilFlags,
        provider: &str,
    ) -> Result<Self, CommandError> {
        let (limits, delta) = (limits(config)?, delta(config)?);
        let prices = Arc::new(model::prices(config)?);
        let context = model::context(app, config, &shared_sandbox(app))?;
        let Selected {
            backend, fell_back, ..
        } = model::selected_with(app, config, &context, provider)?;
        let mut models = match &fell_back {
            None => Models::of(config, flags).or_those_of_openrouter(config, backend.provider()),
            Some(_) => Models::none_of(config, flags, app, &backend),
        };
        // A model from the command line applies to every phase; one from the configuration only to phases
        // without their own. An invalid name stays, so that the engine refuses it.
        let backend = if flags.model.is_some() || models.default.trim().is_empty() {
            backend
        } else {
            let default = std::mem::take(&mut models.default);
            each_phase_with_a_model(backend, &default)
        };
        let bench = Self {
            backend,
            models,
            delta,
            limits,
            prices,
            fell_back,
        };
        // Settings that no engine accepts are refused here, before a question waits for an answer.
        Crucible::new(bench.config(Recording::Off, Observability::Off))?;
        Ok(bench)
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
            ..self.config(Recording::Off, Observability::Off)
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
    pub(crate) fn limits(&self) -> &CouncilLimits {
        &self.limits
    }

    /// The provider of every call.
    pub(crate) fn provider(&self) -> &'static str {
        self.backend.provider()
    }

    /// Why a fallback provider is used, if one is.
    pub(crate) fn fell_back(&self) -> Option<&FellBack> {
        self.fell_back.as_ref()
    }

    /// The models that these parts used, each once. Models that the triage chose for seats are not
    /// included.
    pub(crate) fn models_of(&self, parts: &BTreeMap<Part, CallUsage>) -> Vec<&str> {
        let mut asked = Vec::new();
        for part in parts.keys() {
            let model = self.model_of(*part);
            if !asked.contains(&model) {
                asked.push(model);
            }
        }
        asked
    }

    fn asked(&self, parts: &BTreeMap<Part, CallUsage>) -> Vec<&str> {
        let asked = self.models_of(parts);
        let own = self.backend.default_model();
        if asked.iter().any(|model| *model != own) {
            asked
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
    fn of(config: &Settings, flags: &CouncilFlags) -> Self {
        let list = |given: &[String], configured: &[String]| match given {
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
            fallback: list(&flags.fallback_models, &council.fallback_models),
            hinted: list(&flags.hinted_models, &council.hinted_models),
        }
    }

    /// Uses the models of seed 001 with OpenRouter if no model is configured for the council or the
    /// provider.
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
    fn none_of(config: &Settings, flags: &CouncilFlags, app: &App, backend: &Backend) -> Self {
        if Self::of(config, flags) != Self::default() {
            app.output.remark(&format!(
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

/// The configured provider.
fn provider(config: &Settings) -> Result<&str, CommandError> {
    config.council.provider.as_deref().or(config.llm.provider.as_deref()).ok_or_else(|| {
        CommandError::usage(format!("{UNSPECIFIED}: a council needs a model")).hint(format!(
            "Pass --provider NAME, or set {} for every command; `crucible doctor` shows which providers are ready.",
            variable_of("llm.provider")
        ))
    })
}

/// The limits of one question: its own call limit, and the general limits of tokens and cost.
fn limits(config: &Settings) -> Result<CouncilLimits, CommandError> {
    let mut budget = model::limits(config)?;
    let council = &config.council;
    let calls = number("council.calls", council.calls)?;
    if calls < FEWEST_CALLS {
        return Err(CommandError::usage(format!(
            "council.calls is {calls}, which is too few for an answer"
        ))
        .hint(format!("Set a whole number of at least {FEWEST_CALLS}.")));
    }
    budget.calls = Limit::At(calls);
    let size = |key: &str, value: u64| {
        number(key, value).map(|number| usize::try_from(number).unwrap_or(usize::MAX))
    };
    Ok(CouncilLimits {
        budget,
        call_timeout: Duration::from_secs(number("llm.timeout_s", config.llm.timeout_s)?),
        query_bytes: size("council.max_query_bytes", council.max_query_bytes)?,
        context_bytes: size("council.max_context_bytes", council.max_context_bytes)?,
        answer_bytes: size("council.max_answer_bytes", council.max_answer_bytes)?,
        summary_chars: size("council.summary_chars", council.summary_chars)?,
    })
}

/// Reads a limit that must be greater than zero.
pub(crate) fn number(key: &str, value: u64) -> Result<u64, CommandError> {
    match value {
        0 => Err(
            CommandError::usage(format!("{key} is 0, so no model can be called"))
                .hint("Set a whole number of at least 1."),
        ),
        number => Ok(number),
    }
}

fn delta(config: &Settings) -> Result<DeltaChoice, CommandError> {
    let threshold = config.council.similarity;
    if !(0.0..=1.0).contains(&threshold) {
        return Err(
            CommandError::usage(format!("council.similarity is {threshold}"))
                .hint("Set a number from 0 (nothing in common) to 1 (the same words)."),
        );
    }
    match config.council.delta.get() {
        Ok(DeltaRule::Judge) => Ok(DeltaChoice::Judge),
        Ok(DeltaRule::Never) => Ok(DeltaChoice::Never),
        Ok(DeltaRule::Similarity) => Ok(DeltaChoice::TextSimilarity { threshold }),
        Err(other) => Err(CommandError::usage(format!("council.delta is {other:?}"))
            .hint(format!("Use one of: {}.", DELTAS.join(", ")))),
    }
}

/// Parses the name of a model.
fn model_name(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("expected the name of a model".to_owned()),
        name => Ok(name.to_owned()),
    }
}
