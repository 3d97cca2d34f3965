//! Solves a task as `crucible run start` and `crucible run land` would, in a home of its own.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use async_trait::async_trait;
use clap::{Args, FromArgMatches};
use crucible_eval::configured::{GovernedSolver, TrialSetup};
use crucible_eval::{Ending, Job, Solved, Spent};
use crucible_host::clock::clock_from;
use crucible_ledger::{CallState, EventRecord, Ledger};
use crucible_llm::{Backend, CallError, CallPool, LlmError};
use crucible_model::{Failure, RunId};
use crucible_run::configured::parameters;
use crucible_run::{RunDir, RunError, RunObserver, RunOptions, RunState, land, status};
use crucible_settings::Settings;
use serde_json::Value;

use crate::app::App;
use crate::run_start::{Options, begin};

/// Solves tasks by runs.
pub(super) struct RunSolver<'a> {
    pub(super) app: &'a App,
}

#[async_trait(?Send)]
impl GovernedSolver for RunSolver<'_> {
    async fn solve(&self, setup: TrialSetup<'_>, job: &Job<'_>) -> Result<Solved, Failure> {
        Box::pin(self.governed(setup, job)).await
    }

    fn parameters(
        &self,
        settings: &Settings,
        provider: &str,
        backend: &Backend,
    ) -> BTreeMap<String, Value> {
        parameters(settings, provider, backend)
    }
}

impl RunSolver<'_> {
    async fn governed(&self, mut setup: TrialSetup<'_>, job: &Job<'_>) -> Result<Solved, Failure> {
        let over = std::mem::take(&mut setup.over);
        let clock = clock_from(&setup.env)?;
        let app = App::new(setup.env.clone(), clock, self.app.output.quiet(), over);
        let options = options(&setup, job)?;
        let seed = setup.seed_base;
        let adjust = |options: &mut RunOptions| {
            if let Some(seed) = seed {
                options
                    .settings
                    .parameters
                    .insert("seed".to_owned(), seed.into());
            }
        };
        let (config, sandbox, started) = begin(&app, &options, adjust, &mut Unwatched).await?;
        let world = app.world(&sandbox, &config)?;
        let pool = Some(Arc::clone(setup.pool));
        let (dir, mut ledger, advanced) = started
            .advance(&world, &app.ledger_path()?, pool, &mut Unwatched)
            .await?;
        let landed = match advanced {
            Ok(RunState::Verified) => land(&world, &dir, None, &mut ledger, &mut Unwatched)
                .await
                .map(Some),
            Ok(_) => Ok(None),
            Err(error) => Err(error),
        };
        let run = status(&dir, &ledger)?.run.run_id;
        let spent = spent(&ledger, &run)?;
        let (ending, reason) = match landed {
            Ok(Some(landing)) => (
                Ending::Landed(landing.commit),
                "the check passes".to_owned(),
            ),
            Ok(None) => (without_commit(spent), why(&dir, &ledger)?),
            Err(error) => (stopped(&error, spent, setup.pool), error.to_string()),
        };
        Ok(Solved {
            ending,
            reason,
            run: Some(run.to_string()),
            spent,
        })
    }
}

/// What an error of a run says of its configuration.
fn stopped(error: &RunError, spent: Spent, pool: &CallPool) -> Ending {
    match error {
        RunError::Call(CallError::Llm(LlmError::BudgetExceeded { .. })) if pool.has_refused() => {
            Ending::Unfinished
        }
        RunError::Call(CallError::Llm(
            LlmError::BudgetExceeded { .. } | LlmError::Timeout { .. },
        )) => without_commit(spent),
        RunError::Call(CallError::Llm(_) | CallError::Record(_)) => Ending::Unfinished,
        _ => without_commit(spent),
    }
}

/// What a run of a task is started with, read as the command line of `run start` is.
fn options(setup: &TrialSetup<'_>, job: &Job<'_>) -> Result<Options, Failure> {
    let mut words: Vec<OsString> =
        vec!["start".into(), "--repo".into(), job.workspace.top().into()];
    words.extend(["--provider".into(), setup.provider.into()]);
    if let Some(model) = setup.model {
        words.extend(["--model".into(), model.into()]);
    }
    words.extend(["--".into(), (&job.task.goal).into()]);
    let command = Options::augment_args(clap::Command::new("start"));
    let matches = command.try_get_matches_from(words);
    let options = matches.and_then(|matches| Options::from_arg_matches(&matches));
    options.map_err(|error| Failure::usage(error.to_string()))
}

fn without_commit(spent: Spent) -> Ending {
    if spent.calls == 0 {
        Ending::Declined
    } else {
        Ending::Nothing
    }
}

/// Why a run ended without a verified change.
fn why(dir: &RunDir, ledger: &Ledger) -> Result<String, Failure> {
    let status = status(dir, ledger)?;
    Ok(status.failure.map_or(status.next, |failure| {
        format!("{}: {}", failure.code, failure.hint)
    }))
}

/// What the calls of a run took. The cost is known where that of each answer is.
fn spent(ledger: &Ledger, run: &RunId) -> Result<Spent, Failure> {
    let mut spent = Spent::NOTHING;
    for call in ledger.calls(run)? {
        let mut one = Spent {
            calls: 1,
            micro_dollars: None,
            ..Spent::NOTHING
        };
        if let CallState::Settled(end) = call.state {
            one.tokens_input = end.tokens_in.unwrap_or_default();
            one.tokens_output = end.tokens_out.unwrap_or_default();
            one.micro_dollars = end
                .cost
                .map(|cost| cost.0)
                .or((end.outcome != "ok").then_some(0));
        }
        spent = spent.and(one);
    }
    Ok(spent)
}

/// Hears nothing: the run's own directory tells everything.
struct Unwatched;

impl RunObserver for Unwatched {
    fn working(&mut self, _: &str, _: &str) {}

    fn note(&mut self, _: &str) {}

    fn event(&mut self, _: &EventRecord) {}
}
