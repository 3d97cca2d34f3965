//! `crucible agents`: the coding agents, and which are installed.

use clap::Args;
use crucible_agents::{InstalledAgent, installed};
use crucible_model::{ExitStatus, Failure, one_line};
use crucible_terminal::table;
use serde::Serialize;

use crate::app::App;

/// List the coding agents and which are installed
///
/// `crucible run start "GOAL" --agent NAME` lets one of them propose the changes, in the sandbox and with Crucible as its
/// only model endpoint. docs/agents.md shows how to set each up.
#[derive(Args)]
pub(crate) struct Agents {}

/// The result as JSON.
#[derive(Serialize)]
struct AgentsDocument<'a> {
    schema_version: &'static str,
    agents: &'a [InstalledAgent],
}

impl Agents {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let config = app.config(app.env.working_directory(), &[])?;
        let agents = app.block_on(async { Ok(installed(&app.runtime(), &config).await?) })?;
        if app.output.is_json() {
            app.output.json(&AgentsDocument {
                schema_version: "crucible-agents-v1",
                agents: &agents,
            })?;
            return Ok(ExitStatus::Success);
        }
        let mut list = table(["agent", "installed", "tested", "wire", "provider", "model"]);
        for agent in &agents {
            let version = match (&agent.path, &agent.version) {
                (None, _) => "no",
                (Some(_), None) => "yes, unknown version",
                (Some(_), Some(version)) => version,
            };
            list.add_row([
                one_line(&agent.name),
                one_line(version),
                agent.tested_version.unwrap_or("–").to_owned(),
                agent.wire.as_str().to_owned(),
                one_line(&agent.provider),
                one_line(&agent.model),
            ]);
        }
        app.output.line(&list.trim_fmt());
        Ok(ExitStatus::Success)
    }
}
