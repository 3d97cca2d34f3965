//! Solves a task as `crucible run start` and `crucible run land` would, in a home of its own; or asks the model directly.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use clap::{Args, FromArgMatches};
use crucible_eval::{
    DirectRequest, Ending, Job, Machine, Solved, Solver, Spent, Task, TrialMode, ask_directly,
};
use crucible_host::env::Environment;
use crucible_host::fs::{create_dir_all, write_atomic};
use crucible_ledger::{CallState, EventRecord, Ledger};
use crucible_llm::{CallError, CallPool, ClientOptions, LlmError, ModelClient, configured};
use crucible_model::ExitStatus;
use crucible_run::configured::parameters;
use crucible_run::{RunDir, RunError, RunObserver, RunState, land, status};
use crucible_sandbox::Runtime;

use crate::app::App;
use crate::arguments::provider_settings;
use crate::error::CommandError;
use crate::run_start::{Options, begin};

/// Calls of nobody cost nothing.
const NOTHING: Spent = Spent {
    calls: 0,
    tokens_input: 0,
    tokens_output: 0,
    micro_dollars: Some(0),
};

/// What it takes to run a configuration.
pub(super) struct Variant {
    /// Its files of settings.
    pub(super) over: Vec<PathBuf>,
    /// Who is asked.
    pub(super) provider: String,
    /// The model that the command line names.
    pub(super) model: Option<String>,
    /// How it is asked.
    pub(super) mode: TrialMode,
    /// The most a run may cost, in millionths of a dollar, where its settings set no limit and the evaluation has one.
    pub(super) dollars: Option<u64>,
}

/// Solves tasks by runs.
pub(super) struct RunSolver<'a> {
    pub(super) app: &'a App,
    pub(super) variants: Vec<Variant>,
    pub(super) machine: &'a Machine<'a>,
    pub(super) pool: Arc<CallPool>,
}

#[async_trait(?Send)]
impl Solver for RunSolver<'_> {
    async fn solve(&self, job: &Job<'_>) -> Solved {
        let solved = match self.variants.get(job.configuration) {
            None => Err(CommandError::usage("unknown configuration")),
            Some(variant) => match variant.mode {
                TrialMode::Governed => Box::pin(self.governed(variant, job)).await,
                TrialMode::Direct => Box::pin(self.direct(variant, job)).await,
            },
        };
        solved.unwrap_or_else(|error| {
            // Before a run there is nothing that was spent; a provider that cannot be asked says nothing of the task.
            let unfinished = matches!(error.status, ExitStatus::Provider | ExitStatus::Interrupted);
            let ending = if unfinished {
                Ending::Unfinished
            } else {
                Ending::Declined
            };
            Solved {
                ending,
                reason: error.message,
                run: None,
                spent: NOTHING,
            }
        })
    }

    fn is_exhausted(&self) -> bool {
        self.pool.has_refused()
    }
}

impl RunSolver<'_> {
    async fn governed(&self, variant: &Variant, job: &Job<'_>) -> Result<Solved, CommandError> {
        let app = self.trial_app(variant, job)?;
        let options = options(variant, job)?;
        let seed = job.seed.map(first_seed);
        let adjust = |options: &mut crucible_run::RunOptions| {
            if let Some(seed) = seed {
                options
                    .settings
                    .parameters
                    .insert("seed".to_owned(), seed.into());
            }
        };
        let (config, sandbox, started) = begin(&app, &options, adjust, &mut Unwatched).await?;
        let world = app.world(&sandbox, &config)?;
        let pool = Some(Arc::clone(&self.pool));
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
            Err(error) => (self.stopped(&error, spent), error.to_string()),
        };
        Ok(Solved {
            ending,
            reason,
            run: Some(run.to_string()),
            spent,
        })
    }

    /// What an error of a run says of its configuration.
    fn stopped(&self, error: &RunError, spent: Spent) -> Ending {
        match error {
            RunError::Call(CallError::Llm(LlmError::BudgetExceeded { .. }))
                if self.pool.has_refused() =>
            {
                Ending::Unfinished
            }
            RunError::Call(CallError::Llm(
                LlmError::BudgetExceeded { .. } | LlmError::Timeout { .. },
            )) => without_commit(spent),
            RunError::Call(CallError::Llm(_) | CallError::Record(_)) => Ending::Unfinished,
            _ => without_commit(spent),
        }
    }

    async fn direct(&self, variant: &Variant, job: &Job<'_>) -> Result<Solved, CommandError> {
        let app = self.trial_app(variant, job)?;
        let flags = provider_settings(&Some(variant.provider.clone()), &None);
        let config = app.config(Path::new("/"), &flags)?;
        let runtime = Runtime {
            sandbox: Arc::clone(&self.machine.sandbox),
            ..app.runtime()
        };
        let selected = configured::selected(&runtime, &config, &variant.provider)?;
        let (backend, name) = (selected.backend, selected.candidate.name);
        let model = variant
            .model
            .clone()
            .unwrap_or_else(|| backend.default_model().to_owned());
        let mut parameters = parameters(&config, &name, &backend);
        parameters.extend(
            job.seed
                .map(|seed| ("seed".to_owned(), (first_seed(seed) + 1).into())),
        );
        let options = ClientOptions {
            prices: Arc::new(configured::prices(&config)?),
            ..ClientOptions::new(self.pool.budget())
        };
        let client = ModelClient::new(backend, options);
        let timeout = Duration::from_secs(config.llm.timeout_s.max(1));
        let request = DirectRequest {
            client: &client,
            model,
            parameters,
            timeout,
        };
        Ok(ask_directly(self.machine, request, job).await?)
    }

    /// The program as the trial sees it: a home of its own, and the settings of its configuration and its task.
    fn trial_app(&self, variant: &Variant, job: &Job<'_>) -> Result<App, CommandError> {
        let home = job.place.join("home");
        create_dir_all(&home)?;
        let settings = job.place.join("settings.toml");
        write_atomic(
            &settings,
            task_settings(job.task, variant.dollars)?.as_bytes(),
        )?;
        let own: [(OsString, OsString); 1] = [("CRUCIBLE_HOME".into(), home.into())];
        let kept = |(name, value): (&std::ffi::OsStr, &std::ffi::OsStr)| {
            let replaced = name == "CRUCIBLE_HOME" || name == "CRUCIBLE_RUNS_ROOT";
            (!replaced).then(|| (name.to_owned(), value.to_owned()))
        };
        let pairs = self.app.env.pairs().filter_map(kept).chain(own);
        let env = Environment::from_pairs(pairs, job.workspace.top());
        let over = variant.over.iter().cloned().chain([settings]).collect();
        self.app.in_environment(env, over)
    }
}

