//! `crucible run`: a governed change, from goal to commit.

mod advance;
mod bundle;
mod land;
mod list;
mod replay;
mod start;
mod status;

use std::sync::Arc;

use clap::Subcommand;
use crucible_host::config::Config;
use crucible_ledger::Ledger;
use crucible_model::ExitStatus;
use crucible_run::{RunDir, RunState, RunStatus, World, status as run_status};
use crucible_sandbox::Sandbox;

use crate::app::App;
use crate::error::CommandError;
use crate::output::escaped;

/// A governed change: ask, judge, try, prove, land
#[derive(Subcommand)]
pub(crate) enum Run {
    Start(start::Start),
    New(start::New),
    Advance(advance::Advance),
    Status(status::Status),
    List(list::List),
    Land(land::Land),
    Replay(replay::Replay),
    Bundle(bundle::Bundle),
}

impl Run {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        match self {
            Self::Start(command) => command.run(app),
            Self::New(command) => command.run(app),
            Self::Advance(command) => command.run(app),
            Self::Status(command) => command.run(app),
            Self::List(command) => command.run(app),
            Self::Land(command) => command.run(app),
            Self::Replay(command) => command.run(app),
            Self::Bundle(command) => command.run(app),
        }
    }
}

/// The spawner, shared by providers and gates.
pub(crate) fn shared_sandbox(app: &App) -> Arc<Sandbox> {
    Arc::new(app.sandbox())
}

/// The world of a run under this configuration.
pub(crate) fn world<'a>(
    app: &'a App,
    sandbox: &Arc<Sandbox>,
    config: &Config,
) -> Result<World<'a>, CommandError> {
    let runs_root = app.runs_root(config)?;
    let tmp = app.home()?.join("tmp");
    Ok(World { env: &app.env, clock: app.clock.as_ref(), sandbox: Arc::clone(sandbox), runs_root, tmp })
}

/// The directory of the named run, or of the newest one.
pub(crate) fn find(app: &App, world: &World<'_>, named: Option<&str>) -> Result<RunDir, CommandError> {
    if let Some(id) = named {
        return Ok(world.open_run(id)?);
    }
    let ledger = Ledger::open_existing(&app.home()?.join("ledger.db"))?;
    let runs = ledger.map_or_else(|| Ok(Vec::new()), |ledger| ledger.runs())?;
    let newest = runs.into_iter().max_by_key(|run| run.created);
    let newest = newest.ok_or_else(|| {
        CommandError::usage("there is no run yet")
            .hint("Start one: crucible run start \"what to change\" --provider gateway")
    })?;
    Ok(world.open_run(newest.id.as_str())?)
}

/// Prints where a run stands, and turns it into the way the process ends.
pub(crate) fn conclude(app: &App, dir: &RunDir) -> Result<ExitStatus, CommandError> {
    let status = run_status(dir)?;
    if app.output.is_json() {
        app.output.json(&status)?;
    } else {
        for line in summary(&status) {
            app.output.line(&escaped(&line));
        }
    }
    Ok(match status.state {
        RunState::Failed | RunState::Blocked => ExitStatus::Refused,
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

fn summary(status: &RunStatus) -> Vec<String> {
    let mut lines = vec![
        format!("run       {}", status.run.run_id),
        format!("goal      {}", status.run.goal),
        format!("model     {} ({})", status.run.settings.model, status.run.settings.provider),
        format!("state     {}", status.state.name()),
        format!("attempts  {} of {}", status.attempts.len(), status.run.settings.max_iterations),
    ];
    if let Some(failure) = &status.failure {
        lines.push(format!("failed    {} {}: {}", failure.code, failure.subject, failure.hint));
    }
    lines.push(format!("evidence  {}", status.directory.display()));
    lines.push(format!("next      {}", status.next));
    lines
}
