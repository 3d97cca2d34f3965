//! `crucible doctor`: what is installed, configured and missing, without asking any model.

use std::path::{Path, PathBuf};

use clap::Args;
use crucible_host::env::{ProgramError, find_program};
use crucible_llm::configured::strength;
use crucible_llm::doctor::{
    Configured, Diagnosis, KeyCheck, KeyState, KeyWanted, NeededBy, ProgramCheck, ProgramState,
    ProviderCheck, Readiness, examine, verdict,
};
use crucible_llm::{configured, registry};
use crucible_model::{Code, ExitStatus, Finding, Level, Outcome, Verdict, one_line};
use crucible_run::configured::{agents, configured_agents, configured_dispatch, needs_provider};
use crucible_run::{COUNCIL, RunRole, Service};
use crucible_sandbox::{LayerState, LayerStatus, Runtime, Strength};
use crucible_settings::{HookEntry, Settings, SkillAuthor};
use serde::Serialize;

use crate::app::App;
use crate::error::CommandError;
use crate::table::table;

/// The schema of the result as JSON, described in `docs/contracts/doctor.schema.json`.
const SCHEMA: &str = "crucible-doctor-v2";

/// Check what is missing, installed and configured
///
/// Checks every provider, the programs that Crucible uses and the layers of the sandbox. Programs print their
/// version in the sandbox, without a network. No model is called and no connection is opened, so a server is
/// `not probed` at best. Use `crucible models --online` to contact servers.
///
/// Missing parts come first, one per line, with the command that fixes each.
///
/// Exit code 2: something configured cannot work, or git or a required layer of the sandbox is missing.
/// Configured parts are the provider and its fallback, the providers of the council, of crawls and of the
/// dispatch, hooks and the programs of skills. Exit code 0: nothing is missing; an unset provider is only a
/// warning.
///
/// For example: `crucible doctor --repo .`, or `crucible doctor --json` for all details of each program.
#[derive(Args)]
pub(crate) struct Doctor {
    /// Use the configuration of the project in this directory
    #[arg(long, default_value = ".", value_name = "DIR")]
    repo: PathBuf,
}

/// The finding that no provider is chosen.
const PROVIDER_UNSET: &str = "doctor-provider-unset";
/// A program or model that serves a role of a run is missing.
const DISPATCH_UNREADY: Code = Code::new("doctor-dispatch-unready");
/// A program that the configuration names is not there.
const PROGRAM_MISSING: Code = Code::new("doctor-program-missing");

/// Reads the name of a provider from the settings.
type ProviderOf = fn(&Settings) -> Option<&str>;

/// Settings that name another provider than `llm.provider`, for what, and what `doctor` calls it.
const OTHERS: [(ProviderOf, &str, &str, &str); 3] = [
    (
        |config| config.council.provider.as_deref(),
        "council.provider",
        "a council",
        "council",
    ),
    (
        |config| config.crawl.gpt_provider.as_deref(),
        "crawl.gpt_provider",
        "the plans of a crawl",
        "crawl plan",
    ),
    (
        |config| config.crawl.claude_provider.as_deref(),
        "crawl.claude_provider",
        "the reviews of a crawl",
        "crawl check",
    ),
];

/// The result as JSON.
#[derive(Serialize)]
struct Document<'a> {
    schema_version: &'static str,
    verdict: Outcome,
    findings: &'a [Finding],
    choice: Choice<'a>,
    providers: &'a [ProviderCheck],
    programs: &'a [ProgramCheck],
    sandbox: Walls<'a>,
}

/// Who is to answer, and who would.
#[derive(Serialize)]
struct Choice<'a> {
    provider: Option<&'a str>,
    /// Where the choice was made.
    source: Option<String>,
    fallback: Option<&'a str>,
    /// The one of them that could answer.
    answers: Option<&'a str>,
    /// How ready that one is, in words.
    #[serde(skip)]
    state: &'static str,
}

#[derive(Serialize)]
struct Walls<'a> {
    strength: Strength,
    layers: &'a [LayerStatus],
}

