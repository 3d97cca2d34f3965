//! `crucible run`: a governed change, from goal to commit.

mod advance;
mod bundle;
pub(crate) mod clients;
mod council;
pub(crate) mod dispatch;
mod find;
mod land;
mod list;
mod replay;
pub(crate) mod start;
mod status;
mod verify_record;

use std::path::Path;
use std::sync::Arc;

use clap::Subcommand;
use crucible_ledger::Ledger;
use crucible_model::{ExitStatus, counted};
use crucible_run::{
    RunDir, RunRole, RunSettings, RunState, RunStatus, Service, World, status as run_status,
};
use crucible_sandbox::Sandbox;
use crucible_settings::Settings;

use crate::app::App;
use crate::error::CommandError;
use crate::text::one_line;

pub(crate) use start::{providers, require_controlled};

/// How commands end that take a run further.
const ENDS: &str = "Exits 0 when the change is verified, 1 when the run failed or waits for you, 70 when the model is unavailable, \
    130 when interrupted; `crucible --help` lists all exit codes.";

/// An ambiguous id is answered with no more ids than this.
const SHOWN_RUNS: usize = 5;

/// Make, verify and land a governed change
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
    VerifyRecord(verify_record::VerifyRecord),
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
            Self::VerifyRecord(command) => command.run(app),
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
    config: &Settings,
) -> Result<World<'a>, CommandError> {
    let runs_root = app.runs_root(config)?;
    let tmp = app.home()?.join("tmp");
    Ok(World {
        env: &app.env,
        clock: app.clock.as_ref(),
        sandbox: Arc::clone(sandbox),
        runs_root,
        tmp,
    })
}

/// The ledger and the directory of the run that is named by its id or by how that begins; where none is named, of the newest run of
/// the repository around the working directory, and outside of any of the newest at all.
pub(crate) fn find(
    app: &App,
    world: &World<'_>,
    named: Option<&str>,
) -> Result<(Ledger, RunDir), CommandError> {
    let ledger = Ledger::open_existing(&app.ledger_path()?)?;
    let runs = ledger
        .as_ref()
        .map_or_else(|| Ok(Vec::new()), Ledger::runs)?;
    if ledger.is_none() && holds_something(&world.runs_root) {
        return Err(app.no_ledger()?);
    }
    let here = app.repository_of(app.env.working_directory());
    let here = here.map(|top| std::fs::canonicalize(&top).unwrap_or(top));
    let is_here = |repo: &str| here.as_deref().is_none_or(|top| Path::new(repo) == top);
    let newest = runs
        .iter()
        .filter(|run| is_here(&run.repo))
        .max_by_key(|run| run.created);
    let newest = newest.map(|run| run.id.as_str());
    if let (None, None, false, Some(top)) = (named, newest, runs.is_empty(), &here) {
        return Err(CommandError::usage(format!(
            "the repository {} has no run yet",
            top.display()
        ))
        .hint("Start one: crucible run start \"what to change\" --provider gateway")
        .hint("Or name a run of another repository; `crucible run list` shows all of them."));
    }
    let meant = named
        .map(|named| known(named, runs.iter().map(|run| run.id.as_str())))
        .transpose()?;
    let dir = meant.or(newest).map(|id| world.open_run(id)).transpose()?;
    ledger.zip(dir).ok_or_else(|| {
        CommandError::usage("no run yet")
            .hint("Start one: crucible run start \"what to change\" --provider gateway")
    })
}

fn holds_something(runs_root: &Path) -> bool {
    // What a killed `run start` left under a hidden name is no run.
    let is_shown =
        |entry: std::fs::DirEntry| !entry.file_name().as_encoded_bytes().starts_with(b".");
    std::fs::read_dir(runs_root).is_ok_and(|entries| entries.flatten().any(is_shown))
}

/// The id that was meant: the one that is named, or the only one that begins so.
pub(crate) fn known<'a>(
    named: &'a str,
    ids: impl Iterator<Item = &'a str>,
) -> Result<&'a str, CommandError> {
    let candidates: Vec<&str> = ids
        .filter(|id| !named.is_empty() && id.starts_with(named))
        .collect();
    match candidates.as_slice() {
        [one] => Ok(one),
        [] => Ok(named),
        several if several.contains(&named) => Ok(named),
        several => Err(CommandError::usage(format!(
            "{} begin with {named:?}: {}",
            counted(several.len() as u64, "run"),
            several
                .iter()
                .take(SHOWN_RUNS)
                .copied()
                .collect::<Vec<_>>()
                .join(", ")
        ))
        .hint("Give more characters of the id; `crucible run list` shows all ids.")),
    }
}

/// Prints where a run stands, and turns it into the way the process ends.
pub(crate) fn conclude(
    app: &App,
    dir: &RunDir,
    ledger: &Ledger,
) -> Result<ExitStatus, CommandError> {
    let status = run_status(dir, ledger)?;
    if app.output.is_json() {
        app.output.json(&status)?;
    } else {
        for line in summary(&status) {
            app.output.line(&one_line(&line));
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

/// Who proposes the changes of a run: nobody else is named where a person or a command does.
fn proposer(settings: &RunSettings) -> String {
    match settings.dispatch().service(RunRole::Patchmaker) {
        Service::ManualOutbox => "asked     a person, through outbox/".to_owned(),
        Service::ApiAgent => "asked     a command of yours".to_owned(),
        service => {
            let own = settings.role_models.get(RunRole::Patchmaker.name());
            let provider = service.client().unwrap_or(&settings.provider);
            format!("model     {} ({provider})", own.unwrap_or(&settings.model))
        }
    }
}

fn summary(status: &RunStatus) -> Vec<String> {
    let mut lines = vec![
        format!("run       {}", status.run.run_id),
        format!("goal      {}", status.run.goal),
        proposer(&status.run.settings),
        format!("state     {}", status.state.name()),
        format!(
            "attempts  {} of {}",
            status.budgets.iterations, status.run.settings.max_iterations
        ),
    ];
    if !status.scope_sources.is_empty() {
        let places: Vec<String> = status
            .scope_sources
            .iter()
            .map(ToString::to_string)
            .collect();
        lines.push(format!(
            "scope     the plan's files and any source in {}",
            places.join(", ")
        ));
    }
    if let Some(failure) = &status.failure {
        lines.push(format!("failed    {failure}"));
    }
    lines.extend(status.edited.iter().map(|path| format!("edited    {path}")));
    lines.push(format!("evidence  {}", status.directory.display()));
    lines.push(format!("next      {}", status.next));
    lines
}
