//! `crucible run start` and `crucible run new`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, RangedI64ValueParser};
use crucible_host::config::Config;
use crucible_ledger::Ledger;
use crucible_llm::{Backend, Origin, ReceiptWarning};
use crucible_model::{EditFormat, ExitStatus, RepoPath, is_hidden};
use crucible_run::{
    FindMode, Opening, RunDir, RunError, RunOptions, RunSettings, advance, create, is_definition_name,
    parameters_of_recording, required_gates,
};
use crucible_sandbox::Sandbox;
use crucible_verify::{GateLevel, GateSpec};

use crate::app::{App, strength, strengths};
use crate::commands::context::context_settings;
use crate::commands::patch::patch_limits;
use crate::commands::run::clients::RunClient;
use crate::commands::run::council::Seated;
use crate::commands::run::dispatch::{self, Cast, Proposer};
use crate::commands::run::find::find_settings;
use crate::commands::run::{ENDS, conclude, shared_sandbox, world};
use crate::commands::{model, repository_of};
use crate::error::CommandError;
use crate::progress::Progress;

/// The longest goal, in bytes: it goes into every question and onto the first line of the commit.
const MAX_GOAL: usize = 16 * 1024;

/// What a run is started with
#[derive(Args)]
pub(crate) struct Options {
    /// What to achieve, in one sentence
    pub(crate) goal: String,
    /// A directory in the repository
    #[arg(long, default_value = ".", value_name = "DIR")]
    pub(crate) repo: PathBuf,
    /// Who answers; without it the configured one (llm.provider, which has no default). Not needed where a person or a command does
    #[arg(long, value_name = "NAME", value_parser = providers())]
    pub(crate) provider: Option<String>,
    /// Who answers where that provider cannot be made ready; without it as configured (llm.fallback_provider, none)
    #[arg(long, value_name = "NAME", value_parser = providers())]
    pub(crate) fallback_provider: Option<String>,
    /// The model to ask; without it the provider's configured one (`crucible config show`)
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// The recording that answers, for the provider `replay`
    #[arg(long, value_name = "FILE")]
    pub(crate) cassette: Option<PathBuf>,
    /// A file that may change, relative to the repository's top; without it Crucible chooses. May be given several times
    #[arg(long = "file", value_name = "PATH")]
    pub(crate) files: Vec<String>,
    /// A definition that may go or get another name, such as `helper`; what the goal says to remove or rename may go
    /// without it. May be given several times
    #[arg(long = "may-drop", value_name = "NAME", value_parser = definition_name)]
    pub(crate) may_drop: Vec<String>,
    /// Who serves which role: a dispatch_config.json (docs/contracts/dispatch_config.md); without it the section [dispatch]
    #[arg(long, value_name = "FILE", conflicts_with = "mode")]
    pub(crate) dispatch: Option<PathBuf>,
    /// Who proposes changes instead of a model: `manual_outbox`, a person who answers prompts in outbox/, `api_agent`, a
    /// command of yours, or `ollama_agent`; without it as configured (dispatch.mode, none)
    #[arg(long, value_name = "MODE", value_parser = ["manual_outbox", "api_agent", "ollama_agent", "local_exec"])]
    pub(crate) mode: Option<String>,
    /// How many answers are tried before the run fails; without it the configured number (run.max_iterations, 4)
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = limit_parser())]
    pub(crate) max_iterations: Option<u64>,
    /// How many answers are sampled for each try, until one is verified; without it as configured (run.candidates, 1)
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = limit_parser())]
    pub(crate) candidates: Option<u64>,
    /// How strong the sandbox must be; without it as configured (sandbox.strength, required)
    #[arg(long, value_name = "STRENGTH", value_parser = strengths())]
    pub(crate) sandbox: Option<String>,
}

/// Start a run and take it as far as it goes without you
///
/// Your files stay as they are until `crucible run land`. For example:
/// `crucible run start "fix the failing test in parser" --repo . --provider gateway`
#[derive(Args)]
#[command(after_help = ENDS)]
pub(crate) struct Start {
    #[command(flatten)]
    options: Options,
}

/// Make a run without advancing it
///
/// For example, to look at its settings first: `crucible run new "fix the failing test in parser"`, then
/// `crucible run advance`.
#[derive(Args)]
pub(crate) struct New {
    #[command(flatten)]
    options: Options,
}