impl App {
    /// The same program with further files of settings, which says nothing on its own.
    pub(super) fn with_settings(&self, over: Vec<PathBuf>) -> Result<Self, CommandError> {
        self.in_environment(self.env.clone(), over)
    }

    fn in_environment(&self, env: Environment, over: Vec<PathBuf>) -> Result<Self, CommandError> {
        let clock = crucible_host::clock::clock_from(&env)?;
        Ok(Self::new(env, clock, self.output.quiet(), over))
    }
}

/// What a run of a task is started with, read as the command line of `run start` is.
fn options(variant: &Variant, job: &Job<'_>) -> Result<Options, CommandError> {
    let mut words: Vec<OsString> =
        vec!["start".into(), "--repo".into(), job.workspace.top().into()];
    words.extend(["--provider".into(), (&variant.provider).into()]);
    if let Some(model) = &variant.model {
        words.extend(["--model".into(), model.into()]);
    }
    words.extend(["--".into(), (&job.task.goal).into()]);
    let command = Options::augment_args(clap::Command::new("start"));
    let matches = command.try_get_matches_from(words);
    let options = matches.and_then(|matches| Options::from_arg_matches(&matches));
    options.map_err(|error| CommandError::usage(error.to_string()))
}

/// The settings that a task brings: its gates; and the limit of its cost.
fn task_settings(task: &Task, dollars: Option<u64>) -> Result<String, CommandError> {
    let mut text = String::new();
    for (name, words) in &task.gates {
        let command = serde_json::to_string(words)
            .map_err(|error| CommandError::usage(format!("gate {name}: {error}")))?;
        // A list of texts in JSON is one in TOML.
        text.push_str(&format!("[gates.{name}]\ncommand = {command}\n"));
    }
    if let Some(dollars) = dollars {
        text.push_str(&format!(
            "[llm.budget]\ndollars = {}.{:06}\n",
            dollars / 1_000_000,
            dollars % 1_000_000
        ));
    }
    Ok(text)
}

/// What the seeds of a sample's attempts are counted from: no attempt of another sample has the same.
fn first_seed(seed: u64) -> u64 {
    seed.saturating_mul(1000).min(u64::from(u32::MAX))
}

fn without_commit(spent: Spent) -> Ending {
    if spent.calls == 0 {
        Ending::Declined
    } else {
        Ending::Nothing
    }
}

/// Why a run ended without a verified change.
fn why(dir: &RunDir, ledger: &Ledger) -> Result<String, CommandError> {
    let status = status(dir, ledger)?;
    Ok(status.failure.map_or(status.next, |failure| {
        format!("{}: {}", failure.code, failure.hint)
    }))
}

/// What the calls of a run took. The cost is known where that of each answer is.
fn spent(ledger: &Ledger, run: &crucible_model::RunId) -> Result<Spent, CommandError> {
    let mut spent = NOTHING;
    for call in ledger.calls(run)? {
        let mut one = Spent {
            calls: 1,
            micro_dollars: None,
            ..NOTHING
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
