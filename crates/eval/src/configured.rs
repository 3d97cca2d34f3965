//! Builds an evaluation from the settings and arguments.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use crucible_host::env::Environment;
use crucible_host::fs::{create_dir_all, write_atomic};
use crucible_host::lock::Lock;
use crucible_llm::configured::{self, positive, strength};
use crucible_llm::{
    Amount, Backend, BudgetLimits, CallPool, ClientOptions, Limit, ModelClient, micro_dollars,
};
use crucible_model::{Digest, ExitStatus, Failure, to_canonical_json};
use crucible_sandbox::{Notices, Runtime};
use crucible_settings::{ConfigFiles, Settings};
use serde_json::Value;

use crate::direct::{DirectRequest, ask_directly};
use crate::engine::{
    Configuration, Ending, EvalPlan, Job, Observer, Solved, Solver, TrialMode, evaluate,
    spent_before,
};
use crate::outcome::Spent;
use crate::place::Machine;
use crate::report::{EvalReportInput, Report};
use crate::task::{Task, read_tasks};

/// The name of a configuration without a name.
const DEFAULT: &str = "default";
/// The name of the baseline.
const DIRECT: &str = "direct";

/// The arguments of an evaluation. All paths are absolute.
pub struct EvalArguments<'a> {
    /// The configurations to measure: a name and a settings file each.
    pub configs: Vec<(String, Option<PathBuf>)>,
    /// The settings that the command line overrides.
    pub flags: Vec<(&'static str, String)>,
    /// The model of all configurations; `None` is the default of each.
    pub model: Option<&'a str>,
    /// Whether to measure the baseline too.
    pub is_direct: bool,
    /// The seed of the first sample.
    pub seed: Option<u32>,
    /// The samples per task and configuration.
    pub samples: u64,
    /// The trials that run in parallel.
    pub jobs: usize,
    /// Whether to continue an evaluation.
    pub resumes: bool,
    /// The call limit of the whole evaluation.
    pub max_calls: Option<u64>,
    /// The cost limit of the whole evaluation, in US dollars.
    pub max_dollars: Option<f64>,
}

/// The tasks of a directory.
pub struct TaskDirectory {
    /// The canonical path.
    pub path: PathBuf,
    /// All tasks, or the named ones.
    pub tasks: Vec<Task>,
}

/// A prepared evaluation. Its own directory is locked.
pub struct Evaluation<'a> {
    machine: Machine<'a>,
    plan: EvalPlan,
    variants: Vec<Variant>,
    pool: Arc<CallPool>,
    runtime: &'a Runtime<'a>,
    _lock: Lock,
}

/// A configuration, ready to run.
struct Variant {
    /// The settings files.
    over: Vec<PathBuf>,
    provider: String,
    /// The model that the command line names.
    model: Option<String>,
    mode: TrialMode,
    /// The cost limit of a run in millionths of a dollar, if only the evaluation sets one.
    dollars: Option<u64>,
}

/// The inputs of one trial.
pub struct TrialSetup<'a> {
    /// The environment, with its own Crucible home.
    pub env: Environment,
    /// The settings files of the configuration and the task.
    pub over: Vec<PathBuf>,
    /// The provider of the measured configuration.
    pub provider: &'a str,
    /// The model that the command line names.
    pub model: Option<&'a str>,
    /// The number before the first seed of the trial.
    pub seed_base: Option<u64>,
    /// The budget that all trials share.
    pub pool: &'a Arc<CallPool>,
}

/// Solves tasks by governed runs.
#[async_trait(?Send)]
pub trait GovernedSolver {
    /// Solves a task as `run start` and `run land` would.
    async fn solve(&self, setup: TrialSetup<'_>, job: &Job<'_>) -> Result<Solved, Failure>;

    /// Returns the parameters of a model call.
    fn parameters(
        &self,
        settings: &Settings,
        provider: &str,
        backend: &Backend,
    ) -> BTreeMap<String, Value>;
}

/// Discards notices, because those of parallel trials would mix.
struct Quiet;

impl Notices for Quiet {
    fn notice(&self, _: &str) {}
}

impl TaskDirectory {
    /// Reads the tasks of a directory, or those that are named. Repositories outside of the tasks are below `repos`.
    ///
    /// # Errors
    ///
    /// Fails if a directory does not exist, or if a task cannot be read.
    pub fn read(directory: &Path, named: &[String], repos: Option<&Path>) -> Result<Self, Failure> {
        let path = canonical(directory)?;
        let repos = repos.map(canonical).transpose()?;
        let tasks = read_tasks(&path, named, repos.as_deref())?;
        Ok(Self { path, tasks })
    }

