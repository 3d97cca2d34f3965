//! Who serves which role of a new run: from `--dispatch`, `--mode` and the section `[dispatch]`; and with which
//! command or model.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crucible_host::config::Config;
use crucible_host::fs::read_regular_up_to;
use crucible_model::{ByteLimit, EditFormat, ExitStatus, Verdict};
use crucible_run::{
    API_AGENT, AgentCommands, AgentNetwork, DispatchBudgets, DispatchConfig, DispatchMode, DispatchVersion,
    RoleProvider, RunRole, Service, check_agents,
};
use crucible_sandbox::Sandbox;
use crucible_secrets::Scanner;

use crate::app::App;
use crate::commands::model;
use crate::error::CommandError;

/// The largest dispatch configuration that is read.
const MAX_FILE: ByteLimit = ByteLimit(64 * 1024);

/// Who serves which role; nothing where nobody says anything, and the provider alone is asked.
pub(crate) fn dispatch(
    app: &App,
    config: &Config,
    provider: &str,
    file: Option<&Path>,
) -> Result<Option<DispatchConfig>, CommandError> {
    let dispatch = match file {
        Some(path) => Some(read(&app.absolute(path))?),
        None => configured(config, provider)?,
    };
    let Some(dispatch) = dispatch else { return Ok(None) };
    let providers: Vec<&str> = crucible_llm::registry().iter().map(|kind| kind.name()).collect();
    refuse(&dispatch.check(&providers), "docs/contracts/dispatch_config.md tells who can serve which role.")?;
    // Before a run is made that nobody could advance.
    Ok(Some(dispatch))
}

fn read(path: &Path) -> Result<DispatchConfig, CommandError> {
    let bytes = read_regular_up_to(path, MAX_FILE)?;
    serde_json::from_slice(&bytes).map_err(|error| {
        CommandError::new(
            ExitStatus::Schema,
            format!("{} is no dispatch configuration: {error}", path.display()),
        )
        .hint("docs/contracts/dispatch_config.md shows one.")
    })
}

/// What the section `[dispatch]` says; nothing where it says nothing.
fn configured(config: &Config, provider: &str) -> Result<Option<DispatchConfig>, CommandError> {
    let mode = config.text("dispatch.mode").map(mode).transpose()?;
    let mut listed = BTreeMap::new();
    for role in RunRole::ALL {
        if let Some(service) = config.text(&format!("dispatch.{}", role.name())) {
            listed.insert(role, RoleProvider(service.to_owned()));
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
                dispatch.role_providers.insert(role, RoleProvider(mode.name().to_owned()));
            }
        }
    }
    dispatch.role_providers.extend(listed);
    dispatch.schema_version = DispatchVersion::V1;
    dispatch.budgets = DispatchBudgets { max_outbox_prompts: config.number("dispatch.max_outbox_prompts") };
    Ok(Some(dispatch))
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
    config: &Config,
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
            let message =
                format!("a command that serves a role holds what looks like a secret ({})", found.rule);
            return Err(CommandError::new(ExitStatus::SecretDetected, message)
                .hint("A run keeps its commands: hand the key over by the name of its variable, in [dispatch] agent_env."));
        }
    }
    for name in &agents.env {
        if app.env.get_os(name).is_none() {
            return Err(CommandError::usage(format!("dispatch.agent_env names {name:?}, which is not set"))
                .hint("Set the variable, or take its name out of [dispatch] agent_env."));
        }
    }
    for role in RunRole::ALL.into_iter().filter(|role| dispatch.service(*role) == Service::ApiAgent) {
        if let Some(program) = agents.of(role).first() {
            app.env.find_program(program).map_err(|error| {
                CommandError::usage(format!("the command that serves {}: {error}", role.name()))
                    .hint("Install it, or set [dispatch] plan_command, patch_command or agent_command; `crucible doctor` looks for them.")
            })?;
        }
    }
    Ok(agents)
}

/// The commands as they are configured, whoever serves what.
pub(crate) fn configured_agents(config: &Config) -> Result<AgentCommands, CommandError> {
    let timeout_s = config.number("dispatch.agent_timeout_s");
    if timeout_s == 0 {
        return Err(CommandError::usage("dispatch.agent_timeout_s is no limit")
            .hint("It takes a whole number of seconds from 1."));
    }
    let network = match config.text("dispatch.agent_network").unwrap_or_default() {
        "off" => AgentNetwork::Off,
        "on" => AgentNetwork::On,
        other => {
            return Err(CommandError::usage(format!("dispatch.agent_network is {other:?}"))
                .hint("It takes \"off\" or \"on\"."));
        }
    };
    Ok(AgentCommands {
        plan: config.list("dispatch.plan_command"),
        patch: config.list("dispatch.patch_command"),
        agent: config.list("dispatch.agent_command"),
        timeout_s,
        network,
        env: config.list("dispatch.agent_env"),
    })
}

/// The models of the roles that another provider serves than the run's own, and how the one that proposes changes answers best.
pub(crate) struct Models {
    /// By the role's name.
    pub(crate) of_roles: BTreeMap<String, String>,
    /// Nothing where the run's own provider proposes them, or no model does.
    pub(crate) edit_format: Option<EditFormat>,
}

impl Models {
    /// Asks each provider that the dispatch names for its model; `own` are the models of the run's provider.
    pub(crate) fn of(
        app: &App,
        config: &Config,
        sandbox: &Arc<Sandbox>,
        dispatch: &DispatchConfig,
        provider: &str,
        own: BTreeMap<String, String>,
    ) -> Result<Self, CommandError> {
        let mut models = Self { of_roles: own, edit_format: None };
        for role in RunRole::ALL {
            let service = dispatch.service(role);
            let name = match service.client() {
                Some(name) if name == provider => continue,
                Some(name) if matches!(service, Service::Model(_)) => name,
                // What no model of ours answers has no model.
                Some(_) | None => {
                    models.of_roles.remove(role.name());
                    continue;
                }
            };
            let backend = model::backend(app, config, sandbox, name, &model::settings(app, config, name))?;
            let asked =
                backend.phase_models().get(role.name()).map_or(backend.default_model(), String::as_str);
            models.of_roles.insert(role.name().to_owned(), asked.to_owned());
            if role == RunRole::Patchmaker {
                models.edit_format = Some(backend.capabilities().edit_format);
            }
        }
        Ok(models)
    }
}

fn refuse(verdict: &Verdict, hint: &str) -> Result<(), CommandError> {
    match verdict.errors().next() {
        Some(first) => Err(CommandError::usage(format!("the dispatch does not hold: {first}")).hint(hint)),
        None => Ok(()),
    }
}
