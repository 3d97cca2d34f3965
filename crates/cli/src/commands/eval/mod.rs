//! `crucible eval`: runs a folder of tasks and counts what comes of them.

mod check;
mod import;
mod solver;
mod table;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use crucible_eval::configured::{EvalArguments, Evaluation, TaskDirectory};
use crucible_eval::{Observer, TrialDocument, Validity};
use crucible_model::{ExitStatus, Failure};
use crucible_terminal::Output;

use self::solver::RunSolver;
use crate::app::App;
use crate::arguments::{provider_settings, providers};

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
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        match (&self.command, &self.run) {
            (Some(EvalCommand::Check(command)), _) => command.run(app),
            (Some(EvalCommand::Import(command)), _) => command.run(app),
            (None, Some(run)) => run.run(app),
            (None, None) => Err(Failure::usage("missing task directory")
                .hint("For example: crucible eval tasks --provider gateway")),
        }
    }
}

impl EvalRun {
    fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let directory = tasks_of(app, &self.directory, &self.tasks, self.repos.as_deref())?;
        let config = |(name, file): &(String, Option<PathBuf>)| {
            (name.clone(), file.as_deref().map(|file| app.absolute(file)))
        };
        let arguments = EvalArguments {
            configs: self.configs.iter().map(config).collect(),
            flags: provider_settings(&self.provider, &None),
            model: self.model.as_deref(),
            is_direct: self.direct,
            seed: self.seed,
            samples: self.samples,
            jobs: usize::try_from(self.jobs).unwrap_or(1),
            resumes: self.resume,
            max_calls: self.max_calls,
            max_dollars: self.max_dollars,
        };
        let runtime = app.runtime();
        let named = self.out.as_deref().map(|out| app.absolute(out));
        let out = |directory: &TaskDirectory| directory.out(named, || app.home());
        let evaluation = Evaluation::prepare(&runtime, &arguments, directory, out)?;
        let progress = EvalProgress {
            output: &app.output,
        };
        let report = app.block_on(evaluation.run(&RunSolver { app }, &progress))?;
        if app.output.is_json() {
            app.output.json(&report)?;
        } else {
            app.output.line(&table::lines(&report, evaluation.out()));
        }
        Ok(if report.is_complete() {
            ExitStatus::Success
        } else {
            ExitStatus::Provider
        })
    }
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
struct EvalProgress<'a> {
    output: &'a Output,
}

impl Observer for EvalProgress<'_> {
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

/// Reads the tasks of a directory, or those that are named.
fn tasks_of(
    app: &App,
    directory: &Path,
    named: &[String],
    repos: Option<&Path>,
) -> Result<TaskDirectory, Failure> {
    let repos = repos.map(|repos| app.absolute(repos));
    TaskDirectory::read(&app.absolute(directory), named, repos.as_deref())
}