impl Start {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let mut begun = begin(app, &self.options)?;
        if !app.output.is_json() {
            app.output.remark(&format!("run {}", begun.dir.root().display()));
        }
        let world = world(app, &begun.sandbox, &begun.config)?;
        let ledger_path = app.ledger_path()?;
        let client =
            RunClient::new(app, &world, &ledger_path, &begun.dir, &begun.config)?.with_council(begun.council);
        let mut models = begun.models;
        let open = |opening: &Opening<'_>| {
            let ready =
                |name: &str| models.remove(name).ok_or_else(|| RunError::NoClient { name: name.to_owned() });
            client.open(ready, opening)
        };
        let advanced = app.block_on(async {
            Ok(advance(&world, &begun.dir, open, &mut begun.ledger, &mut begun.progress).await?)
        });
        begun.progress.finish();
        advanced?;
        conclude(app, &begun.dir, &begun.ledger)
    }
}

impl New {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let mut begun = begin(app, &self.options)?;
        begun.progress.finish();
        conclude(app, &begun.dir, &begun.ledger)
    }
}

struct Begun {
    config: Config,
    sandbox: Arc<Sandbox>,
    models: BTreeMap<String, Backend>,
    council: Option<Seated>,
    dir: RunDir,
    ledger: Ledger,
    progress: Progress,
}

fn begin(app: &App, options: &Options) -> Result<Begun, CommandError> {
    let repo = app.absolute(&options.repo);
    if options.goal.len() > MAX_GOAL {
        let message = format!("the goal has {} bytes, at most {MAX_GOAL} are taken", options.goal.len());
        return Err(CommandError::new(ExitStatus::OverLimit, message)
            .hint("Say it shorter; name documents with the details in [context] mandatory."));
    }
    if repo.to_str().is_none() {
        // A run's record is JSON and names its repository.
        let message = format!("the repository's path is not UTF-8: {}", repo.display());
        return Err(CommandError::usage(message).hint("Rename the directory, or work in a clone elsewhere."));
    }
    let config = app.config(&repo, &options.flags())?;
    require_controlled(&config)?;
    let sandbox = shared_sandbox(app);
    model::check_budget(&config)?;
    let cast = Cast::of(app, &config, &sandbox, options.dispatch.as_deref(), options.cassette.as_deref())?;
    let named = named(app, options, &repo)?;
    let run_options = run_options(app, options, named, &config, &cast)?;
    let mut progress = Progress::new(&app.output);
    let world = world(app, &sandbox, &config)?;
    let git = app.block_on(async { Ok(world.repository(&repo).await?) })?;
    let mut ledger = app.ledger()?;
    let id =
        app.block_on(async { Ok(create(&world, &git, run_options, &mut ledger, &mut progress).await?) })?;
    let dir = RunDir::of(&world.runs_root, &id);
    Ok(Begun {
        config,
        sandbox: Arc::clone(&sandbox),
        models: cast.models,
        council: cast.council,
        dir,
        ledger,
        progress,
    })
}

impl Options {
    fn flags(&self) -> Vec<(&'static str, String)> {
        let mut flags = Vec::new();
        let mut add = |key, value: Option<String>| flags.extend(value.map(|value| (key, value)));
        add("llm.provider", self.provider.clone());
        add("llm.fallback_provider", self.fallback_provider.clone());
        add("dispatch.mode", self.mode.clone());
        add("run.max_iterations", self.max_iterations.map(|number| number.to_string()));
        add("run.candidates", self.candidates.map(|number| number.to_string()));
        add("sandbox.strength", self.sandbox.clone());
        add("llm.replay.cassette", self.cassette.as_ref().map(|path| path.display().to_string()));
        flags
    }
}

/// Refuses any other way than that in which Crucible alone acts on what a model says.
pub(crate) fn require_controlled(config: &Config) -> Result<(), CommandError> {
    let named = config.text("llm.execution_strategy").unwrap_or_default();
    match named.parse::<crucible_llm::ExecutionStrategy>() {
        Ok(_) => Ok(()),
        Err(error) => {
            Err(CommandError::usage(error.to_string()).hint("Set [llm] execution_strategy = \"controlled\"."))
        }
    }
}

