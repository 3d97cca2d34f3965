//! The public adapter (seed 001 §3.1): looks at what it is given, asks the triage, checks the budget, and lets the executor work.
//!
//! What holds: a run without a usable question, or with settings that cannot work, sends nothing; nothing is kept from one run to
//! the next; a run ends after its triage where its budget cannot carry the worst case of what the triage asks for.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::thread;

use crucible_llm::Limit;
use crucible_model::{Untrusted, is_hidden, short_line, to_canonical_json};
use serde_json::Value;
use tokio::runtime::{Builder, Handle};

use crate::caller::Caller;
use crate::config::{DeltaChoice, EngineConfig, HintedModels};
use crate::error::CouncilError;
use crate::executor::{execute, worst_case};
use crate::result::ExecutorResult;
use crate::triage::triage;

/// The most of a setting that an error shows.
const MOST_SHOWN: usize = 60;

/// A council that answers questions. Each run is independent: nothing is kept from one to the next.
pub struct Crucible {
    config: EngineConfig,
}

/// What a caller wants the triage, and nobody else, to know about a question.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TriageContext(BTreeMap<String, Value>);

impl TriageContext {
    /// Nothing.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    pub(crate) fn entries(&self) -> &BTreeMap<String, Value> {
        &self.0
    }
}

impl<K: Into<String>, V: Into<Value>> FromIterator<(K, V)> for TriageContext {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        Self(entries.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
    }
}

impl Crucible {
    /// An engine of this configuration. Nothing is sent.
    ///
    /// # Errors
    ///
    /// [`CouncilError::Setting`] where a setting cannot work.
    pub fn new(config: EngineConfig) -> Result<Self, CouncilError> {
        check_numbers(&config)?;
        check_models(&config)?;
        Ok(Self { config })
    }

    /// Answers a question through the council. Dropping the future ends every call in flight.
    ///
    /// # Errors
    ///
    /// See [`CouncilError`].
    pub async fn run(&self, query: &str, context: &TriageContext) -> Result<ExecutorResult, CouncilError> {
        self.check_input(query, context)?;
        let query = Untrusted::new(query);
        let caller = Caller::new(&self.config);
        let triage = triage(&caller, &query, context).await?;
        caller.check_budget(worst_case(&triage, &self.config.delta_strategy))?;
        execute(&caller, &query, triage).await
    }

    /// The same, blocking until there is a result; may be called inside of an event loop or outside of any.
    ///
    /// Inside of an event loop it blocks the thread that calls it, as other blocking work does.
    ///
    /// # Errors
    ///
    /// As [`Crucible::run`], and [`CouncilError::Runtime`].
    pub fn run_blocking(&self, query: &str, context: &TriageContext) -> Result<ExecutorResult, CouncilError> {
        let blocking = || {
            let event_loop = Builder::new_current_thread().enable_all().build();
            event_loop.map_err(CouncilError::Runtime)?.block_on(self.run(query, context))
        };
        if Handle::try_current().is_err() {
            return blocking();
        }
        // An event loop may neither be started nor ended inside of another one.
        thread::scope(|scope| {
            let started = thread::Builder::new().spawn_scoped(scope, blocking);
            let ended = started.map_err(CouncilError::Runtime)?.join();
            ended.unwrap_or_else(|panic| resume_unwind(panic))
        })
    }

    fn check_input(&self, query: &str, context: &TriageContext) -> Result<(), CouncilError> {
        let limits = &self.config.limits;
        if query.chars().all(|c| c.is_whitespace() || is_hidden(c)) {
            return Err(CouncilError::EmptyQuery);
        }
        if query.len() > limits.query_bytes {
            return Err(CouncilError::QueryTooLong { bytes: query.len(), limit: limits.query_bytes });
        }
        let bytes = context.bytes()?;
        if bytes > limits.context_bytes {
            return Err(CouncilError::ContextTooLong { bytes, limit: limits.context_bytes });
        }
        Ok(())
    }
}

impl TriageContext {
    /// How long it is as JSON. Nothing has no length: it is not shown at all.
    fn bytes(&self) -> Result<usize, CouncilError> {
        if self.0.is_empty() {
            return Ok(0);
        }
        let unusable = |error: crucible_model::CanonicalError| {
            unfit("context", &error.to_string(), "pass values that JSON can express")
        };
        Ok(to_canonical_json(&self.0).map_err(unusable)?.len())
    }
}

/// Numbers that leave room for a run.
fn check_numbers(config: &EngineConfig) -> Result<(), CouncilError> {
    let limits = &config.limits;
    if let DeltaChoice::TextSimilarity { threshold } = config.delta_strategy
        && !(0.0..=1.0).contains(&threshold)
    {
        let setting = "the similarity threshold of the delta strategy";
        return Err(unfit(setting, &threshold.to_string(), "choose a number from 0 to 1"));
    }
    if limits.call_timeout.is_zero() {
        return Err(unfit("limits.call_timeout", "0", "give each call some time"));
    }
    let amounts = [
        ("limits.query_bytes", limits.query_bytes),
        ("limits.answer_bytes", limits.answer_bytes),
        ("limits.summary_chars", limits.summary_chars),
    ];
    if let Some((setting, _)) = amounts.into_iter().find(|(_, amount)| *amount == 0) {
        return Err(unfit(setting, "0", "choose at least 1"));
    }
    let budget =
        [("limits.budget.calls", limits.budget.calls), ("limits.budget.tokens", limits.budget.tokens)];
    match budget.into_iter().find(|(_, limit)| *limit == Limit::At(0)) {
        Some((setting, _)) => Err(unfit(setting, "0", "choose at least 1, or no limit")),
        None => Ok(()),
    }
}

/// Names of models that name one.
fn check_models(config: &EngineConfig) -> Result<(), CouncilError> {
    let chosen = [("triage_model", &config.triage_model), ("default_model", &config.default_model)];
    let mut chosen = chosen.into_iter().filter(|(_, model)| !model.is_empty());
    let fallbacks = config.fallback_models.iter().map(|model| ("fallback_models", model));
    let hinted = match &config.hinted_models {
        HintedModels::Any => [].iter(),
        HintedModels::Only(models) => models.iter(),
    };
    let mut listed = fallbacks.chain(hinted.map(|model| ("hinted_models", model)));
    let blank = |(_, model): &(&str, &String)| model.trim().is_empty();
    match chosen.find(blank).or_else(|| listed.find(blank)) {
        Some((setting, model)) => Err(unfit(setting, &format!("{model:?}"), "name a model, or leave it out")),
        None => Ok(()),
    }
}

fn unfit(setting: &'static str, value: &str, next: &'static str) -> CouncilError {
    CouncilError::Setting { setting, value: short_line(value, MOST_SHOWN), next }
}
