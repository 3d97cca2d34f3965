//! `crucible ask` and `crucible chat`: the council on the command line.
//!
//! Both are thin clients of `crucible_council`: what the engine does not offer, they do without (seed 001 §6.5). What they
//! share is here: whom a council asks and within which limits, read from `[council]` and `[llm]` once, before anything is
//! sent. Each question then gets an engine, and with it a budget, of its own.

pub(crate) mod ask;
pub(crate) mod chat;
mod progress;
mod show;

use std::cell::OnceCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, RangedI64ValueParser};
use crucible_council::{CouncilLimits, Crucible, DeltaChoice, EngineConfig, HintedModels, Observability};
use crucible_host::config::{Config, variable_of};
use crucible_llm::{
    Backend, CallWatch, CassetteError, CassetteHeader, CassetteWriter, Limit, PriceTable, Recording, Reuse,
    Selected,
};

use crate::app::App;
use crate::commands::model;
use crate::commands::run::{providers, shared_sandbox};
use crate::error::CommandError;

/// What decides whether a loop changed anything, as it is named on the command line and in the configuration.
const DELTAS: [&str; 3] = ["judge", "similarity", "never"];

/// The entry of `hinted_models` that stands for every model there is.
const ANY_MODEL: &str = "*";

/// Whom a council asks, and how.
#[derive(Args, Default)]
pub(crate) struct CouncilFlags {
    /// Who answers every call; without it council.provider, else llm.provider
    #[arg(long, value_name = "NAME", value_parser = providers())]
    provider: Option<String>,
    /// The recording that answers, for the provider `replay`
    #[arg(long, value_name = "FILE")]
    cassette: Option<PathBuf>,
    /// The model that configures the council; without it council.triage_model, else the provider's own
    #[arg(long, value_name = "MODEL")]
    triage_model: Option<String>,
    /// The model of the seats, the judge and the answer; without it council.default_model, else the provider's own
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// A model that OpenRouter may ask where the other cannot answer; several are tried in this order. May be given several
    /// times
    #[arg(long = "fallback-model", value_name = "MODEL")]
    fallback_models: Vec<String>,
    /// A model that the triage may choose for a seat; `*` allows any. May be given several times
    #[arg(long = "hint-model", value_name = "MODEL")]
    hinted_models: Vec<String>,
    /// What decides whether a loop changed anything; without it council.delta, judge
    #[arg(long, value_name = "HOW", value_parser = PossibleValuesParser::new(DELTAS))]
    delta: Option<String>,
    /// Calls that one question may take, retries included; without it council.calls, 64
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = RangedI64ValueParser::<u64>::new().range(1..))]
    max_calls: Option<u64>,
    /// Write every call to this new file; the provider `replay` answers the same question with the same options from it again
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

/// A council that is chosen and can be made ready, as often as there are questions.
pub(crate) struct Assembly {
    backend: Backend,
    models: Models,
    delta: DeltaChoice,
    limits: CouncilLimits,
    prices: Arc<PriceTable>,
    /// The file of the recording that was asked for; it begins with the first engine, for nothing is to be left behind by a
    /// command that asks nobody.
    record: Option<PathBuf>,
    recording: OnceCell<Recording>,
}

/// The models that are named for a council; an empty name stands for the provider's own.
#[derive(Default, PartialEq)]
struct Models {
    triage: String,
    default: String,
    fallback: Vec<String>,
    hinted: Vec<String>,
}

impl CouncilFlags {
    /// The settings that the options stand for.
    fn settings(&self) -> Vec<(&'static str, String)> {
        let mut settings = Vec::new();
        let mut add = |key, value: Option<String>| settings.extend(value.map(|value| (key, value)));
        let list = |models: &[String]| Some(models.join(",")).filter(|_| !models.is_empty());
        add("council.provider", self.provider.clone());
        add("council.triage_model", self.triage_model.clone());
        add("council.default_model", self.model.clone());
        add("council.fallback_models", list(&self.fallback_models));
        add("council.hinted_models", list(&self.hinted_models));
        add("council.delta", self.delta.clone());
        add("council.calls", self.max_calls.map(|calls| calls.to_string()));
        add("llm.replay.cassette", self.cassette.as_ref().map(|path| path.display().to_string()));
        settings
    }
}

impl Assembly {
    /// Reads the configuration and makes sure that the provider can be made ready. Nothing is sent.
    pub(crate) fn choose(app: &App, flags: &CouncilFlags) -> Result<Self, CommandError> {
        let config = app.config(app.env.working_directory(), &flags.settings())?;
        let provider = provider(&config)?;
        if flags.cassette.is_some() && provider != "replay" {
            return Err(CommandError::usage(format!("--cassette is of no use to the provider {provider:?}"))
                .hint("A recording answers for the provider `replay`: --provider replay --cassette FILE."));
        }
        let (limits, delta) = (limits(&config)?, delta(&config)?);
        let prices = Arc::new(model::prices(&config)?);
        let context = model::context(app, &config, &shared_sandbox(app))?;
        let Selected { backend, fell_back, .. } = model::selected_with(app, &config, &context, provider)?;
        let models = match fell_back {
            None => Models::of(&config),
            Some(_) => Models::none_of(&config, app, &backend),
        };
        let record = flags.record.as_deref().map(|path| new_file(app.absolute(path))).transpose()?;
        Ok(Self { backend, models, delta, limits, prices, record, recording: OnceCell::new() })
    }

