//! `crucible run start` and `crucible run new`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use clap::builder::{PossibleValuesParser, RangedI64ValueParser};
use crucible_ledger::Ledger;
use crucible_llm::{Backend, CallPool, Origin, ReceiptWarning};
use crucible_model::{EditFormat, ExitStatus};
use crucible_repo::TrackedFile;
use crucible_run::{
    FindMode, NamedPlaces, Opening, PackLimits, RunDir, RunError, RunObserver, RunOptions,
    RunSettings, RunState, World, advance, check_subject, create, is_definition_name, named_places,
    parameters_of_recording,
};
use crucible_sandbox::Sandbox;
use crucible_settings::Settings;

use crate::app::{App, strength, strengths};
use crate::commands::context::context_settings;
use crate::commands::gates::settings::{GateChoice, default_timeout};
use crate::commands::model;
use crate::commands::patch::patch_limits;
use crate::commands::run::clients::RunClient;
use crate::commands::run::council::ReadyCouncil;
use crate::commands::run::dispatch::{self, Proposer, RoleBackends};
use crate::commands::run::find::find_settings;
use crate::commands::run::{ENDS, conclude, shared_sandbox, world};
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
    /// Maximum attempts before the run fails [default: run.max_iterations, 4]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = limit_parser())]
    pub(crate) max_iterations: Option<u64>,
    /// Maximum candidates sampled for each attempt, until one is verified [default: run.candidates, 1]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = limit_parser())]
    pub(crate) candidates: Option<u64>,
    /// Minimum sandbox strength [default: sandbox.strength, required]
    #[arg(long, value_name = "STRENGTH", value_parser = strengths())]
    pub(crate) sandbox: Option<String>,
}

/// Start a run and advance it as far as possible
///
/// Your files do not change until `crucible run land`. For example: `crucible run start "fix the failing test
/// in parser" --repo . --provider gateway`
///
/// The gates are the commands of `--test`, such as `--test "npm test"`, else [gates] in the configuration,
/// else what `crucible gates` finds from the start directory.
#[derive(Args)]
#[command(after_help = ENDS)]
pub(crate) struct Start {
    #[command(flatten)]
    options: Options,
}

/// Create a run without advancing it
///
/// For example, to review its settings first: `crucible run new "fix the failing test in parser"`, then
/// `crucible run advance`.
#[derive(Args)]
pub(crate) struct New {
    #[command(flatten)]
    options: Options,
}

impl Start {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let mut progress = Progress::new(&app.output);
        let begun = app.block_on(begin(app, &self.options, |_| {}, &mut progress))?;
        if !app.output.is_json() {
            app.output
                .remark(&format!("run {}", begun.dir.root().display()));
        }
        let world = world(app, &begun.sandbox, &begun.config)?;
        let advanced = app.block_on(async {
            let (dir, ledger, advanced) = begun.advance(app, &world, None, &mut progress).await?;
            Ok((dir, ledger, advanced?))
        });
        progress.finish();
        let (dir, ledger, _) = advanced?;
        conclude(app, &dir, &ledger)
    }
}

impl New {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let mut progress = Progress::new(&app.output);
        let begun = app.block_on(begin(app, &self.options, |_| {}, &mut progress))?;
        progress.finish();
        conclude(app, &begun.dir, &begun.ledger)
    }
}

/// A run that was made, with the services that answer.
pub(crate) struct Begun {
    pub(crate) config: Settings,
    pub(crate) sandbox: Arc<Sandbox>,
    models: BTreeMap<String, Backend>,
    council: Option<ReadyCouncil>,
    pub(crate) dir: RunDir,
    pub(crate) ledger: Ledger,
}

impl Begun {
    /// Takes the run as far as it goes, within `pool` where several runs share one. What stopped it stands beside its directory and ledger.
    pub(crate) async fn advance(
        self,
        app: &App,
        world: &World<'_>,
        pool: Option<Arc<CallPool>>,
        witness: &mut dyn RunObserver,
    ) -> Result<(RunDir, Ledger, Result<RunState, RunError>), CommandError> {
        let Self {
            config,
            mut models,
            council,
            dir,
            mut ledger,
            ..
        } = self;
        let ledger_path = app.ledger_path()?;
        let client = RunClient::new(app, world, &ledger_path, &dir, &config)?.with_council(council);
        let open = |opening: &Opening<'_>| {
            let ready = |name: &str| {
                models.remove(name).ok_or_else(|| RunError::NoClient {
                    name: name.to_owned(),
                })
            };
            client.within(pool).open(ready, opening)
        };
        let advanced = advance(world, &dir, open, &mut ledger, witness).await;
        Ok((dir, ledger, advanced))
    }
}

