//! Solves a task as `crucible run start` and `crucible run land` would, in a home of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use crucible_eval::configured::{GovernedSolver, TrialSetup};
use crucible_eval::{Ending, Job, Solved, Spent};
use crucible_host::clock::clock_from;
use crucible_llm::{Backend, CallError, CallPool, LlmError};
use crucible_model::Failure;
use crucible_run::configured::{UnattendedEnd, parameters};
use crucible_run::{NoopObserver, RunError, RunOptions};
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
        let options = Options {
            held_out: Vec::new(),
            repo: job.workspace.top().to_owned(),
            provider: Some(setup.provider.to_owned()),
            model: setup.model.map(str::to_owned),
            ..Options::default()
        };
        let adjust = |options: &mut RunOptions| {
            let seed = setup.seed_base.map(|seed| ("seed".to_owned(), seed.into()));
            options.settings.parameters.extend(seed);
        };
        let (config, sandbox, started) =
            begin(&app, &job.task.goal, &options, adjust, &mut NoopObserver).await?;
        let world = app.world(&sandbox, &config)?;
        let pool = Arc::clone(setup.pool);
        let run = started
            .finish_unattended(&world, &app.ledger_path()?, pool)
            .await?;
        let spent = Spent {
            calls: run.spent.calls,
            tokens_input: run.spent.tokens_input,
            tokens_output: run.spent.tokens_output,
            micro_dollars: run.spent.micro_dollars,
        };
        let (ending, reason) = match run.end {
            UnattendedEnd::Landed(commit) => {
                (Ending::Landed(commit), "the check passes".to_owned())
            }
            UnattendedEnd::Ended(why) => (without_commit(spent), why),
            UnattendedEnd::Failed(error) => (stopped(&error, spent, setup.pool), error.to_string()),
        };
        Ok(Solved {
            ending,
            reason,
            run: Some(run.id.to_string()),
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

fn without_commit(spent: Spent) -> Ending {
    if spent.calls == 0 {
        Ending::Declined
    } else {
        Ending::Nothing
    }
}