impl Doctor {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let config = app.config_of(&self.repo)?;
        let strength = strength(&config)?;
        let runtime = app.runtime();
        let settings = registry().iter().map(|kind| {
            (
                kind.name().to_owned(),
                configured::provider_settings(&runtime, &config, kind.name()),
            )
        });
        let configured = Configured {
            settings: settings.collect(),
            provider: config.llm.provider.clone().unwrap_or_default(),
            fallback: config.llm.fallback_provider.clone().unwrap_or_default(),
            strategy: config.llm.execution_strategy.clone().unwrap_or_default(),
        };
        // Prices and limits that cannot be read would refuse a run, too.
        configured::check_budget(&config)?;
        let context = configured::context(&runtime, &config)?;
        let mut seen =
            app.block_on(async { Ok(examine(&configured, strength, &context).await) })?;
        let mut verdict = chosen_or_needless(&runtime, &config, verdict(&seen));
        let others: Vec<String> = OTHERS
            .into_iter()
            .filter_map(|(setting, key, purpose, name)| {
                let chosen = other(
                    &mut seen,
                    &config,
                    (setting(&config)?, key),
                    purpose,
                    &mut verdict,
                )?;
                Some(format!("{name:<11}{chosen}"))
            })
            .collect();
        served(&runtime, &mut seen, &config, &mut verdict);
        configured_programs(app, &self.repo, &config, &mut seen, &mut verdict);
        let choice = Choice::new(&seen, &config, "llm.provider");
        if app.output.is_json() {
            app.output.json(&Document {
                schema_version: SCHEMA,
                verdict: verdict.outcome(),
                findings: verdict.findings(),
                choice,
                providers: &seen.providers,
                programs: &seen.programs,
                sandbox: Walls {
                    strength,
                    layers: &seen.layers.layers,
                },
            })?;
        } else {
            missing(app, &verdict);
            show(app, &seen, &choice, &others);
        }
        Ok(if verdict.passes() {
            ExitStatus::Success
        } else {
            ExitStatus::Usage
        })
    }
}

/// Where the dispatch leaves nothing of a run to a provider, that none is chosen is worth knowing and no more: other commands ask one.
fn chosen_or_needless(runtime: &Runtime<'_>, config: &Settings, found: Verdict) -> Verdict {
    if needs_provider(runtime, config) {
        return found;
    }
    let lowered = found
        .findings()
        .iter()
        .map(|finding| match finding.code.as_str() {
            PROVIDER_UNSET => Finding {
                level: Level::Info,
                ..finding.clone()
            },
            _ => finding.clone(),
        });
    Verdict::new(lowered.collect())
}

/// The findings on the provider that this setting names, if it is another than that of a run. It is configured, so what it lacks is
/// as weighty as there.
fn other(
    seen: &mut Diagnosis,
    config: &Settings,
    (name, key): (&str, &str),
    purpose: &str,
    found: &mut Verdict,
) -> Option<String> {
    if name == seen.provider {
        return None;
    }
    let fallback = config
        .llm
        .fallback_provider
        .as_deref()
        .filter(|other| *other != name)
        .unwrap_or_default();
    let provider_of_runs = std::mem::replace(&mut seen.provider, name.to_owned());
    let fallback_of_runs = std::mem::replace(&mut seen.fallback, fallback.to_owned());
    let told = Choice::new(seen, config, key).to_text();
    for finding in verdict(seen).findings() {
        if !found.findings().contains(finding) {
            found.push(Finding {
                subject: format!("for {purpose}: {}", finding.subject),
                ..finding.clone()
            });
        }
    }
    seen.provider = provider_of_runs;
    seen.fallback = fallback_of_runs;
    Some(told)
}

/// Looks for the programs that other settings name: hooks, and those of skills.
fn configured_programs(
    app: &App,
    repo: &Path,
    config: &Settings,
    seen: &mut Diagnosis,
    found: &mut Verdict,
) {
    let start = app.absolute(repo);
    let root = app.repository_of(&start).unwrap_or(start);
    let first = |command: &[String], key: String| Some((command.first()?.clone(), key));
    let hook =
        |(name, hook): (&String, &HookEntry)| first(&hook.command, format!("hooks.{name}.command"));
    let mut named: Vec<_> = config.hooks.iter().filter_map(hook).collect();
    let forge = &config.forge;
    if forge.agent.get() == Ok(SkillAuthor::Command) {
        named.extend(first(
            &forge.agent_command,
            "forge.agent_command".to_owned(),
        ));
    }
    named.extend(
        forge
            .python
            .iter()
            .map(|python| (python.clone(), "forge.python".to_owned())),
    );
    for (program, key) in named {
        let path = app.env.get_os("PATH").unwrap_or_default();
        let place = find_program(Path::new(&program), &root, path);
        if let Err(error) = &place {
            let hint = format!("Install it, or set {key} to an installed program.");
            found.push(Finding::error(
                PROGRAM_MISSING,
                format!("{program}: {error}"),
                hint,
            ));
        }
        seen.programs.push(configured_program(program, key, place));
    }
}