    /// Returns the evaluation's own directory: `named`, else one in Crucible's own directory `home`. Neither directory may contain the
    /// other, because what a run writes must not become a task.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be used.
    pub fn out(
        &self,
        named: Option<PathBuf>,
        home: impl FnOnce() -> Result<PathBuf, Failure>,
    ) -> Result<PathBuf, Failure> {
        let name = self
            .path
            .file_name()
            .map_or_else(|| "tasks".into(), OsStr::to_string_lossy);
        let out = match named {
            Some(out) => out,
            None => home()?.join("evals").join(name.as_ref()),
        };
        let existing = out
            .ancestors()
            .find_map(|part| Some((part, part.canonicalize().ok()?)));
        let real = existing.map_or_else(
            || out.clone(),
            |(part, real)| real.join(out.strip_prefix(part).unwrap_or(Path::new(""))),
        );
        if real.starts_with(&self.path) || self.path.starts_with(&real) {
            let message = format!(
                "{} and the task directory contain each other",
                out.display()
            );
            return Err(Failure::usage(message).hint("Name a separate directory with --out."));
        }
        if real.to_str().is_none() {
            let message = format!("the path is not UTF-8: {}", out.display());
            return Err(Failure::usage(message).hint("Name another directory with --out."));
        }
        Ok(real)
    }
}

impl EvalArguments<'_> {
    /// Returns the limits of the whole evaluation.
    ///
    /// # Errors
    ///
    /// Fails if the dollars are not above zero.
    pub fn limits(&self) -> Result<BudgetLimits, Failure> {
        let micro_dollars = match self.max_dollars {
            None => Limit::Unlimited,
            Some(dollars) => match micro_dollars(dollars).filter(|limit| *limit > 0) {
                Some(limit) => Limit::At(limit),
                None => {
                    return Err(Failure::usage(format!("invalid --max-dollars {dollars}"))
                        .hint("Give US dollars above 0, such as 1.5."));
                }
            },
        };
        Ok(BudgetLimits {
            calls: match self.max_calls {
                Some(calls) => Limit::At(positive("--max-calls", calls)?),
                None => Limit::Unlimited,
            },
            tokens: Limit::Unlimited,
            micro_dollars,
        })
    }

    /// Returns the configurations, ready to run. Prepares each model once, to report missing parts early.
    fn configurations(
        &self,
        runtime: &Runtime<'_>,
        limits: &BudgetLimits,
    ) -> Result<(Vec<Variant>, Vec<Configuration>), Failure> {
        let mut named = self.configs.clone();
        if named.is_empty() {
            named.push((DEFAULT.to_owned(), None));
        }
        let baseline = named.first().filter(|_| self.is_direct).cloned();
        let baseline = baseline.map(|(_, file)| (DIRECT.to_owned(), file, TrialMode::Direct));
        let governed = named
            .into_iter()
            .map(|(name, file)| (name, file, TrialMode::Governed));
        let (mut variants, mut configurations) = (Vec::new(), Vec::<Configuration>::new());
        for (name, over, mode) in governed.chain(baseline) {
            if configurations.iter().any(|known| known.name == name) {
                return Err(
                    Failure::usage(format!("duplicate configuration name {name:?}"))
                        .hint("Give each --config a different name; `direct` is the baseline."),
                );
            }
            if let Some(missing) = over.as_ref().filter(|file| !file.is_file()) {
                return Err(
                    Failure::usage(format!("{} is not a file", missing.display()))
                        .hint("Give a name and a settings file: --config NAME=FILE"),
                );
            }
            let over: Vec<PathBuf> = over.into_iter().collect();
            let settings = settings(runtime.env, &over, &self.flags)?;
            let provider = settings.llm.provider.clone().unwrap_or_default();
            let selected = configured::selected(&quiet(runtime), &settings, &provider)?;
            let own = || selected.backend.default_model().to_owned();
            configurations.push(Configuration {
                name,
                provider: selected.candidate.name.clone(),
                model: self.model.map_or_else(own, str::to_owned),
                mode,
                settings: settings_digest(&settings)?,
            });
            let dollars = match limits.micro_dollars {
                // A run with its own limit keeps it. Without any limit, calls of an unpriced model would cost nothing.
                Limit::At(limit) if settings.budget.dollars == 0.0 => Some(limit),
                Limit::At(_) | Limit::Unlimited => None,
            };
            variants.push(Variant {
                over,
                provider,
                model: self.model.map(str::to_owned),
                mode,
                dollars,
            });
        }
        Ok((variants, configurations))
    }
}