/// Makes a run; `adjust` has the last word on what it is started with.
pub(crate) async fn begin(
    app: &App,
    options: &Options,
    adjust: impl FnOnce(&mut RunOptions),
    witness: &mut dyn RunObserver,
) -> Result<Begun, CommandError> {
    let repo = app.absolute(&options.repo);
    if options.goal.len() > MAX_GOAL {
        let message = format!(
            "the goal has {} bytes; the limit is {MAX_GOAL}",
            options.goal.len()
        );
        return Err(CommandError::new(ExitStatus::OverLimit, message)
            .hint("Shorten it; name documents with the details in [context] mandatory."));
    }
    if repo.to_str().is_none() {
        // A run's record is JSON and names its repository.
        let message = format!("the repository's path is not UTF-8: {}", repo.display());
        return Err(CommandError::usage(message)
            .hint("Rename the directory, or work in a clone elsewhere."));
    }
    let config = app.config(&repo, &options.flags())?;
    require_controlled(&config)?;
    let sandbox = shared_sandbox(app);
    model::check_budget(&config)?;
    let cast = RoleBackends::of(
        app,
        &config,
        &sandbox,
        options.dispatch.as_deref(),
        options.cassette.as_deref(),
    )?;
    let world = world(app, &sandbox, &config)?;
    let git = world.repository(&repo).await?;
    let named = match options.files.is_empty() {
        true => NamedPlaces::default(),
        false => named(app, options, &repo, &git.tracked_files().await?)?,
    };
    let mut run_options = run_options(app, options, named, &config, &cast)?;
    adjust(&mut run_options);
    let mut ledger = app.ledger()?;
    let id = create(&world, &git, run_options, &mut ledger, witness).await?;
    let dir = RunDir::of(&world.runs_root, &id);
    Ok(Begun {
        config,
        sandbox: Arc::clone(&sandbox),
        models: cast.models,
        council: cast.council,
        dir,
        ledger,
    })
}

impl Options {
    fn flags(&self) -> Vec<(&'static str, String)> {
        let mut flags = Vec::new();
        let mut add = |key, value: Option<String>| flags.extend(value.map(|value| (key, value)));
        add("llm.provider", self.provider.clone());
        add("llm.fallback_provider", self.fallback_provider.clone());
        add("dispatch.mode", self.mode.clone());
        add(
            "run.max_iterations",
            self.max_iterations.map(|number| number.to_string()),
        );
        add(
            "run.candidates",
            self.candidates.map(|number| number.to_string()),
        );
        add("sandbox.strength", self.sandbox.clone());
        add(
            "llm.replay.cassette",
            self.cassette
                .as_ref()
                .map(|path| path.display().to_string()),
        );
        flags
    }
}

/// Refuses any other way than that in which Crucible alone acts on what a model says.
pub(crate) fn require_controlled(config: &Settings) -> Result<(), CommandError> {
    let named = config.llm.execution_strategy.as_deref().unwrap_or_default();
    match named.parse::<crucible_llm::ExecutionStrategy>() {
        Ok(_) => Ok(()),
        Err(error) => Err(CommandError::usage(error.to_string())
            .hint("Set [llm] execution_strategy = \"controlled\".")),
    }
}

/// The files and directories that the operator names, each once.
fn named(
    app: &App,
    options: &Options,
    repo: &Path,
    tracked: &[TrackedFile],
) -> Result<NamedPlaces, CommandError> {
    let places = named_places(&options.files, tracked).map_err(|(text, error)| {
        CommandError::usage(format!("--file {text:?}: {error}"))
            .hint("Name files, directories or globs relative to the repository's top directory.")
    })?;
    let top = app.repository_of(repo);
    for path in &places.new {
        match top.as_ref().map(|top| top.join(path.as_str())) {
            Some(place) if place.is_dir() => {
                return Err(CommandError::usage(format!(
                    "--file {path:?}: git tracks nothing in this directory"
                ))
                .hint("Name the files that the model may create in it."));
            }
            Some(place) if place.symlink_metadata().is_err() => {
                app.output.remark(&format!(
                    "note: file {path} does not exist yet; the model may create it"
                ));
            }
            _ => {}
        }
    }
    Ok(places)
}

