//! Who serves which role of a new run: from `--dispatch`, `--mode` and the section `[dispatch]`.

use std::collections::BTreeMap;
use std::path::Path;

use crucible_host::config::Config;
use crucible_host::fs::read_regular_up_to;
use crucible_model::{ByteLimit, ExitStatus, Outcome};
use crucible_run::{
    AgentCommands, DispatchBudgets, DispatchConfig, DispatchMode, DispatchVersion, RoleProvider, RunRole,
};

use crate::app::App;
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
    let verdict = dispatch.check(&providers);
    if verdict.outcome() == Outcome::Fail {
        let mut findings = verdict.errors();
        let first = findings.next().map(ToString::to_string).unwrap_or_default();
        return Err(CommandError::usage(format!("the dispatch does not hold: {first}"))
            .hint("docs/contracts/dispatch_config.md tells who can serve which role."));
    }
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

/// The commands that serve roles.
pub(crate) fn agents(_app: &App, _config: &Config) -> Result<AgentCommands, CommandError> {
    Ok(AgentCommands::default())
}