impl<'a> Evaluation<'a> {
    /// Prepares an evaluation in its own directory, which `out` gives after the configurations are checked.
    ///
    /// # Errors
    ///
    /// Fails if a setting or an argument cannot be used, if a provider cannot be prepared, or if the directory is in use.
    pub fn prepare(
        runtime: &'a Runtime<'a>,
        arguments: &EvalArguments<'_>,
        directory: TaskDirectory,
        out: impl FnOnce(&TaskDirectory) -> Result<PathBuf, Failure>,
    ) -> Result<Self, Failure> {
        let limits = arguments.limits()?;
        let (variants, configurations) = arguments.configurations(runtime, &limits)?;
        let out = out(&directory)?;
        if out.join("trials").symlink_metadata().is_ok() && !arguments.resumes {
            return Err(
                Failure::usage(format!("{} already holds an evaluation", out.display()))
                    .hint("Continue it with --resume, or name another directory with --out."),
            );
        }
        create_dir_all(&out)?;
        let lock = Lock::acquire(&out.join("lock"), "crucible eval")?;
        create_dir_all(&out.join("trials"))?;
        let several = (arguments.samples > 1).then_some(0);
        let plan = EvalPlan {
            tasks: directory.tasks,
            configurations,
            samples: arguments.samples,
            seed: arguments.seed.map(u64::from).or(several),
            jobs: arguments.jobs,
            out,
        };
        let spent = spent_before(&plan)?;
        let used = Amount {
            calls: spent.calls,
            tokens: 0,
            micro_dollars: spent.micro_dollars.unwrap_or_default(),
        };
        let settings = settings(runtime.env, &[], &[])?;
        Ok(Self {
            machine: machine(runtime, &settings, directory.path)?,
            plan,
            variants,
            pool: CallPool::new(limits, used),
            runtime,
            _lock: lock,
        })
    }

    /// Returns the evaluation's own directory.
    #[must_use]
    pub fn out(&self) -> &Path {
        &self.plan.out
    }

    /// Runs the trials and writes the report.
    ///
    /// # Errors
    ///
    /// Fails if the evaluation's own directory cannot be written.
    pub async fn run(
        &self,
        governed: &dyn GovernedSolver,
        observer: &dyn Observer,
    ) -> Result<Report, Failure> {
        let solver = TrialSolver {
            evaluation: self,
            governed,
        };
        let plan = &self.plan;
        let trials = evaluate(&self.machine, plan, &solver, observer).await?;
        let report = Report::new(EvalReportInput {
            configurations: &plan.configurations,
            samples: plan.samples,
            seed: plan.seed,
            trials,
        });
        write_atomic(&plan.out.join("report.json"), &to_canonical_json(&report)?)?;
        Ok(report)
    }
}

/// Solves the task of a trial as its configuration says.
struct TrialSolver<'s> {
    evaluation: &'s Evaluation<'s>,
    governed: &'s dyn GovernedSolver,
}

#[async_trait(?Send)]
impl Solver for TrialSolver<'_> {
    async fn solve(&self, job: &Job<'_>) -> Solved {
        let solved = match self.evaluation.variants.get(job.configuration) {
            None => Err(Failure::usage("unknown configuration")),
            Some(variant) => match variant.setup(self.evaluation, job) {
                Err(error) => Err(error),
                Ok(setup) => match variant.mode {
                    TrialMode::Governed => self.governed.solve(setup, job).await,
                    TrialMode::Direct => Box::pin(self.direct(&setup, job)).await,
                },
            },
        };
        solved.unwrap_or_else(|error| {
            // Nothing was spent before a run. An error of the provider says nothing about the task.
            let is_unfinished =
                matches!(error.status, ExitStatus::Provider | ExitStatus::Interrupted);
            Solved {
                ending: match is_unfinished {
                    true => Ending::Unfinished,
                    false => Ending::Declined,
                },
                reason: error.message,
                run: None,
                spent: Spent::NOTHING,
            }
        })
    }

    fn is_exhausted(&self) -> bool {
        self.evaluation.pool.has_refused()
    }
}

impl TrialSolver<'_> {
    async fn direct(&self, setup: &TrialSetup<'_>, job: &Job<'_>) -> Result<Solved, Failure> {
        let flags = [("llm.provider", setup.provider.to_owned())];
        let settings = settings(&setup.env, &setup.over, &flags)?;
        let runtime = Runtime {
            env: &setup.env,
            ..quiet(self.evaluation.runtime)
        };
        let selected = configured::selected(&runtime, &settings, setup.provider)?;
        let (backend, name) = (selected.backend, selected.candidate.name);
        let own = || backend.default_model().to_owned();
        let model = setup.model.map_or_else(own, str::to_owned);
        let mut parameters = self.governed.parameters(&settings, &name, &backend);
        let seed = setup.seed_base.map(|base| (base + 1).into());
        parameters.extend(seed.map(|seed| ("seed".to_owned(), seed)));
        let options = ClientOptions {
            prices: Arc::new(configured::prices(&settings)?),
            ..ClientOptions::new(setup.pool.budget())
        };
        let client = ModelClient::new(backend, options);
        let request = DirectRequest {
            client: &client,
            model,
            parameters,
            timeout: Duration::from_secs(settings.llm.timeout_s.max(1)),
        };
        Ok(ask_directly(&self.evaluation.machine, request, job).await?)
    }
}