/// What was seen of a program that a setting names; it is not asked for its version.
fn configured_program(
    name: String,
    key: String,
    place: Result<PathBuf, ProgramError>,
) -> ProgramCheck {
    let (state, problem) = match &place {
        Ok(_) => (ProgramState::Found, None),
        Err(ProgramError::NotFound { .. }) => (ProgramState::Missing, place.as_ref().err()),
        Err(ProgramError::IsDirectory { .. } | ProgramError::NotExecutable { .. }) => {
            (ProgramState::Unusable, place.as_ref().err())
        }
    };
    ProgramCheck {
        name,
        needed_by: NeededBy::SomeCommands,
        state,
        problem: problem.map(ToString::to_string),
        path: place.ok().map(|place| place.to_string_lossy().into_owned()),
        searched: Vec::new(),
        version: None,
        says: None,
        isolation: None,
        install: format!("set {key}"),
        purpose: key,
    }
}

/// Checks who serves roles of a run besides its provider: a run would refuse to begin without them.
fn served(runtime: &Runtime<'_>, seen: &mut Diagnosis, config: &Settings, found: &mut Verdict) {
    let unready = |subject: String, hint: String| Finding::error(DISPATCH_UNREADY, subject, hint);
    // That no provider is chosen is said elsewhere; here any does.
    let is_unset = seen.provider.is_empty() && needs_provider(runtime, config);
    let provider = if is_unset { "gateway" } else { &seen.provider };
    let chosen = configured_dispatch(runtime, config, provider).map_err(CommandError::from);
    let looked = chosen.map(|chosen| (agents(runtime.env, config, chosen.as_ref()), chosen));
    let (agents, Some(chosen)) = (match looked {
        Ok(looked) => looked,
        Err(error) => return found.push(unready(error.message, error.hints.join(" "))),
    }) else {
        return;
    };
    if let Err(error) = agents {
        let error = CommandError::from(error);
        found.push(unready(error.message, error.hints.join(" ")));
    }
    let mut serving = chosen.clients();
    if serving.contains(COUNCIL) {
        // The council's own provider answers for it.
        serving.extend(config.council.provider.clone());
    }
    let lacks = seen
        .providers
        .iter()
        .filter(|check| check.provider != provider && serving.contains(&check.provider));
    for (check, problem) in lacks.filter_map(|check| Some((check, check.lacks()?))) {
        found.push(unready(
            format!("{}, which serves a role: {}", check.provider, problem.what),
            problem.next.clone(),
        ));
    }
    let commands = configured_agents(config).unwrap_or_default();
    let roles = RunRole::ALL
        .into_iter()
        .filter(|role| chosen.service(*role) == Service::ApiAgent);
    for (role, program) in roles.filter_map(|role| Some((role, commands.of(role).first()?))) {
        let place = runtime.env.find_program(program);
        seen.programs.push(ProgramCheck {
            purpose: format!("the role {}", role.name()),
            install: "set its command in [dispatch]".to_owned(),
            ..configured_program(program.clone(), String::new(), place)
        });
    }
}

impl<'a> Choice<'a> {
    /// The choice that this key makes.
    fn new(seen: &'a Diagnosis, config: &Settings, key: &str) -> Self {
        let named = |name: &'a str| Some(name).filter(|name| !name.is_empty());
        let provider = named(&seen.provider);
        Self {
            provider,
            source: provider.and(config.source(key)).map(ToString::to_string),
            fallback: named(&seen.fallback),
            answers: seen.answers().map(|check| check.provider.as_str()),
            state: seen
                .answers()
                .map_or("not ready", |check| state(check.readiness)),
        }
    }
}

impl Choice<'_> {
    fn to_text(&self) -> String {
        let Some(name) = self.provider else {
            return "none chosen".to_owned();
        };
        let source = self
            .source
            .as_ref()
            .map(|source| format!(" ({source})"))
            .unwrap_or_default();
        let state = match self.answers {
            Some(answers) if answers == name => self.state.to_owned(),
            Some(other) => format!("not ready; its fallback {other} is {}", self.state),
            None => "not ready".to_owned(),
        };
        format!("{name}{source}, {state}")
    }
}

fn state(readiness: Readiness) -> &'static str {
    match readiness {
        Readiness::Ready => "ready",
        Readiness::Unprobed => "not probed",
        Readiness::NotReady => "not ready",
    }
}

