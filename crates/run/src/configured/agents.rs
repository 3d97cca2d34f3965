//! The commands that serve roles of a run.

use crucible_host::env::Environment;
use crucible_llm::Upstream;
use crucible_llm::configured::provider_settings;
use crucible_model::{ExitStatus, Failure, Verdict};
use crucible_sandbox::Runtime;
use crucible_secrets::Scanner;
use crucible_settings::{Settings, Switch};

use crate::contract::{
    AGENT_PREFIX, API_AGENT, AgentCommands, AgentNetwork, CodingAgentSettings, DispatchConfig,
    RunRole, Service,
};
use crate::dispatch::check_agents;

/// Reads the commands that serve roles, if the dispatch names any.
///
/// # Errors
///
/// Fails if a command is missing, not installed, or looks like it holds a secret.
pub fn agents(
    env: &Environment,
    config: &Settings,
    dispatch: Option<&DispatchConfig>,
) -> Result<AgentCommands, Failure> {
    let Some(dispatch) = dispatch.filter(|dispatch| dispatch.clients().contains(API_AGENT)) else {
        return Ok(AgentCommands::default());
    };
    let agents = configured_agents(config)?;
    require_valid(
        &check_agents(dispatch, &agents),
        "Set it in your own configuration: docs/dispatch.md shows how.",
    )?;
    for word in agents.plan.iter().chain(&agents.patch).chain(&agents.agent) {
        if let Some(found) = Scanner::builtin().scan(word.as_bytes()).first() {
            let message = format!(
                "a command that serves a role holds what looks like a secret ({})",
                found.rule
            );
            return Err(Failure::new(ExitStatus::SecretDetected, message)
                .hint("A run keeps its commands: hand the key over by the name of its variable, in [dispatch] agent_env."));
        }
    }
    for name in &agents.env {
        if env.get_os(name).is_none() {
            return Err(Failure::usage(format!(
                "dispatch.agent_env names {name:?}, which is not set"
            ))
            .hint("Set the variable, or take its name out of [dispatch] agent_env."));
        }
    }
    for role in RunRole::ALL
        .into_iter()
        .filter(|role| dispatch.service(*role) == Service::ApiAgent)
    {
        if let Some(program) = agents.command(role).first() {
            env.find_program(program).map_err(|error| {
                Failure::usage(format!("the command that serves {}: {error}", role.name()))
                    .hint("Install it, or set [dispatch] plan_command, patch_command or agent_command; `crucible doctor` looks for them.")
            })?;
        }
    }
    Ok(agents)
}

/// Reads the configured commands, whether or not they serve a role.
///
/// # Errors
///
/// Fails if a value is not allowed.
pub(crate) fn configured_agents(config: &Settings) -> Result<AgentCommands, Failure> {
    let section = &config.dispatch;
    let timeout_s = section.agent_timeout_s;
    if timeout_s == 0 {
        return Err(Failure::usage("dispatch.agent_timeout_s is 0")
            .hint("Set a whole number of seconds, at least 1."));
    }
    let network = match section.agent_network.get() {
        Ok(Switch::Off) => AgentNetwork::Off,
        Ok(Switch::On) => AgentNetwork::On,
        Err(other) => {
            return Err(
                Failure::usage(format!("invalid dispatch.agent_network {other:?}"))
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

/// Reads the coding agent that proposes changes, if the dispatch names one. `model` is that of the command line.
///
/// # Errors
///
/// Fails if there is no such agent, if it is not installed, or if it looks like it holds a secret.
pub(super) fn coding_agent(
    runtime: &Runtime<'_>,
    config: &Settings,
    model: Option<&str>,
    dispatch: Option<&DispatchConfig>,
) -> Result<Option<CodingAgentSettings>, Failure> {
    let services = [RunRole::Patchmaker, RunRole::Fixer]
        .map(|role| dispatch.map(|dispatch| dispatch.service(role)));
    let mut names = services
        .iter()
        .flatten()
        .filter_map(|service| match service {
            Service::Agent(client) => client.strip_prefix(AGENT_PREFIX),
            _ => None,
        });
    let Some(name) = names.next() else {
        return Ok(None);
    };
    if names.any(|other| other != name) {
        return Err(Failure::usage("two agents propose changes")
            .hint("Let one agent be the patchmaker and the fixer."));
    }
    let mut profile = crucible_agents::profile(config, name)?;
    if let Some(model) = model {
        model.clone_into(&mut profile.model);
    }
    let texts = profile
        .args
        .iter()
        .chain(&profile.resume)
        .chain(profile.env.values());
    for text in texts.chain(profile.files.values()) {
        if let Some(found) = Scanner::builtin().scan(text.as_bytes()).first() {
            let message = format!(
                "agents.{name} holds what looks like a secret ({})",
                found.rule
            );
            return Err(Failure::new(ExitStatus::SecretDetected, message).hint(
                "A run keeps its agent's settings, and an agent needs no key: its endpoint has it.",
            ));
        }
    }
    runtime.env.find_program(&profile.program).map_err(|error| {
        Failure::usage(format!("the agent {name}: {error}"))
            .hint("Install it, or set agents.NAME.program; `crucible agents` lists what is installed.")
    })?;
    let seconds = config.run.agent_timeout_s;
    if seconds == 0 {
        return Err(Failure::usage("run.agent_timeout_s must be greater than 0")
            .hint("Set a whole number of seconds, at least 1."));
    }
    Ok(Some(CodingAgentSettings {
        profile,
        timeout_s: seconds,
        disk_mib: config.run.agent_disk_mib,
    }))
}

/// Finds the server that an agent's requests are forwarded to.
///
/// # Errors
///
/// Fails if its address or its key cannot be used.
pub(super) fn upstream(
    runtime: &Runtime<'_>,
    config: &Settings,
    agent: Option<&CodingAgentSettings>,
) -> Result<Option<Upstream>, Failure> {
    let Some(agent) = agent else { return Ok(None) };
    let provider = &agent.profile.provider;
    let settings = provider_settings(runtime, config, provider);
    Ok(Some(Upstream::from_settings(
        provider,
        &settings,
        runtime.env,
    )?))
}

pub(super) fn require_valid(verdict: &Verdict, hint: &str) -> Result<(), Failure> {
    match verdict.errors().next() {
        Some(first) => Err(Failure::usage(format!("invalid dispatch: {first}")).hint(hint)),
        None => Ok(()),
    }
}