fn run_options(
    app: &App,
    options: &Options,
    named: NamedPlaces,
    config: &Settings,
    cast: &RoleBackends,
) -> Result<RunOptions, CommandError> {
    let proposer = proposer(app, options, config, cast);
    let start = app.absolute(&options.repo);
    let choice = GateChoice::new(&options.tests, app.repository_of(&start).as_deref(), &start);
    let agents = dispatch::agents(app, config, cast.dispatch.as_ref())?;
    let wanted = edit_format(config)?;
    let (pack, context_window) = pack_limits(config, &proposer.name)?;
    let settings = RunSettings {
        edit_format: match proposer
            .backend
            .map(|backend| (backend.origin(), backend.capabilities()))
        {
            Some((Origin::Live, best)) => wanted.unwrap_or(best.edit_format),
            // A recording answers only as it was asked.
            Some((Origin::Recording | Origin::Unpaid, own)) => own.edit_format,
            // What no model writes is a diff (D14).
            None => EditFormat::UnifiedDiff,
        },
        parameters: proposer
            .backend
            .map(|backend| parameters(config, &proposer.name, backend))
            .unwrap_or_default(),
        provider: proposer.name,
        model: proposer.model,
        role_models: proposer.of_roles,
        model_timeout_s: limit("llm.timeout_s", config.llm.timeout_s)?,
        max_calls: config.budget.calls,
        gates: choice.named(config)?,
        sandbox: strength(config)?,
        patch: patch_limits(config),
        max_files: pack.max_files,
        max_total_bytes: pack.max_total_bytes,
        context_window,
        max_iterations: limit("run.max_iterations", config.run.max_iterations)?,
        max_malformed: config.run.max_malformed.min(u64::from(u32::MAX)),
        max_file_requests: config.run.max_file_requests.min(u64::from(u32::MAX)),
        candidates: limit("run.candidates", config.run.candidates)?,
        named: named.files,
        directories: named.directories,
        message: options.message.clone(),
        may_drop: options.may_drop.clone(),
        context: context_settings(config)?,
        dispatch: cast.dispatch.clone(),
        agents,
        web: match find_settings(config)? {
            FindMode::ResolverOnly => None,
            FindMode::ResolverPlusWeb(web) => Some(web),
        },
    };
    Ok(RunOptions {
        goal: options.goal.clone(),
        settings,
        found_gate_timeout: default_timeout(),
        started_in: choice.directory,
        answers: cast.answers.clone(),
        warnings: cast
            .fell_back
            .iter()
            .map(ReceiptWarning::fallback)
            .collect(),
    })
}

/// Who proposes the changes, and which model each role asks. A model that the command line names is asked by every role of the
/// configured provider, and means nothing to another one: where it has no effect, that is reported.
fn proposer<'c>(
    app: &App,
    options: &Options,
    config: &Settings,
    cast: &'c RoleBackends,
) -> Proposer<'c> {
    let provider = config.llm.provider.as_deref().unwrap_or_default();
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
                "note: the fallback uses its own model {asked}, not {wanted}"
            ));
        }
        Some(wanted) if !is_asked(wanted) => {
            app.output.remark(&format!(
                "note: the model {wanted} is not used: its provider serves no role of this run"
            ));
        }
        Some(_) | None => {}
    }
    proposer
}

/// How much of the repository a provider's model may see at first, and the window of the model where that is known and counts. What
/// the user sets lowers what follows from the window.
pub(crate) fn pack_limits(
    config: &Settings,
    provider: &str,
) -> Result<(PackLimits, Option<u64>), CommandError> {
    let (files, bytes) = ("run.max_files", "run.max_total_bytes");
    let set = PackLimits {
        max_files: limit(files, config.run.max_files)?,
        max_total_bytes: limit(bytes, config.run.max_total_bytes)?,
    };
    let section = config.provider(provider);
    let window = section.context_window;
    if window == 0 {
        return Ok((set, None));
    }
    let mut limits = PackLimits::for_window(
        window,
        section.max_tokens,
        config.run.max_file_requests,
        set,
    );
    if config.is_set(files) {
        limits.max_files = limits.max_files.min(set.max_files);
    }
    if config.is_set(bytes) {
        limits.max_total_bytes = limits.max_total_bytes.min(set.max_total_bytes);
    }
    Ok((limits, Some(window)))
}

/// The parameters of each question for a change.
pub(crate) fn parameters(
    config: &Settings,
    provider: &str,
    backend: &Backend,
) -> BTreeMap<String, serde_json::Value> {
    let mut parameters = parameters_of_recording(backend.parameters());
    let max_tokens = config.provider(provider).max_tokens;
    if max_tokens > 0 {
        parameters.insert("max_tokens".to_owned(), max_tokens.into());
    }
    if let Some(temperature) = model::temperature(config, provider) {
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
        false => Err("not a plain name of a definition, such as `helper`".to_owned()),
    }
}

/// Reads the subject of a commit.
pub(crate) fn subject(text: &str) -> Result<String, String> {
    check_subject(text)
        .map(|()| text.to_owned())
        .map_err(|error| error.to_string())
}

/// A limit that a run writes into its guardrails.
fn limit(key: &str, number: u64) -> Result<u64, CommandError> {
    if u32::try_from(number).is_ok_and(|number| number > 0) {
        return Ok(number);
    }
    Err(CommandError::usage(format!("{key} is no limit"))
        .hint("It takes a whole number from 1 to 4294967295."))
}

fn edit_format(config: &Settings) -> Result<Option<EditFormat>, CommandError> {
    let Some(name) = config.run.edit_format.as_deref() else {
        return Ok(None);
    };
    serde_json::from_value(name.into()).map(Some).map_err(|_| {
        CommandError::usage(format!("run.edit_format is {name:?}"))
            .hint("It takes whole-file, search-replace, definitions or unified-diff.")
    })
}