/// What is missing, the weightiest first, a line each.
fn missing(app: &App, verdict: &Verdict) {
    let mut findings: Vec<&Finding> = verdict.findings().iter().collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.level));
    findings
        .iter()
        .for_each(|finding| app.output.finding_line(finding));
    if !findings.is_empty() {
        app.output.line("");
    }
}

/// The tables, and below them what would make more providers ready.
fn show(app: &App, seen: &Diagnosis, choice: &Choice<'_>, others: &[String]) {
    let mut providers = table(["provider", "state", "model", "program or address", "key"]);
    for check in &seen.providers {
        let state = state(check.readiness);
        let model = check.model.clone().unwrap_or_default();
        providers
            .add_row([&check.provider, state, &model, &place(check), &key(check)].map(one_line));
    }
    let mut programs = table(["program", "version", "where", "for"]);
    for check in &seen.programs {
        let row = [
            check.name.as_str(),
            &version(check),
            &found(check),
            &check.purpose,
        ];
        programs.add_row(row.map(one_line));
    }
    let mut layers = table(["sandbox", "state", "by"]);
    for layer in &seen.layers.layers {
        let state = match layer.state {
            LayerState::Available => "available",
            LayerState::Missing => "missing",
        };
        layers.add_row([layer.layer.to_string().as_str(), state, &layer.detail].map(one_line));
    }
    for table in [providers, programs, layers] {
        app.output.line(&format!("{}\n", table.trim_fmt()));
    }
    let places = searched(seen);
    if !places.is_empty() {
        app.output.line(&format!("searched   {}", places.join(" ")));
    }
    app.output
        .line(&format!("provider   {}", one_line(&choice.to_text())));
    others
        .iter()
        .for_each(|other| app.output.line(&one_line(other)));
    let others = seen
        .providers
        .iter()
        .filter(|check| check.provider != seen.provider);
    for (check, problem) in others.filter_map(|check| Some((check, check.lacks()?))) {
        app.output.line(&one_line(&format!(
            "to use {}: {}; {}",
            check.provider, problem.what, problem.next
        )));
    }
}

/// Where the missing programs were looked for: the directory of each that was asked for by its name, and a path as it is.
fn searched(seen: &Diagnosis) -> Vec<String> {
    let clients = seen
        .providers
        .iter()
        .filter_map(|check| check.program.as_ref());
    let mut places: Vec<String> = Vec::new();
    for check in seen.programs.iter().chain(clients) {
        for file in &check.searched {
            let directory = Path::new(file).parent().and_then(Path::to_str);
            let place = one_line(
                directory
                    .filter(|_| !check.name.contains('/'))
                    .unwrap_or(file),
            );
            if !places.contains(&place) {
                places.push(place);
            }
        }
    }
    places
}

/// What a provider is reached by.
fn place(check: &ProviderCheck) -> String {
    let program = check
        .program
        .as_ref()
        .map(|program| format!("{} {}", found(program), version(program)));
    let named = program
        .as_ref()
        .or(check.base_url.as_ref())
        .or(check.recording.as_ref());
    named.map_or("-", |place| place.trim_end()).to_owned()
}

fn found(program: &ProgramCheck) -> String {
    match (program.state, &program.path) {
        (ProgramState::Missing, _) | (_, None) => "not found".to_owned(),
        (ProgramState::Unusable | ProgramState::Found, Some(path)) => path.clone(),
    }
}

fn version(program: &ProgramCheck) -> String {
    let told = program.version.as_ref().or(program.says.as_ref());
    match (told, program.state) {
        (Some(told), _) => told.clone(),
        (None, ProgramState::Missing) => String::new(),
        (None, ProgramState::Found | ProgramState::Unusable) => "(not reported)".to_owned(),
    }
}

fn key(check: &ProviderCheck) -> String {
    let Some(KeyCheck {
        variable,
        state,
        wanted,
    }) = &check.key
    else {
        return "-".to_owned();
    };
    let state = match state {
        KeyState::Set => "set",
        KeyState::Empty => "empty",
        KeyState::NotText => "not text",
        KeyState::Unset => "not set",
    };
    match (variable, wanted) {
        (Some(variable), KeyWanted::Required | KeyWanted::Optional) => {
            format!("{variable} {state}")
        }
        (Some(variable), KeyWanted::OwnLogin) => format!("own login ({variable} {state})"),
        (None, KeyWanted::OwnLogin) => "own login".to_owned(),
        (None, KeyWanted::Required) => "no variable named".to_owned(),
        (None, KeyWanted::Optional) => "none wanted".to_owned(),
    }
}
