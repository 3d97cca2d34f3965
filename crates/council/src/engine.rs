//! The public adapter: validates the input, runs the triage, checks the budget and starts the
//! executor.
//!
//! Invariants: nothing is sent for an unusable question or invalid settings. No state is kept between
//! runs. A run ends after its triage if the budget does not cover the worst case of the configured
//! council.

use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::thread;

use crucible_llm::Limit;
use crucible_model::{Untrusted, says_nothing, short_line};
use tokio::runtime::{Builder, Handle};

use crate::caller::{Caller, PHASE_OF_TRIAGE, PHASES};
use crate::config::{DeltaChoice, EngineConfig, HintedModels, MAX_FALLBACKS, PROVIDER};
use crate::context::TriageContext;
use crate::error::{CouncilError, CouncilFailure};
use crate::executor::{execute, worst_case};
use crate::result::ExecutorResult;
use crate::triage::triage;

/// The most characters of a setting in an error.
const MAX_SHOWN: usize = 60;

/// A council that answers questions. Runs are independent: no state is kept between them.
pub struct Crucible {
    config: EngineConfig,
}

impl Crucible {
    /// Creates an engine with this configuration. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`CouncilError::Setting`] if a setting is invalid.
    pub fn new(config: EngineConfig) -> Result<Self, CouncilError> {
        check_numbers(&config)?;
        check_models(&config)?;
        check_fallbacks(&config)?;
        let hinted_models = match config.hinted_models {
            HintedModels::Any => HintedModels::Any,
            HintedModels::Only(models) => HintedModels::Only(named_once(&models)),
        };
        Ok(Self {
            config: EngineConfig {
                hinted_models,
                ..config
            },
        })
    }

    /// Answers a question through the council. Dropping the future ends every call in flight. It needs a tokio runtime with
    /// time and I/O enabled.
    ///
    /// # Errors
    ///
    /// See [`CouncilError`]; the failure also holds the usage of the calls that were made.
    pub async fn run(
        &self,
        query: &str,
        context: &TriageContext,
    ) -> Result<ExecutorResult, CouncilFailure> {
        let text = context.triage_json();
        self.check_input(query, text.as_deref())?;
        let caller = Caller::new(&self.config);
        caller.refuse_secrets(query, context)?;
        let result = deliberate(&caller, &Untrusted::new(query), text.map(Untrusted::new)).await;
        result.map_err(|error| CouncilFailure {
            error: Box::new(error),
            usage: caller.usage(),
            degradations: caller.degradations(),
        })
    }

    /// Answers a question and blocks until there is a result; it may be called inside or outside of an event loop.
    ///
    /// Inside an event loop it blocks the calling thread.
    ///
    /// # Errors
    ///
    /// As [`Crucible::run`], and [`CouncilError::Runtime`].
    pub fn run_blocking(
        &self,
        query: &str,
        context: &TriageContext,
    ) -> Result<ExecutorResult, CouncilFailure> {
        let blocking = || {
            let event_loop = Builder::new_current_thread().enable_all().build();
            event_loop
                .map_err(CouncilError::Runtime)?
                .block_on(self.run(query, context))
        };
        if Handle::try_current().is_err() {
            return blocking();
        }
        // An event loop can neither be started nor dropped inside another one.
        thread::scope(|scope| {
            let started = thread::Builder::new().spawn_scoped(scope, blocking);
            let ended = started.map_err(CouncilError::Runtime)?.join();
            ended.unwrap_or_else(|panic| resume_unwind(panic))
        })
    }

    fn check_input(&self, query: &str, context: Option<&str>) -> Result<(), CouncilError> {
        let limits = &self.config.limits;
        if says_nothing(query) {
            return Err(CouncilError::EmptyQuery);
        }
        if query.len() > limits.query_bytes {
            return Err(CouncilError::QueryTooLong {
                bytes: query.len(),
                limit: limits.query_bytes,
            });
        }
        let bytes = context.unwrap_or_default().len();
        if bytes > limits.context_bytes {
            return Err(CouncilError::ContextTooLong {
                bytes,
                limit: limits.context_bytes,
            });
        }
        Ok(())
    }
}

/// The run, after the checks that precede any call.
async fn deliberate(
    caller: &Caller<'_>,
    query: &Untrusted,
    context: Option<Untrusted>,
) -> Result<ExecutorResult, CouncilError> {
    let triage = triage(caller, query, context.as_ref()).await?;
    caller.check_budget(worst_case(&triage, &caller.config().delta_strategy))?;
    execute(caller, query, triage).await
}

