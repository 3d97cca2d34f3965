//! `crucible run`: a governed change, from goal to commit.

mod advance;
mod bundle;
mod compare;
mod land;
mod list;
mod replay;
mod start;
mod status;
mod verify_record;

use clap::Subcommand;
use crucible_model::{ExitStatus, Failure};

use crate::app::App;

/// Make, verify and land a governed change
#[derive(Subcommand)]
pub(crate) enum Run {
    Start(start::Start),
    New(start::New),
    Advance(advance::Advance),
    Status(status::Status),
    List(list::List),
    Compare(compare::Compare),
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
                Compare,
                Land,
                Replay,
                Bundle,
                VerifyRecord
            ]
        )
    }
}
