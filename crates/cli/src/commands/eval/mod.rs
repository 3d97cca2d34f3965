//! `crucible eval`: runs a folder of tasks and counts what comes of them.

mod check;
mod import;
mod solver;
mod table;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand};
use crucible_eval::{
    Configuration, EvalPlan, EvalReportInput, Machine, Observer, Report, Task, TrialDocument,
    TrialMode, Validity, evaluate, read_tasks, spent_before,
};
use crucible_host::fs::{create_dir_all, write_atomic};
use crucible_host::lock::Lock;
use crucible_llm::configured::strength;
use crucible_llm::{Amount, BudgetLimits, CallPool, Limit, configured, micro_dollars};
use crucible_model::{Digest, ExitStatus, to_canonical_json};
use crucible_sandbox::{Runtime, Sandbox};
use crucible_settings::Settings;

use self::solver::{RunSolver, Variant};
use crate::app::App;
use crate::arguments::{provider_settings, providers};
use crate::error::CommandError;
use crate::output::Output;

/// The name of a configuration that nobody names.
const DEFAULT: &str = "default";
/// The name of the baseline.
const DIRECT: &str = "direct";
/// The most trials that run at a time.
const MAX_JOBS: i64 = 64;

/// Measure how often changes succeed on a set of tasks
///
/// A run solves each task in its own clone. Hidden tests then judge what landed. Results, logs and a ledger
/// are written to the evaluation's own directory. For example: `crucible eval tasks --provider gateway --jobs
/// 4 --direct`
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Exits 0 when every task has a result, 70 when some have none because the model or a limit of the evaluation stopped them, \
        130 when interrupted; `crucible --help` lists all exit codes."
)]
pub(crate) struct Eval {
    #[command(subcommand)]
    command: Option<EvalCommand>,
    #[command(flatten)]
    run: Option<EvalRun>,
}

#[derive(Subcommand)]
enum EvalCommand {
    Check(check::Check),
    Import(import::Import),
}

/// What an evaluation is started with
#[derive(Args)]
struct EvalRun {
    /// A directory with one subdirectory per task (docs/formats/eval.md)
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// The provider to call [default: llm.provider, which has no default]
    #[arg(long, alias = "llm-provider", value_name = "NAME", value_parser = providers())]
    provider: Option<String>,
    /// The model to call [default: the provider's configured model]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// A configuration to measure: a name and a file of settings that override yours; `NAME=` uses your
    /// settings unchanged. May be given several times
    #[arg(long = "config", value_name = "NAME=FILE", value_parser = named_file)]
    configs: Vec<(String, Option<PathBuf>)>,
    /// Also measure a baseline: the model writes whole files directly, without gates
    #[arg(long)]
    direct: bool,
    /// Run only these tasks. May be given several times
    #[arg(long = "task", value_name = "NAME")]
    tasks: Vec<String>,
    /// Directory with the repositories that are outside the tasks' own directories
    #[arg(long, value_name = "DIR")]
    repos: Option<PathBuf>,
    /// The model's seed for the first sample; each further sample adds one [default: none, 0 with --samples]
    #[arg(long, value_name = "N")]
    seed: Option<u32>,
    /// Number of samples per task and configuration
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    samples: u64,
    /// Number of tasks to run in parallel
    #[arg(long, value_name = "J", default_value_t = 1, value_parser = clap::value_parser!(i64).range(1..=MAX_JOBS))]
    jobs: i64,
    /// The evaluation's own directory [default: evals/NAME-OF-DIR in Crucible's own directory]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Resume the evaluation in this directory; keep results with the same inputs
    #[arg(long)]
    resume: bool,
    /// Maximum number of calls for all tasks, earlier results included
    #[arg(long, value_name = "N")]
    max_calls: Option<u64>,
    /// Maximum cost of all tasks in US dollars, earlier results included
    #[arg(long, value_name = "DOLLARS")]
    max_dollars: Option<f64>,
}

impl Eval {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        match (&self.command, &self.run) {
            (Some(EvalCommand::Check(command)), _) => command.run(app),
            (Some(EvalCommand::Import(command)), _) => command.run(app),
            (None, Some(run)) => run.run(app),
            (None, None) => Err(CommandError::usage("missing task directory")
                .hint("For example: crucible eval tasks --provider gateway")),
        }
    }
}

