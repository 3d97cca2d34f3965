//! `crucible skill`: code that a model wrote, earned into trust.

mod build;
mod check;
mod demote;
mod init;
mod list;
mod place;
mod promote;
mod propose;
mod research;
mod run;
mod show;
mod verify;

use clap::Subcommand;
use crucible_model::{ExitStatus, Failure};

use crate::app::App;

/// Propose, build, verify, trust and run skills: code that a model wrote
#[derive(Subcommand)]
pub(crate) enum Skill {
    Init(init::Init),
    Propose(propose::Propose),
    Build(build::Build),
    List(list::List),
    Show(show::Show),
    Check(check::Check),
    Verify(verify::Verify),
    Research(research::Research),
    Promote(promote::Promote),
    Demote(demote::Demote),
    Run(run::Run),
}

impl Skill {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        dispatch!(
            self,
            app,
            [
                Init, Propose, Build, List, Show, Check, Verify, Research, Promote, Demote, Run
            ]
        )
    }
}
