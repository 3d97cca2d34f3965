//! The arguments of a new run, its creation and its first steps, for `crucible run start`, `crucible spec run` and
//! `crucible eval`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use clap::builder::RangedI64ValueParser;
use crucible_ledger::Ledger;
use crucible_model::{ExitStatus, Failure, one_line};
use crucible_run::configured::{StartRequest, StartedRun};
use crucible_run::{
    RunDir, RunObserver, RunOptions, RunState, is_definition_name, status as run_status,
};
use crucible_sandbox::Sandbox;
use crucible_settings::Settings;

use crate::app::App;
use crate::arguments::{overrides, path_text, providers, strengths, subject};
use crate::live_trace::send_trace;
use crate::progress::Progress;

/// How commands end that take a run further.
pub(crate) const ENDS: &str = "Exits 0 when the change is verified, 1 when the run failed or waits for you, 70 when the model is unavailable, \
    130 when interrupted; `crucible --help` lists all exit codes.";

/// What a run is started with
#[derive(Args, Default)]
pub(crate) struct Options {
    /// A directory in the repository
    #[arg(long, default_value = ".", value_name = "DIR")]
    pub(crate) repo: PathBuf,
    /// The provider to call [default: llm.provider, which has no default]. Not needed if a person or a
    /// command answers
    #[arg(long, alias = "llm-provider", value_name = "NAME", value_parser = providers())]
    pub(crate) provider: Option<String>,
    /// Fallback if the provider is unavailable [default: llm.fallback_provider, none]
    #[arg(long, value_name = "NAME", value_parser = providers())]
    pub(crate) fallback_provider: Option<String>,
    /// The model to call [default: the provider's configured model, see `crucible config show`]
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// The recording to answer from, for the provider `replay`
    #[arg(long, value_name = "FILE")]
    pub(crate) cassette: Option<PathBuf>,
    /// A file, directory or glob that may change, relative to the repository's top [default: chosen by the
    /// goal's words and the ranking]. May be given several times
    #[arg(long = "file", value_name = "PATH")]
    pub(crate) files: Vec<String>,
    /// A command that verifies the change, split into words without a shell. Replaces configured and detected
    /// gates and runs in the start directory. May be given several times
    #[arg(long = "test", value_name = "CMD")]
    pub(crate) tests: Vec<String>,
    /// A definition that may be removed or renamed, such as `helper`. Definitions that the goal names for
    /// this need no flag. May be given several times
    #[arg(long = "may-drop", value_name = "NAME", value_parser = definition_name)]
    pub(crate) may_drop: Vec<String>,
    /// The commit's subject [default: the goal, shortened]
    #[arg(long, value_name = "TEXT", value_parser = subject)]
    pub(crate) message: Option<String>,
    /// A dispatch_config.json that assigns roles (docs/contracts/dispatch_config.md) [default: section
    /// [dispatch]]
    #[arg(long, value_name = "FILE", conflicts_with = "mode")]
    pub(crate) dispatch: Option<PathBuf>,
    /// Who proposes changes instead of a model: `manual_outbox` (a person answers prompts in outbox/),
    /// `api_agent` (your command) or `ollama_agent` [default: dispatch.mode, none]
    #[arg(long, value_name = "MODE", value_parser = ["manual_outbox", "api_agent", "ollama_agent", "local_exec"])]
    pub(crate) mode: Option<String>,
    /// The coding agent that proposes changes in the sandbox, such as claude, codex or gemini; `crucible agents` lists them
    /// [default: run.agent, none]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["mode", "dispatch"])]
    pub(crate) agent: Option<String>,
    /// Maximum attempts before the run fails [default: run.max_iterations, 4]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = limit_parser())]
    pub(crate) max_iterations: Option<u64>,
    /// Candidates sampled for each attempt; the best of those that pass is verified [default: run.candidates, 1]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = limit_parser())]
    pub(crate) candidates: Option<u64>,
    /// Tests that no proposer sees, outside of the repository; they run before the landing (repeatable) [default:
    /// run.held_out, none]
    #[arg(long = "held-out", value_name = "PATH")]
    pub(crate) held_out: Vec<String>,
    /// Minimum sandbox strength [default: sandbox.strength, required]
    #[arg(long, value_name = "STRENGTH", value_parser = strengths())]
    pub(crate) sandbox: Option<String>,
}