    /// An engine with a budget of its own.
    pub(crate) fn engine(&self, observability: Observability) -> Result<Crucible, CommandError> {
        Ok(Crucible::new(EngineConfig {
            triage_model: self.models.triage.clone(),
            default_model: self.models.default.clone(),
            fallback_models: self.models.fallback.clone(),
            hinted_models: self.models.hinted(),
            observability,
            delta_strategy: self.delta.clone(),
            limits: self.limits.clone(),
            prices: Arc::clone(&self.prices),
            recording: self.recording()?,
            ..EngineConfig::with_backend(self.backend.clone())
        })?)
    }

    /// The same, with somebody who is told of each call.
    pub(crate) fn watched(self, watch: Arc<dyn CallWatch>) -> Self {
        Self { backend: self.backend.watched(watch), ..self }
    }

    /// How much one question may take.
    pub(crate) fn limits(&self) -> &CouncilLimits {
        &self.limits
    }

    /// What is left of a question that was interrupted.
    pub(crate) fn kept(&self) -> String {
        match &self.record {
            Some(path) => {
                format!("Calls that were answered are in {}; of all else nothing was kept.", path.display())
            }
            None => "Nothing was kept: a council's question begins anew.".to_owned(),
        }
    }

    /// Where calls are written down.
    fn recording(&self) -> Result<Recording, CommandError> {
        if let Some(begun) = self.recording.get() {
            return Ok(begun.clone());
        }
        let Some(path) = &self.record else {
            return Ok(Recording::Off);
        };
        let speaker = self.backend.speaker();
        let (provider, model) = (speaker.provider.clone(), speaker.model.clone());
        let header = CassetteHeader::new(provider, model, self.backend.capabilities());
        let writer = CassetteWriter::open(path, &header, Reuse::Nothing).map_err(|error| match error {
            CassetteError::File(error) => CommandError::usage(format!("--record: {error}")),
            error => error.into(),
        })?;
        Ok(self.recording.get_or_init(|| Recording::To(Arc::new(writer))).clone())
    }
}

impl Models {
    fn of(config: &Config) -> Self {
        let text = |key: &str| config.text(key).unwrap_or_default().to_owned();
        let list = |key: &str| config.list(key).into_iter().filter(|model| !model.is_empty()).collect();
        Self {
            triage: text("council.triage_model"),
            default: text("council.default_model"),
            fallback: list("council.fallback_models"),
            hinted: list("council.hinted_models"),
        }
    }

    /// None of those that are configured: the name of a model means nothing to the provider that fell in for another.
    fn none_of(config: &Config, app: &App, backend: &Backend) -> Self {
        if Self::of(config) != Self::default() {
            app.output.remark(&format!(
                "note: the fallback is asked with its own model {}, not with those that [council] or the command line names",
                backend.default_model()
            ));
        }
        Self::default()
    }

    /// Which models the triage may name.
    fn hinted(&self) -> HintedModels {
        if self.hinted.iter().any(|model| model == ANY_MODEL) {
            return HintedModels::Any;
        }
        HintedModels::Only(self.hinted.clone())
    }
}

/// Who answers.
fn provider(config: &Config) -> Result<&str, CommandError> {
    config.text("council.provider").or_else(|| config.text("llm.provider")).ok_or_else(|| {
        CommandError::usage("no model is configured, and a council is made of models").hint(format!(
            "Say whom to ask: --provider NAME, or {} for every command; `crucible doctor` shows who can be asked.",
            variable_of("llm.provider")
        ))
    })
}

/// The limits of one question: calls of its own, tokens and money as everywhere.
fn limits(config: &Config) -> Result<CouncilLimits, CommandError> {
    let mut budget = model::limits(config)?;
    budget.calls = Limit::At(number(config, "council.calls")?);
    let size = |key: &str| number(config, key).map(|number| usize::try_from(number).unwrap_or(usize::MAX));
    Ok(CouncilLimits {
        budget,
        call_timeout: Duration::from_secs(number(config, "llm.timeout_s")?),
        query_bytes: size("council.max_query_bytes")?,
        context_bytes: size("council.max_context_bytes")?,
        answer_bytes: size("council.max_answer_bytes")?,
        summary_chars: size("council.summary_chars")?,
    })
}

/// A limit under which something can be done.
fn number(config: &Config, key: &str) -> Result<u64, CommandError> {
    match config.number(key) {
        0 => Err(CommandError::usage(format!("{key} is 0, and with that nothing can be asked"))
            .hint("It takes a whole number from 1.")),
        number => Ok(number),
    }
}

fn delta(config: &Config) -> Result<DeltaChoice, CommandError> {
    match config.text("council.delta").unwrap_or_default() {
        "judge" => Ok(DeltaChoice::Judge),
        "never" => Ok(DeltaChoice::Never),
        "similarity" => {
            let threshold = config.fraction("council.similarity").unwrap_or_default();
            if (0.0..=1.0).contains(&threshold) {
                return Ok(DeltaChoice::TextSimilarity { threshold });
            }
            Err(CommandError::usage(format!("council.similarity is {threshold}"))
                .hint("It takes a number from 0, nothing in common, to 1, the same words."))
        }
        other => Err(CommandError::usage(format!("council.delta is {other:?}"))
            .hint(format!("It takes one of these: {}.", DELTAS.join(", ")))),
    }
}

/// A file to begin a recording in: none, or an empty one.
fn new_file(path: PathBuf) -> Result<PathBuf, CommandError> {
    match path.symlink_metadata() {
        Ok(there) if !there.is_file() || there.len() > 0 => {
            Err(CommandError::usage(format!("--record: there is something at {} already", path.display()))
                .hint("Name a file that does not exist yet; a recording holds the calls of one command."))
        }
        Ok(_) | Err(_) => Ok(path),
    }
}