impl EvalRun {
    fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let (directory, tasks) =
            tasks_of(app, &self.directory, &self.tasks, self.repos.as_deref())?;
        let sandbox = app.runtime().sandbox;
        let limits = self.limits()?;
        let (variants, configurations) = self.configurations(app, &sandbox, &limits)?;
        let out = self.out(app, &directory)?;
        let begun = out.join("trials").symlink_metadata().is_ok();
        if begun && !self.resume {
            return Err(CommandError::usage(format!(
                "{} already holds an evaluation",
                out.display()
            ))
            .hint("Continue it with --resume, or name another directory with --out."));
        }
        create_dir_all(&out)?;
        let _lock = Lock::acquire(&out.join("lock"), "crucible eval")?;
        create_dir_all(&out.join("trials"))?;
        let plan = EvalPlan {
            tasks,
            configurations,
            samples: self.samples,
            seed: self.seed.map(u64::from).or((self.samples > 1).then_some(0)),
            jobs: usize::try_from(self.jobs).unwrap_or(1),
            out,
        };
        let spent = spent_before(&plan)?;
        let used = Amount {
            calls: spent.calls,
            tokens: 0,
            micro_dollars: spent.micro_dollars.unwrap_or_default(),
        };
        let pool = CallPool::new(limits, used);
        let config = app.config(Path::new("/"), &[])?;
        let machine = Machine {
            env: &app.env,
            sandbox,
            strength: strength(&config)?,
            masked: vec![directory],
        };
        let solver = RunSolver {
            app,
            variants,
            machine: &machine,
            pool,
        };
        let teller = Teller {
            output: &app.output,
        };
        let trials =
            app.block_on(async { Ok(evaluate(&machine, &plan, &solver, &teller).await?) })?;
        let report = Report::of(EvalReportInput {
            configurations: &plan.configurations,
            samples: plan.samples,
            seed: plan.seed,
            trials,
        });
        let document = to_canonical_json(&report)
            .map_err(|error| CommandError::new(ExitStatus::Refused, error.to_string()))?;
        write_atomic(&plan.out.join("report.json"), &document)?;
        if app.output.is_json() {
            app.output.json(&report)?;
        } else {
            app.output.line(&table::lines(&report, &plan.out));
        }
        Ok(if report.is_complete() {
            ExitStatus::Success
        } else {
            ExitStatus::Provider
        })
    }

    fn limits(&self) -> Result<BudgetLimits, CommandError> {
        let dollars = match self.max_dollars {
            None => Limit::Unlimited,
            Some(dollars) => match micro_dollars(dollars).filter(|limit| *limit > 0) {
                Some(limit) => Limit::At(limit),
                None => {
                    return Err(
                        CommandError::usage(format!("invalid --max-dollars {dollars}"))
                            .hint("Give US dollars above 0, such as 1.5."),
                    );
                }
            },
        };
        let calls = self.max_calls.map_or(Limit::Unlimited, Limit::At);
        Ok(BudgetLimits {
            calls,
            tokens: Limit::Unlimited,
            micro_dollars: dollars,
        })
    }

    /// The evaluation's own directory. Nothing of it may lie among the tasks, nor they in it: what a run writes must not become a task.
    fn out(&self, app: &App, directory: &Path) -> Result<PathBuf, CommandError> {
        let name = directory
            .file_name()
            .map_or_else(|| "tasks".into(), |name| name.to_string_lossy());
        let out = match &self.out {
            Some(out) => app.absolute(out),
            None => app.home()?.join("evals").join(name.as_ref()),
        };
        let existing = out
            .ancestors()
            .find_map(|part| Some((part, part.canonicalize().ok()?)));
        let real = existing.map_or_else(
            || out.clone(),
            |(part, real)| real.join(out.strip_prefix(part).unwrap_or(Path::new(""))),
        );
        if real.starts_with(directory) || directory.starts_with(&real) {
            let message = format!(
                "{} and the task directory contain each other",
                out.display()
            );
            return Err(CommandError::usage(message).hint("Name a separate directory with --out."));
        }
        if real.to_str().is_none() {
            return Err(
                CommandError::usage(format!("the path is not UTF-8: {}", out.display()))
                    .hint("Name another directory with --out."),
            );
        }
        Ok(real)
    }

    /// Each configuration with what it takes to run it. Its model is made ready once here, so what is missing is reported at once.
    fn configurations(
        &self,
        app: &App,
        sandbox: &Arc<Sandbox>,
        limits: &BudgetLimits,
    ) -> Result<(Vec<Variant>, Vec<Configuration>), CommandError> {
        let mut named = self.configs.clone();
        if named.is_empty() {
            named.push((DEFAULT.to_owned(), None));
        }
        let mut modes: Vec<_> = named
            .iter()
            .map(|(name, file)| (name.clone(), file, TrialMode::Governed))
            .collect();
        if let Some((_, file)) = named.first().filter(|_| self.direct) {
            modes.push((DIRECT.to_owned(), file, TrialMode::Direct));
        }
        let (mut variants, mut configurations) = (Vec::new(), Vec::<Configuration>::new());
        for (name, file, mode) in modes {
            if configurations.iter().any(|known| known.name == name) {
                return Err(
                    CommandError::usage(format!("duplicate configuration name {name:?}"))
                        .hint("Give each --config a different name; `direct` is the baseline."),
                );
            }
            let over: Vec<PathBuf> = file.iter().map(|file| app.absolute(file)).collect();
            if let Some(missing) = over.iter().find(|file| !file.is_file()) {
                return Err(
                    CommandError::usage(format!("{} is not a file", missing.display()))
                        .hint("Give a name and a settings file: --config NAME=FILE"),
                );
            }
            let own = app.with_settings(over.clone())?;
            let flags = provider_settings(&self.provider, &None);
            let config = own.config(Path::new("/"), &flags)?;
            let provider = config.llm.provider.clone().unwrap_or_default();
            let runtime = Runtime {
                sandbox: Arc::clone(sandbox),
                ..own.runtime()
            };
            let selected = configured::selected(&runtime, &config, &provider)?;
            let model = self
                .model
                .clone()
                .unwrap_or_else(|| selected.backend.default_model().to_owned());
            configurations.push(Configuration {
                name,
                provider: selected.candidate.name.clone(),
                model: model.clone(),
                mode,
                settings: settings_digest(&config)?,
            });
            let dollars = match limits.micro_dollars {
                // A run with a limit of its own keeps it; without any a model without a price would be asked for nothing.
                Limit::At(limit) if config.budget.dollars == 0.0 => Some(limit),
                Limit::At(_) | Limit::Unlimited => None,
            };
            variants.push(Variant {
                over,
                provider,
                model: self.model.clone(),
                mode,
                dollars,
            });
        }
        Ok((variants, configurations))
    }
}