/// Creates a run; `adjust` changes what it is created with.
pub(crate) async fn begin(
    app: &App,
    goal: &str,
    options: &Options,
    adjust: impl FnOnce(&mut RunOptions),
    observer: &mut dyn RunObserver,
) -> Result<(Settings, Arc<Sandbox>, StartedRun), Failure> {
    let directory = app.absolute(&options.repo);
    let top = app.repository_of(&directory);
    let request = StartRequest {
        goal,
        directory: &directory,
        top: top.as_deref(),
        model: options.model.as_deref(),
        files: &options.files,
        tests: &options.tests,
        may_drop: &options.may_drop,
        message: options.message.as_deref(),
        dispatch: options.dispatch.as_deref(),
        held_out: &options.held_out,
        cassette: options.cassette.as_deref(),
    };
    request.check()?;
    let config = app.config(&directory, &options.flags())?;
    let runtime = app.runtime();
    let world = app.world(&runtime.sandbox, &config)?;
    let started = request
        .start(&runtime, &config, &world, app, adjust, observer)
        .await?;
    Ok((config, Arc::clone(&runtime.sandbox), started))
}

/// Starts a run and advances it as far as possible; `adjust` changes what it is created with.
pub(crate) fn start_and_advance(
    app: &App,
    goal: &str,
    options: &Options,
    adjust: impl FnOnce(&mut RunOptions),
) -> Result<ExitStatus, Failure> {
    let mut progress = Progress::new(&app.output);
    let (config, sandbox, started) =
        app.block_on(begin(app, goal, options, adjust, &mut progress))?;
    if !app.output.is_json() {
        app.output
            .remark(&format!("run {}", started.dir.root().display()));
    }
    let world = app.world(&sandbox, &config)?;
    let ledger = app.ledger_path()?;
    let started_dir = started.dir.clone();
    let advanced = app.block_on(async {
        let (dir, ledger, advanced) = started
            .advance(&world, &ledger, None, &mut progress)
            .await?;
        Ok((dir, ledger, advanced?))
    });
    progress.finish();
    let ended = advanced.and_then(|(dir, ledger, _)| conclude(app, &dir, &ledger));
    send_trace(app, &started_dir, 0);
    ended
}

/// Prints where a run stands, and turns it into the way the process ends.
pub(crate) fn conclude(app: &App, dir: &RunDir, ledger: &Ledger) -> Result<ExitStatus, Failure> {
    let status = run_status(dir, ledger)?;
    if app.output.is_json() {
        app.output.json(&status)?;
    } else {
        for line in status.summary() {
            app.output.line(&one_line(&line));
        }
    }
    Ok(match status.state {
        RunState::Failed | RunState::Declined | RunState::Blocked => ExitStatus::Refused,
        RunState::New
        | RunState::Analysed
        | RunState::Context
        | RunState::Planned
        | RunState::Reviewed
        | RunState::Signed
        | RunState::Patched
        | RunState::Verified
        | RunState::Landed => ExitStatus::Success,
    })
}

impl Options {
    fn flags(&self) -> Vec<(&'static str, String)> {
        let number = |limit: Option<u64>| limit.map(|limit| limit.to_string());
        overrides([
            ("llm.provider", self.provider.clone()),
            ("llm.fallback_provider", self.fallback_provider.clone()),
            ("dispatch.mode", self.mode.clone()),
            ("run.agent", self.agent.clone()),
            ("run.max_iterations", number(self.max_iterations)),
            ("run.candidates", number(self.candidates)),
            ("sandbox.strength", self.sandbox.clone()),
            ("llm.replay.cassette", path_text(&self.cassette)),
        ])
    }
}

/// Reads a limit: a number from 1 that fits into 32 bits, as in files and variables.
fn limit_parser() -> RangedI64ValueParser<u64> {
    RangedI64ValueParser::new().range(1..=i64::from(u32::MAX))
}

/// Reads the name of a definition.
fn definition_name(text: &str) -> Result<String, String> {
    match is_definition_name(text) {
        true => Ok(text.to_owned()),
        false => Err("not a plain name of a definition, such as `helper`".to_owned()),
    }
}
