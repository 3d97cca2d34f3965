//! Who serves which role of a new run: from `--dispatch`, `--mode` and the section `[dispatch]`; and with which
//! command or model.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use crucible_host::fs::read_regular_up_to;
use crucible_llm::{Backend, FellBack, construct};
use crucible_model::{ByteLimit, ExitStatus, Verdict};
use crucible_run::{
    API_AGENT, AgentCommands, AgentNetwork, AnswersFrom, DispatchBudgets, DispatchConfig,
    DispatchMode, DispatchVersion, RoleProvider, RunRole, Service, check_agents, stand_in,
};
use crucible_sandbox::Sandbox;
use crucible_secrets::Scanner;
use crucible_settings::{DispatchSection, Settings, Switch};

use crate::app::App;
use crate::commands::model;
use crate::commands::run::council::ReadyCouncil;
use crate::error::CommandError;

/// The largest dispatch configuration that is read.
const MAX_FILE: ByteLimit = ByteLimit(64 * 1024);

/// The provider that answers from a recording.
const REPLAY: &str = "replay";

/// Whom a new run asks.
pub(crate) struct RoleBackends {
    /// Who serves which role; nothing where nobody says anything, and the provider alone is asked.
    pub(crate) dispatch: Option<DispatchConfig>,
    /// The model providers that serve roles, each made ready, by name. No other is needed, or looked at.
    pub(crate) models: BTreeMap<String, Backend>,
    /// The council that serves roles, made ready, where one does.
    pub(crate) council: Option<ReadyCouncil>,
    /// That a fallback is used for the configured provider.
    pub(crate) fell_back: Option<FellBack>,
    /// Where the answers come from.
    pub(crate) answers: AnswersFrom,
}

impl RoleBackends {
    /// Looks who serves which role, and makes the models among them ready. `cassette` is the recording that the command line
    /// names.
    pub(crate) fn of(
        app: &App,
        config: &Settings,
        sandbox: &Arc<Sandbox>,
        file: Option<&Path>,
        cassette: Option<&Path>,
    ) -> Result<Self, CommandError> {
        let named = config.llm.provider.as_deref().unwrap_or_default();
        let mut dispatch = said(app, config, named, file)?;
        let asked = clients(dispatch.as_ref(), named);
        if cassette.is_some() && !asked.contains(REPLAY) {
            model::check_cassette(cassette, named)?;
            return Err(CommandError::usage(
                "--cassette has no effect: no role uses the provider `replay`",
            )
            .hint("Remove it, or assign a role to `replay`."));
        }
        let context = model::context(app, config, sandbox)?;
        let (mut models, mut fell_back, mut answers) =
            (BTreeMap::new(), None, AnswersFrom::Provider);
        if asked.contains(named) {
            let selected =
                model::selected_with(app, config, &context, named).map_err(|error| match named {
                    "" => error
                        .hint("Or answer the prompts yourself, without any provider: --mode manual_outbox."),
                    _ => error,
                })?;
            if selected.fell_back.is_some() {
                dispatch = said(app, config, &selected.candidate.name, file)?;
            }
            fell_back = selected.fell_back;
            answers = model::answers(&selected.candidate);
            models.insert(selected.candidate.name, selected.backend);
        }
        judge(dispatch.as_ref())?;
        let provider = fell_back
            .as_ref()
            .map_or(named, |fell_back| fell_back.fallback.as_str());
        for name in clients(dispatch.as_ref(), provider) {
            if models.contains_key(&name) || !matches!(Service::of(&name), Service::Model(_)) {
                continue;
            }
            let chosen = model::named(app, config, &name);
            models.insert(name, construct(&chosen.name, &chosen.settings, &context)?);
            if chosen.name == REPLAY {
                answers = model::answers(&chosen);
            }
        }
        let council = match &dispatch {
            Some(dispatch) => ReadyCouncil::of(app, config, dispatch, provider)?,
            None => None,
        };
        Ok(Self {
            dispatch,
            models,
            council,
            fell_back,
            answers,
        })
    }