impl Variant {
    /// Creates the home of a trial, and combines the settings of the configuration and the task.
    fn setup<'s>(
        &'s self,
        evaluation: &'s Evaluation<'_>,
        job: &Job<'_>,
    ) -> Result<TrialSetup<'s>, Failure> {
        let home = job.place.join("home");
        create_dir_all(&home)?;
        let settings = job.place.join("settings.toml");
        let text = task_settings(job.task, self.dollars)?;
        write_atomic(&settings, text.as_bytes())?;
        let own: [(OsString, OsString); 1] = [("CRUCIBLE_HOME".into(), home.into())];
        let inherited = |(name, value): (&OsStr, &OsStr)| {
            let is_replaced = name == "CRUCIBLE_HOME" || name == "CRUCIBLE_RUNS_ROOT";
            (!is_replaced).then(|| (name.to_owned(), value.to_owned()))
        };
        let pairs = evaluation
            .runtime
            .env
            .pairs()
            .filter_map(inherited)
            .chain(own);
        Ok(TrialSetup {
            env: Environment::from_pairs(pairs, job.workspace.top()),
            over: self.over.iter().cloned().chain([settings]).collect(),
            provider: &self.provider,
            model: self.model.as_deref(),
            // No attempt of another sample has the same seed.
            seed_base: job
                .seed
                .map(|seed| seed.saturating_mul(1000).min(u64::from(u32::MAX))),
            pool: &evaluation.pool,
        })
    }
}

/// Returns the machine that tasks are checked on; no command of a task may read `directory`.
///
/// # Errors
///
/// Fails if `sandbox.strength` cannot be used.
pub(crate) fn machine<'a>(
    runtime: &Runtime<'a>,
    settings: &Settings,
    directory: PathBuf,
) -> Result<Machine<'a>, Failure> {
    Ok(Machine {
        env: runtime.env,
        sandbox: Arc::clone(&runtime.sandbox),
        strength: strength(settings)?,
        masked: vec![directory],
    })
}

/// The same runtime without notices.
fn quiet<'r>(runtime: &Runtime<'r>) -> Runtime<'r> {
    Runtime {
        env: runtime.env,
        clock: runtime.clock,
        sandbox: Arc::clone(&runtime.sandbox),
        notices: &Quiet,
    }
}

/// The settings outside of any project, with these files and flags on top.
fn settings(
    env: &Environment,
    over: &[PathBuf],
    flags: &[(&'static str, String)],
) -> Result<Settings, Failure> {
    let files = ConfigFiles {
        over: over.to_vec(),
        ..ConfigFiles::discover(env, Path::new("/"))
    };
    Ok(Settings::load(&files, env, flags)?)
}

/// Returns the digest of all effective settings except `paths.*`.
fn settings_digest(settings: &Settings) -> Result<Digest, Failure> {
    let settings: Vec<String> = settings
        .effective()
        .filter(|(key, _)| !key.starts_with("paths."))
        .map(|(key, setting)| format!("{key} = {}", setting.value))
        .collect();
    Ok(Digest::of_canonical(&settings)?)
}

fn canonical(path: &Path) -> Result<PathBuf, Failure> {
    path.canonicalize().map_err(|error| {
        Failure::usage(format!("{}: {error}", path.display())).hint("Name an existing directory.")
    })
}

/// Returns the settings of a task: its gates and its cost limit.
fn task_settings(task: &Task, dollars: Option<u64>) -> Result<String, Failure> {
    let mut text = String::new();
    for (name, words) in &task.gates {
        let command = serde_json::to_string(words)
            .map_err(|error| Failure::usage(format!("gate {name}: {error}")))?;
        // A JSON list of strings is also a TOML list.
        text.push_str(&format!("[gates.{name}]\ncommand = {command}\n"));
    }
    if let Some(dollars) = dollars {
        let (total, part) = (dollars / 1_000_000, dollars % 1_000_000);
        text.push_str(&format!("[llm.budget]\ndollars = {total}.{part:06}\n"));
    }
    Ok(text)
}