/// The files that the operator names, each once.
fn named(app: &App, options: &Options, repo: &Path) -> Result<Vec<RepoPath>, CommandError> {
    let mut named = Vec::new();
    for file in &options.files {
        let path = file.trim_start_matches("./").parse::<RepoPath>().map_err(|error| {
            CommandError::usage(format!("--file {file:?}: {error}"))
                .hint("Name the file relative to the repository's top directory.")
        })?;
        if path.as_str().chars().any(is_hidden) {
            return Err(CommandError::usage(format!(
                "--file {file:?}: the name holds a character that nobody sees"
            ))
            .hint("A plan names it, and a person has to see what it names; give the file another name."));
        }
        if named.contains(&path) {
            continue;
        }
        match repository_of(repo).map(|top| top.join(path.as_str())) {
            Some(place) if place.is_dir() => {
                return Err(CommandError::usage(format!("--file {file:?}: this is a directory"))
                    .hint("Name files; the option may be given several times."));
            }
            Some(place) if place.symlink_metadata().is_err() => {
                app.output.remark(&format!("note: there is no file {path} yet; the model may make it"));
            }
            _ => {}
        }
        named.push(path);
    }
    Ok(named)
}

fn run_options(
    app: &App,
    options: &Options,
    named: Vec<RepoPath>,
    config: &Config,
    cast: &Cast,
) -> Result<RunOptions, CommandError> {
    let proposer = proposer(app, options, config, cast);
    let agents = dispatch::agents(app, config, cast.dispatch.as_ref())?;
    let wanted = edit_format(config)?;
    let settings = RunSettings {
        edit_format: match proposer.backend.map(|backend| (backend.origin(), backend.capabilities())) {
            Some((Origin::Live, best)) => wanted.unwrap_or(best.edit_format),
            // A recording answers only as it was asked.
            Some((Origin::Recording | Origin::Unpaid, own)) => own.edit_format,
            // What no model writes is a diff (D14).
            None => EditFormat::UnifiedDiff,
        },
        parameters: parameters(config, &proposer),
        provider: proposer.name,
        model: proposer.model,
        role_models: proposer.of_roles,
        model_timeout_s: limit(config, "llm.timeout_s")?,
        max_calls: config.number("llm.budget.calls"),
        gates: gates(config)?,
        sandbox: strength(config)?,
        patch: patch_limits(config),
        max_files: limit(config, "run.max_files")?,
        max_total_bytes: limit(config, "run.max_total_bytes")?,
        max_iterations: limit(config, "run.max_iterations")?,
        max_malformed: config.number("run.max_malformed").min(u64::from(u32::MAX)),
        candidates: limit(config, "run.candidates")?,
        named,
        may_drop: options.may_drop.clone(),
        context: context_settings(config)?,
        dispatch: cast.dispatch.clone(),
        agents,
        web: match find_settings(config)? {
            FindMode::ResolverOnly => None,
            FindMode::ResolverPlusWeb(web) => Some(web),
        },
    };
    let found_gate_timeout = Duration::from_secs(config.template_number("gates.*.timeout_s"));
    Ok(RunOptions {
        goal: options.goal.clone(),
        settings,
        found_gate_timeout,
        answers: cast.answers.clone(),
        warnings: cast.fell_back.iter().map(ReceiptWarning::fallback).collect(),
    })
}

/// Who proposes the changes, and which model each role asks. A model that the command line names is asked by every role of the
/// configured provider, and means nothing to another one: where it has no effect, that is said.
fn proposer<'c>(app: &App, options: &Options, config: &Config, cast: &'c Cast) -> Proposer<'c> {
    let provider = config.text("llm.provider").unwrap_or_default();
    let (provider, chosen) = match &cast.fell_back {
        Some(fell_back) => (fell_back.fallback.as_str(), None),
        None => (provider, options.model.as_deref()),
    };
    let proposer = cast.proposer(provider, chosen);
    let is_asked = |model: &str| {
        (proposer.backend.is_some() && proposer.model == model)
            || proposer.of_roles.values().any(|own| own == model)
    };
    match &options.model {
        Some(wanted) if cast.fell_back.is_some() => {
            let asked = &proposer.model;
            app.output.remark(&format!(
                "note: the fallback is asked with its own model {asked}, not with {wanted}"
            ));
        }
        Some(wanted) if !is_asked(wanted) => {
            app.output.remark(&format!(
                "note: nobody is asked with the model {wanted}: no role of this run is served by its provider"
            ));
        }
        Some(_) | None => {}
    }
    proposer
}

