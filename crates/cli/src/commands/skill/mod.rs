//! `crucible skill`: code that a model wrote, earned into trust.

mod check;
mod init;
mod list;
mod place;
mod propose;
mod show;

use clap::Subcommand;
use crucible_model::ExitStatus;

use crate::app::App;
use crate::error::CommandError;

/// Propose skills, and see where they stand
#[derive(Subcommand)]
pub(crate) enum Skill {
    Init(init::Init),
    Propose(propose::Propose),
    List(list::List),
    Show(show::Show),
    Check(check::Check),
}

impl Skill {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        match self {
            Self::Init(command) => command.run(app),
            Self::Propose(command) => command.run(app),
            Self::List(command) => command.run(app),
            Self::Show(command) => command.run(app),
            Self::Check(command) => command.run(app),
        }
    }
}
