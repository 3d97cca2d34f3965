//! `crucible behaviors`: a repository's catalogue of behaviours.

use clap::{Args, Subcommand};
use crucible_model::ExitStatus;

use crate::app::App;
use crate::error::CommandError;

/// Judge a repository's catalogue of behaviours
#[derive(Subcommand)]
pub(crate) enum BehaviorsCommand {
    Check(Check),
}

/// Judge the catalogue both ways: each marker in the code has its entry and page, each entry its page and marker
#[derive(Args)]
pub(crate) struct Check {}

impl BehaviorsCommand {
    pub(crate) fn run(&self, _app: &App) -> Result<ExitStatus, CommandError> {
        let Self::Check(Check {}) = self;
        Err(CommandError::usage("not there yet"))
    }
}
