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
use crucible_model::{ExitStatus, Failure, one_line};
use crucible_run::{RunDir, RunState, status as run_status};

use crate::app::App;

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
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        dispatch!(
            self,
            app,
            [
                Start,
                New,
                Advance,
                Status,
                List,
                Land,
                Replay,
                Bundle,
                VerifyRecord
            ]
        )
    }
}

/// Prints where a run stands, and turns it into the way the process ends.
pub(crate) fn conclude(app: &App, dir: &RunDir, ledger: &Ledger) -> Result<ExitStatus, Failure> {
    let status = run_status(dir, ledger)?;
    if app.output.is_json() {
        app.output.json(&status)?;
    } else {
        for line in status.summary() {
            app.output.line(&one_line(&line));
        }
    }
    Ok(match status.state {
        RunState::Failed | RunState::Declined | RunState::Blocked => ExitStatus::Refused,
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