    /// How changes are asked for: by the model that is patchmaker or fixer, and by the patchmaker if neither is a model.
    /// `chosen` is a model that the command line names, with the provider that it is of; that provider's roles ask it, and no other.
    pub(crate) fn proposer(&self, provider: &str, chosen: Option<&str>) -> Proposer<'_> {
        let dispatch = self
            .dispatch
            .clone()
            .unwrap_or_else(|| DispatchConfig::for_model(provider));
        let services = [RunRole::Patchmaker, RunRole::Fixer].map(|role| dispatch.service(role));
        let model = services
            .iter()
            .find(|service| matches!(service, Service::Model(_)));
        let service = model.unwrap_or(&services[0]);
        let name = service.client().unwrap_or_default().to_owned();
        let backend = self.models.get(&name);
        // Where no provider is configured, the one that proposes is meant.
        let owner = if provider.is_empty() {
            name.as_str()
        } else {
            provider
        };
        let chosen_of = |provider: &str| chosen.filter(|_| provider == owner);
        let asked = chosen_of(&name)
            .or(backend.map(Backend::default_model))
            .or(stand_in(service));
        let mut of_roles = match backend {
            Some(backend) if chosen_of(&name).is_none() => backend.phase_models().clone(),
            Some(_) | None => BTreeMap::new(),
        };
        for role in RunRole::ALL {
            match dispatch.service(role) {
                Service::Model(own) if own == name => {}
                Service::Model(other) => {
                    let Some(backend) = self.models.get(&other) else {
                        continue;
                    };
                    let own = || backend.phase_models().get(role.name()).map(String::as_str);
                    let asked = chosen_of(&other)
                        .or_else(own)
                        .unwrap_or(backend.default_model());
                    of_roles.insert(role.name().to_owned(), asked.to_owned());
                }
                // What no model of ours answers has no model.
                Service::LocalExec
                | Service::ManualOutbox
                | Service::ApiAgent
                | Service::Council => {
                    of_roles.remove(role.name());
                }
            }
        }
        Proposer {
            model: asked.unwrap_or_default().to_owned(),
            name,
            backend,
            of_roles,
        }
    }
}

/// Who proposes the changes of a run.
pub(crate) struct Proposer<'c> {
    /// The name of its service: a provider, or what stands for a person or a command.
    pub(crate) name: String,
    /// The model that is asked, or what stands for one.
    pub(crate) model: String,
    /// The model's backend; nothing where no model proposes.
    pub(crate) backend: Option<&'c Backend>,
    /// The models of roles that have one of their own, by the role's name.
    pub(crate) of_roles: BTreeMap<String, String>,
}

/// Who serves which role; nothing where nobody says anything, and the provider alone is asked.
pub(crate) fn dispatch(
    app: &App,
    config: &Settings,
    provider: &str,
) -> Result<Option<DispatchConfig>, CommandError> {
    let dispatch = said(app, config, provider, None)?;
    judge(dispatch.as_ref())?;
    Ok(dispatch)
}

/// Whether a new run asks the configured provider for anything, as far as the configuration can be read.
pub(crate) fn needs_provider(app: &App, config: &Settings) -> bool {
    // No provider has this name, so it stands for whichever is chosen.
    let unnamed = "";
    said(app, config, unnamed, None).map_or(true, |said| {
        clients(said.as_ref(), unnamed).contains(unnamed)
    })
}

/// The configuration of who serves which role, not yet judged.
fn said(
    app: &App,
    config: &Settings,
    provider: &str,
    file: Option<&Path>,
) -> Result<Option<DispatchConfig>, CommandError> {
    match file {
        Some(path) => read(&app.absolute(path)).map(Some),
        None => configured(config, provider),
    }
}

/// Refuses a dispatch that cannot hold, before a run is made that nobody could advance.
fn judge(dispatch: Option<&DispatchConfig>) -> Result<(), CommandError> {
    let Some(dispatch) = dispatch else {
        return Ok(());
    };
    let providers: Vec<&str> = crucible_llm::registry()
        .iter()
        .map(|kind| kind.name())
        .collect();
    refuse(
        &dispatch.check(&providers),
        "See docs/contracts/dispatch_config.md for who can serve which role.",
    )
}

/// The clients of a run's roles, by name.
fn clients(dispatch: Option<&DispatchConfig>, provider: &str) -> BTreeSet<String> {
    dispatch.map_or_else(
        || DispatchConfig::for_model(provider).clients(),
        DispatchConfig::clients,
    )
}

fn read(path: &Path) -> Result<DispatchConfig, CommandError> {
    let bytes = read_regular_up_to(path, MAX_FILE)?;
    serde_json::from_slice(&bytes).map_err(|error| {
        CommandError::new(
            ExitStatus::Schema,
            format!(
                "{} is not a valid dispatch configuration: {error}",
                path.display()
            ),
        )
        .hint("docs/contracts/dispatch_config.md shows one.")
    })
}