/// The digest of every setting that holds, but for places.
fn settings_digest(config: &Settings) -> Result<Digest, CommandError> {
    let settings: Vec<String> = config
        .effective()
        .filter(|(key, _)| !key.starts_with("paths."))
        .map(|(key, setting)| format!("{key} = {}", setting.value))
        .collect();
    Digest::of_canonical(&settings)
        .map_err(|error| CommandError::new(ExitStatus::Refused, error.to_string()))
}

fn canonical(path: &Path) -> Result<PathBuf, CommandError> {
    path.canonicalize().map_err(|error| {
        CommandError::usage(format!("{}: {error}", path.display()))
            .hint("Name an existing directory.")
    })
}

/// Reads `NAME=FILE`.
fn named_file(text: &str) -> Result<(String, Option<PathBuf>), String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && name.len() <= 40 && name.bytes().all(plain) => {
            Ok((
                name.to_owned(),
                Some(PathBuf::from(file)).filter(|file| !file.as_os_str().is_empty()),
            ))
        }
        _ => Err("write a plain name, `=` and a file, such as `large=large.toml`".to_owned()),
    }
}

/// Tells the progress on standard error, a line for each end.
struct Teller<'a> {
    output: &'a Output,
}

impl Observer for Teller<'_> {
    fn proved(&self, task: &str, validity: &Validity) {
        if let Some(problem) = &validity.problem {
            self.output
                .remark(&format!("warning: task {task} is broken: {problem}"));
        }
    }

    fn started(&self, configuration: &str, task: &str, sample: u64) {
        self.output
            .remark(&format!("  ... {task} ({configuration}, sample {sample})"));
    }

    fn finished(&self, document: &TrialDocument, done: usize, total: usize) {
        let TrialDocument {
            task,
            configuration,
            outcome,
            seconds,
            reason,
            ..
        } = document;
        let line = format!(
            "[{done}/{total}] {task} ({configuration}): {}, {seconds:.1} s  {reason}",
            outcome.as_str()
        );
        self.output.remark(line.trim_end());
    }
}

/// Reads the tasks of a folder, or those that are named, and gives the folder's real path.
fn tasks_of(
    app: &App,
    directory: &Path,
    named: &[String],
    repos: Option<&Path>,
) -> Result<(PathBuf, Vec<Task>), CommandError> {
    let directory = canonical(&app.absolute(directory))?;
    let repos = repos
        .map(|repos| canonical(&app.absolute(repos)))
        .transpose()?;
    let tasks = read_tasks(&directory, named, repos.as_deref())?;
    Ok((directory, tasks))
}