/// The parameters of each question for a change; none where no model is asked.
fn parameters(config: &Config, proposer: &Proposer<'_>) -> BTreeMap<String, serde_json::Value> {
    let Some(backend) = proposer.backend else { return BTreeMap::new() };
    let mut parameters = parameters_of_recording(backend.parameters());
    let max_tokens = config.number(&format!("llm.{}.max_tokens", proposer.name));
    if max_tokens > 0 {
        parameters.insert("max_tokens".to_owned(), max_tokens.into());
    }
    if let Some(temperature) = model::temperature(config, &proposer.name) {
        parameters.insert("temperature".to_owned(), temperature.into());
    }
    parameters
}

/// The names of all providers.
pub(crate) fn providers() -> PossibleValuesParser {
    PossibleValuesParser::new(crucible_llm::registry().iter().map(|kind| kind.name()))
}

/// Reads a limit: a number from 1 that fits into 32 bits. What stands in files and variables is held to the same by
/// [`limit`].
fn limit_parser() -> RangedI64ValueParser<u64> {
    RangedI64ValueParser::new().range(1..=i64::from(u32::MAX))
}

/// Reads the name of a definition.
fn definition_name(text: &str) -> Result<String, String> {
    match is_definition_name(text) {
        true => Ok(text.to_owned()),
        false => Err("this is no plain name of a definition, such as `helper`".to_owned()),
    }
}

/// A limit that a run writes into its guardrails.
fn limit(config: &Config, key: &str) -> Result<u64, CommandError> {
    let number = config.number(key);
    if u32::try_from(number).is_ok_and(|number| number > 0) {
        return Ok(number);
    }
    Err(CommandError::usage(format!("{key} is no limit"))
        .hint("It takes a whole number from 1 to 4294967295."))
}

fn edit_format(config: &Config) -> Result<Option<EditFormat>, CommandError> {
    let Some(name) = config.text("run.edit_format") else {
        return Ok(None);
    };
    serde_json::from_value(name.into()).map(Some).map_err(|_| {
        CommandError::usage(format!("run.edit_format is {name:?}"))
            .hint("It takes whole-file, search-replace, definitions or unified-diff.")
    })
}

/// The gates that the configuration names.
fn gates(config: &Config) -> Result<Vec<GateSpec>, CommandError> {
    let mut gates = Vec::new();
    for name in config.names_below("gates") {
        let command = config.list(&format!("gates.{name}.command"));
        if command.is_empty() {
            return Err(CommandError::usage(format!("gates.{name} has no command"))
                .hint("Write it as a list, one text for each argument: command = [\"make\", \"test\"]"));
        }
        if required_gates().any(|gate| gate == name) {
            return Err(CommandError::usage(format!(
                "gates.{name}: this name is one of Crucible's own gates"
            ))
            .hint("Give the gate another name, such as `tests`."));
        }
        let id = name
            .parse()
            .map_err(|error: crucible_verify::GateIdError| CommandError::usage(error.to_string()))?;
        let timeout = Duration::from_secs(config.number(&format!("gates.{name}.timeout_s")).max(1));
        let source =
            config.source(&format!("gates.{name}.command")).map(ToString::to_string).unwrap_or_default();
        let level = format!("gates.{name}.level");
        let level = match config.text(&level).unwrap_or_default() {
            "lite" => GateLevel::Lite,
            "full" => GateLevel::Full,
            other => {
                return Err(CommandError::usage(format!("{level} is {other:?}"))
                    .hint("It takes lite (every attempt is tried with it) or full (`crucible run land` runs it before it commits)."));
            }
        };
        gates.push(GateSpec { id, command, timeout, source, level });
    }
    if !gates.is_empty() && gates.iter().all(|gate| !gate.level.is_lite()) {
        return Err(CommandError::usage("no gate has the level lite, so nothing would prove a change")
            .hint("Give one of [gates.*] level = \"lite\"."));
    }
    Ok(gates)
}
