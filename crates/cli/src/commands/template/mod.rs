//! `crucible template`: starts specs from built-in problem statements.

mod init;
mod list;

use clap::{Args, Subcommand};
use crucible_model::{ExitStatus, Failure};

use crate::app::App;

/// Start a spec from a template
#[derive(Args)]
pub(crate) struct TemplateCommand {
    #[command(subcommand)]
    command: Which,
}

#[derive(Subcommand)]
enum Which {
    List(list::List),
    Init(init::Init),
}

impl TemplateCommand {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        match &self.command {
            Which::List(command) => command.run(app),
            Which::Init(command) => command.run(app),
        }
    }
}
