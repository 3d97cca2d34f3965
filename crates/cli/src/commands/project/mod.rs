//! `crucible project`: works on many specs at once, as `workspace.yaml` lists them.

mod add_spec;
mod history;
mod init;
mod list;
mod status;
mod tui;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use crucible_model::{ExitStatus, Failure};

use crate::app::App;
use crate::spec_project::workspace;

/// Work on many specs at once: the workspace
///
/// The workspace is the file `workspace.yaml`: the nearest one upward from the working directory, or the
/// one that `--workspace` names. Its specs are in `.crucible/specs` beside it.
#[derive(Args)]
pub(crate) struct Project {
    /// The workspace.yaml to use, instead of searching upward
    #[arg(long, global = true, value_name = "FILE")]
    workspace: Option<PathBuf>,
    #[command(subcommand)]
    command: ProjectCommand,
}

#[derive(Subcommand)]
enum ProjectCommand {
    Init(init::Init),
    AddSpec(add_spec::AddSpec),
    List(list::List),
    Status(status::Status),
    History(history::History),
    Tui(tui::Tui),
}

impl Project {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let named = self.workspace.as_deref();
        match &self.command {
            ProjectCommand::Init(command) => command.run(app, named),
            ProjectCommand::AddSpec(command) => command.run(app, &workspace(app, named)?),
            ProjectCommand::List(command) => command.run(app, &workspace(app, named)?),
            ProjectCommand::Status(command) => command.run(app, &workspace(app, named)?),
            ProjectCommand::History(command) => command.run(app, named),
            ProjectCommand::Tui(command) => command.run(app, &workspace(app, named)?),
        }
    }
}