/// Checks that the numeric settings allow a run.
fn check_numbers(config: &EngineConfig) -> Result<(), CouncilError> {
    let limits = &config.limits;
    if let DeltaChoice::TextSimilarity { threshold } = config.delta_strategy
        && !(0.0..=1.0).contains(&threshold)
    {
        let setting = "the similarity threshold of the delta strategy";
        return Err(unfit(
            setting,
            &threshold.to_string(),
            "choose a number from 0 to 1",
        ));
    }
    if limits.call_timeout.is_zero() {
        return Err(unfit("limits.call_timeout", "0", "set a time above zero"));
    }
    let amounts = [
        ("limits.query_bytes", limits.query_bytes),
        ("limits.answer_bytes", limits.answer_bytes),
        ("limits.summary_chars", limits.summary_chars),
    ];
    if let Some((setting, _)) = amounts.into_iter().find(|(_, amount)| *amount == 0) {
        return Err(unfit(setting, "0", "choose at least 1"));
    }
    let budget = [
        ("limits.budget.calls", limits.budget.calls),
        ("limits.budget.tokens", limits.budget.tokens),
    ];
    match budget.into_iter().find(|(_, limit)| *limit == Limit::At(0)) {
        Some((setting, _)) => Err(unfit(setting, "0", "choose at least 1, or no limit")),
        None => Ok(()),
    }
}

/// Checks that no configured model name is blank.
fn check_models(config: &EngineConfig) -> Result<(), CouncilError> {
    let chosen = [
        ("triage_model", &config.triage_model),
        ("default_model", &config.default_model),
    ];
    let mut chosen = chosen.into_iter().filter(|(_, model)| !model.is_empty());
    let fallbacks = config
        .fallback_models
        .iter()
        .map(|model| ("fallback_models", model));
    let hinted = match &config.hinted_models {
        HintedModels::Any => [].iter(),
        HintedModels::Only(models) => models.iter(),
    };
    let mut listed = fallbacks.chain(hinted.map(|model| ("hinted_models", model)));
    let blank = |(_, model): &(&str, &String)| model.trim().is_empty();
    match chosen.find(blank).or_else(|| listed.find(blank)) {
        Some((setting, model)) => Err(unfit(
            setting,
            &format!("{model:?}"),
            "name a model, or leave it out",
        )),
        None => Ok(()),
    }
}

/// Checks that no call has more fallback models than the provider accepts. The model of a call is not its
/// own fallback.
fn check_fallbacks(config: &EngineConfig) -> Result<(), CouncilError> {
    let fallbacks = &config.fallback_models;
    if config.backend.provider() != PROVIDER || fallbacks.len() <= MAX_FALLBACKS {
        return Ok(());
    }
    let most = asked_models(config)
        .into_iter()
        .map(|model_asked| {
            fallbacks
                .iter()
                .filter(|model| *model != model_asked)
                .count()
        })
        .max()
        .unwrap_or_default();
    if most <= MAX_FALLBACKS {
        return Ok(());
    }
    let value = format!("a list of {most} besides the requested model");
    Err(unfit(
        "fallback_models",
        &value,
        "OpenRouter accepts at most three; name fewer",
    ))
}

/// The models that calls may use. An empty name stands for a model that is unknown before the triage.
fn asked_models(config: &EngineConfig) -> Vec<&str> {
    let EngineConfig {
        backend,
        triage_model,
        default_model,
        ..
    } = config;
    let of_phase = |phase: &str| {
        backend
            .phase_models()
            .get(phase)
            .map_or(backend.default_model(), String::as_str)
    };
    let mut used_models: Vec<&str> = PHASES
        .into_iter()
        .map(|phase| match phase {
            PHASE_OF_TRIAGE if !triage_model.is_empty() => triage_model,
            _ if !default_model.is_empty() => default_model,
            phase => of_phase(phase),
        })
        .collect();
    match &config.hinted_models {
        HintedModels::Any => used_models.push(""),
        HintedModels::Only(models) => used_models.extend(models.iter().map(|model| model.trim())),
    }
    used_models
}

/// The trimmed names of models, without duplicates.
fn named_once(models: &[String]) -> Vec<String> {
    let mut known = BTreeSet::new();
    let names = models.iter().map(|model| model.trim());
    names
        .filter(|model| known.insert(*model))
        .map(str::to_owned)
        .collect()
}

fn unfit(setting: &'static str, value: &str, next: &'static str) -> CouncilError {
    CouncilError::Setting {
        setting,
        value: short_line(value, MAX_SHOWN),
        next,
    }
}
