//! `crucible context`: what a model may see of a repository, on its own.

use clap::{Args, Subcommand};
use crucible_model::ExitStatus;

use crate::app::App;
use crate::error::CommandError;

/// Pack what a model may see of a repository
#[derive(Subcommand)]
pub(crate) enum ContextCommand {
    Build(Build),
}

/// Build a context pack: verbatim, within a budget, the same bytes for the same inputs
#[derive(Args)]
pub(crate) struct Build {}

impl ContextCommand {
    pub(crate) fn run(&self, _app: &App) -> Result<ExitStatus, CommandError> {
        let Self::Build(Build {}) = self;
        Err(CommandError::usage("not there yet"))
    }
}
