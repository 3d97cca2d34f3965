//! `crucible plan`: a plan judged on its own.

use clap::{Args, Subcommand};
use crucible_model::ExitStatus;

use crate::app::App;
use crate::error::CommandError;

/// Judge a plan
#[derive(Subcommand)]
pub(crate) enum PlanCommand {
    Check(Check),
}

/// Judge a plan: its keys, its scope, its ids, its evidence and its gates
#[derive(Args)]
pub(crate) struct Check {}

impl PlanCommand {
    pub(crate) fn run(&self, _app: &App) -> Result<ExitStatus, CommandError> {
        let Self::Check(Check {}) = self;
        Err(CommandError::usage("not there yet"))
    }
}