/// What the section `[dispatch]` says; nothing where it says nothing.
fn configured(config: &Settings, provider: &str) -> Result<Option<DispatchConfig>, CommandError> {
    let mode = config.dispatch.mode.as_deref().map(mode).transpose()?;
    let mut listed = BTreeMap::new();
    for role in RunRole::ALL {
        if let Some(service) = service_of(&config.dispatch, role) {
            listed.insert(role, RoleProvider(service.clone()));
        }
    }
    if mode.is_none() && listed.is_empty() {
        return Ok(None);
    }
    let mut dispatch = DispatchConfig::for_model(provider);
    if let Some(mode) = mode {
        dispatch.mode = mode;
        if mode != DispatchMode::LocalExec {
            for role in [RunRole::Patchmaker, RunRole::Fixer] {
                dispatch
                    .role_providers
                    .insert(role, RoleProvider(mode.name().to_owned()));
            }
        }
    }
    dispatch.role_providers.extend(listed);
    dispatch.schema_version = DispatchVersion::V1;
    dispatch.budgets = DispatchBudgets {
        max_outbox_prompts: config.dispatch.max_outbox_prompts,
    };
    Ok(Some(dispatch))
}

/// The service that the configuration names for a role.
fn service_of(section: &DispatchSection, role: RunRole) -> Option<&String> {
    let service = match role {
        RunRole::Chair => &section.chair,
        RunRole::ContractGuardian => &section.contract_guardian,
        RunRole::CostController => &section.cost_controller,
        RunRole::Researcher => &section.researcher,
        RunRole::Patchmaker => &section.patchmaker,
        RunRole::Fixer => &section.fixer,
        RunRole::Librarian => &section.librarian,
    };
    service.as_ref()
}

fn mode(name: &str) -> Result<DispatchMode, CommandError> {
    serde_json::from_value(name.into()).map_err(|_| {
        CommandError::usage(format!("dispatch.mode is {name:?}"))
            .hint("It takes manual_outbox, ollama_agent, api_agent or local_exec.")
    })
}

/// The commands that serve roles, where the dispatch names any: each there, and without a secret in it.
pub(crate) fn agents(
    app: &App,
    config: &Settings,
    dispatch: Option<&DispatchConfig>,
) -> Result<AgentCommands, CommandError> {
    let Some(dispatch) = dispatch.filter(|dispatch| dispatch.clients().contains(API_AGENT)) else {
        return Ok(AgentCommands::default());
    };
    let agents = configured_agents(config)?;
    refuse(
        &check_agents(dispatch, &agents),
        "Set it in your own configuration: docs/dispatch.md shows how.",
    )?;
    for word in agents.plan.iter().chain(&agents.patch).chain(&agents.agent) {
        if let Some(found) = Scanner::builtin().scan(word.as_bytes()).first() {
            let message = format!(
                "a command that serves a role holds what looks like a secret ({})",
                found.rule
            );
            return Err(CommandError::new(ExitStatus::SecretDetected, message)
                .hint("A run keeps its commands: hand the key over by the name of its variable, in [dispatch] agent_env."));
        }
    }
    for name in &agents.env {
        if app.env.get_os(name).is_none() {
            return Err(CommandError::usage(format!(
                "dispatch.agent_env names {name:?}, which is not set"
            ))
            .hint("Set the variable, or take its name out of [dispatch] agent_env."));
        }
    }
    for role in RunRole::ALL
        .into_iter()
        .filter(|role| dispatch.service(*role) == Service::ApiAgent)
    {
        if let Some(program) = agents.of(role).first() {
            app.env.find_program(program).map_err(|error| {
                CommandError::usage(format!("the command that serves {}: {error}", role.name()))
                    .hint("Install it, or set [dispatch] plan_command, patch_command or agent_command; `crucible doctor` looks for them.")
            })?;
        }
    }
    Ok(agents)
}

/// The commands as they are configured, whichever roles they serve.
pub(crate) fn configured_agents(config: &Settings) -> Result<AgentCommands, CommandError> {
    let section = &config.dispatch;
    let timeout_s = section.agent_timeout_s;
    if timeout_s == 0 {
        return Err(CommandError::usage("dispatch.agent_timeout_s is no limit")
            .hint("It takes a whole number of seconds from 1."));
    }
    let network = match section.agent_network.get() {
        Ok(Switch::Off) => AgentNetwork::Off,
        Ok(Switch::On) => AgentNetwork::On,
        Err(other) => {
            return Err(
                CommandError::usage(format!("dispatch.agent_network is {other:?}"))
                    .hint("It takes \"off\" or \"on\"."),
            );
        }
    };
    Ok(AgentCommands {
        plan: section.plan_command.clone(),
        patch: section.patch_command.clone(),
        agent: section.agent_command.clone(),
        timeout_s,
        network,
        env: section.agent_env.clone(),
    })
}

fn refuse(verdict: &Verdict, hint: &str) -> Result<(), CommandError> {
    match verdict.errors().next() {
        Some(first) => Err(CommandError::usage(format!("invalid dispatch: {first}")).hint(hint)),
        None => Ok(()),
    }
}
