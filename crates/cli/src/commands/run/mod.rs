//! `crucible run`: a governed change, from goal to commit.

mod advance;
mod bundle;
mod land;
mod list;
mod replay;
mod start;
mod status;
mod verify_record;

use clap::Subcommand;
use crucible_ledger::Ledger;
use crucible_model::{ExitStatus, one_line};
use crucible_run::{
    RunDir, RunRole, RunSettings, RunState, RunStatus, Service, status as run_status,
};

use crate::app::App;
use crate::error::CommandError;

/// How commands end that take a run further.
const ENDS: &str = "Exits 0 when the change is verified, 1 when the run failed or waits for you, 70 when the model is unavailable, \
    130 when interrupted; `crucible --help` lists all exit codes.";

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
