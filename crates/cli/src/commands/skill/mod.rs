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
use crucible_model::ExitStatus;

use crate::app::App;
use crate::error::CommandError;

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
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        match self {
            Self::Init(command) => command.run(app),
            Self::Propose(command) => command.run(app),
            Self::Build(command) => command.run(app),
            Self::List(command) => command.run(app),
            Self::Show(command) => command.run(app),
            Self::Check(command) => command.run(app),
            Self::Verify(command) => command.run(app),
            Self::Research(command) => command.run(app),
            Self::Promote(command) => command.run(app),
            Self::Demote(command) => command.run(app),
            Self::Run(command) => command.run(app),
        }
    }
}
