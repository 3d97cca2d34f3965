//! Checks what runs and other commands need: providers, programs, the sandbox, and the services of roles.
//!
//! No model is called and no connection is opened.

use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};

use crucible_host::env::{ProgramError, find_program};
use crucible_llm::configured::{self, strength};
use crucible_llm::doctor::{
    Configured, Diagnosis, NeededBy, ProgramCheck, ProgramState, ProviderCheck, Readiness, examine,
    verdict,
};
use crucible_llm::registry;
use crucible_model::{Code, Failure, Finding, Level, Outcome, Verdict};
use crucible_sandbox::{LayerStatus, Runtime, Strength};
use crucible_settings::{HookEntry, Settings, SkillAuthor};
use serde::Serialize;

use crate::configured::{agents, configured_agents, configured_dispatch, needs_provider};
use crate::contract::{COUNCIL, RunRole, Service};
use crate::gate_programs;

/// The schema of the result, described in `docs/contracts/doctor.schema.json`.
const SCHEMA: &str = "crucible-doctor-v2";

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

/// The result of all checks.
pub struct Examination {
    /// What was found of providers, programs and the sandbox.
    pub diagnosis: Diagnosis,
    /// What is missing.
    pub verdict: Verdict,
    /// The provider of runs.
    pub choice: ProviderChoice,
    /// The providers that other settings name, with what they are for.
    pub others: Vec<(&'static str, ProviderChoice)>,
}

/// A chosen provider.
#[derive(Debug, Clone, Serialize)]
pub struct ProviderChoice {
    provider: Option<String>,
    /// Where the choice was made.
    source: Option<String>,
    fallback: Option<String>,
    /// The one of them that could answer.
    answers: Option<String>,
    /// How ready that one is.
    #[serde(skip)]
    state: &'static str,
}

/// The result as JSON.
#[derive(Serialize)]
pub struct ExaminationDocument<'a> {
    schema_version: &'static str,
    verdict: Outcome,
    findings: &'a [Finding],
    choice: &'a ProviderChoice,
    providers: &'a [ProviderCheck],
    programs: &'a [ProgramCheck],
    sandbox: SandboxState<'a>,
}

#[derive(Serialize)]
struct SandboxState<'a> {
    strength: Strength,
    layers: &'a [LayerStatus],
}

impl Examination {
    /// Checks everything that the settings of the project at `root` name.
    ///
    /// # Errors
    ///
    /// Fails if a setting cannot be used.
    pub async fn of_project(
        runtime: &Runtime<'_>,
        settings: &Settings,
        root: &Path,
    ) -> Result<Self, Failure> {
        let strength = strength(settings)?;
        let of_providers = registry().iter().map(|kind| {
            let name = kind.name();
            let of_provider = configured::provider_settings(runtime, settings, name);
            (name.to_owned(), of_provider)
        });
        let llm = &settings.llm;
        let configured = Configured {
            settings: of_providers.collect(),
            provider: llm.provider.clone().unwrap_or_default(),
            fallback: llm.fallback_provider.clone().unwrap_or_default(),
            strategy: llm.execution_strategy.clone().unwrap_or_default(),
        };
        // Prices and limits that cannot be read would refuse a run, too.
        configured::check_budget(settings)?;
        let context = configured::context(runtime, settings)?;
        let mut seen = examine(&configured, strength, &context).await;
        gate_programs::drop_unused_skill_tools(&mut seen, settings, root);
        let mut verdict = chosen_or_needless(runtime, settings, verdict(&seen));
        let mut others = Vec::new();
        for (setting, key, purpose, name) in OTHERS {
            if let Some(provider) = setting(settings) {
                let named = (provider, key);
                let choice = other(&mut seen, settings, named, purpose, &mut verdict);
                others.extend(choice.map(|choice| (name, choice)));
            }
        }
        served(runtime, &mut seen, settings, &mut verdict);
        configured_programs(runtime, root, settings, &mut seen, &mut verdict);
        gate_programs::add_gate_programs(runtime, root, settings, &mut seen, &mut verdict);
        let choice = ProviderChoice::new(&seen, settings, "llm.provider");
        Ok(Self {
            diagnosis: seen,
            verdict,
            choice,
            others,
        })
    }

    /// Returns the result as JSON.
    #[must_use]
    pub fn document(&self) -> ExaminationDocument<'_> {
        ExaminationDocument {
            schema_version: SCHEMA,
            verdict: self.verdict.outcome(),
            findings: self.verdict.findings(),
            choice: &self.choice,
            providers: &self.diagnosis.providers,
            programs: &self.diagnosis.programs,
            sandbox: SandboxState {
                strength: self.diagnosis.strength,
                layers: &self.diagnosis.layers.layers,
            },
        }
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
) -> Option<ProviderChoice> {
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
    let choice = ProviderChoice::new(seen, config, key);
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
    Some(choice)
}

/// Looks for the programs that other settings name: hooks, and those of skills.
fn configured_programs(
    runtime: &Runtime<'_>,
    root: &Path,
    config: &Settings,
    seen: &mut Diagnosis,
    found: &mut Verdict,
) {
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
        let path = runtime.env.get_os("PATH").unwrap_or_default();
        let place = find_program(Path::new(&program), root, path);
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
    let chosen = configured_dispatch(runtime, config, provider);
    let looked = chosen.map(|chosen| (agents(runtime.env, config, chosen.as_ref()), chosen));
    let (agents, Some(chosen)) = (match looked {
        Ok(looked) => looked,
        Err(error) => return found.push(unready(error.message, error.hints.join(" "))),
    }) else {
        return;
    };
    if let Err(error) = agents {
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
    for (role, program) in roles.filter_map(|role| Some((role, commands.command(role).first()?))) {
        let place = runtime.env.find_program(program);
        seen.programs.push(ProgramCheck {
            purpose: format!("the role {}", role.name()),
            install: "set its command in [dispatch]".to_owned(),
            ..configured_program(program.clone(), String::new(), place)
        });
    }
}

impl ProviderChoice {
    /// The choice that this key makes.
    fn new(seen: &Diagnosis, settings: &Settings, key: &str) -> Self {
        let named = |name: &str| Some(name.to_owned()).filter(|name| !name.is_empty());
        let provider = named(&seen.provider);
        Self {
            source: provider
                .as_ref()
                .and(settings.source(key))
                .map(ToString::to_string),
            provider,
            fallback: named(&seen.fallback),
            answers: seen.answers().map(|check| check.provider.clone()),
            state: seen
                .answers()
                .map_or("not ready", |check| readiness(check.readiness)),
        }
    }
}

impl Display for ProviderChoice {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(name) = &self.provider else {
            return f.write_str("none chosen");
        };
        f.write_str(name)?;
        if let Some(source) = &self.source {
            write!(f, " ({source})")?;
        }
        match &self.answers {
            Some(answers) if answers == name => write!(f, ", {}", self.state),
            Some(other) => write!(f, ", not ready; its fallback {other} is {}", self.state),
            None => f.write_str(", not ready"),
        }
    }
}

/// Returns the readiness of a provider in words.
#[must_use]
pub fn readiness(readiness: Readiness) -> &'static str {
    match readiness {
        Readiness::Ready => "ready",
        Readiness::Unprobed => "not probed",
        Readiness::NotReady => "not ready",
    }
}
