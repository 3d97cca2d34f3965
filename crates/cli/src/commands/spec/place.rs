//! Where specs lie for a command: the project of the working directory, or the one of the workspace that is named.

use std::path::Path;

use crucible_spec::{SpecId, SpecIdError, SpecProject};

use crate::app::App;
use crate::error::CommandError;

/// The project that the command works on: the one of `--workspace FILE`, else the one that holds the working directory.
pub(crate) fn project(app: &App, workspace: Option<&Path>) -> Result<SpecProject, CommandError> {
    let Some(file) = workspace else {
        return Ok(SpecProject::find(app.env.working_directory()));
    };
    let file = app.absolute(file);
    match file.parent() {
        Some(directory) if file.is_file() => Ok(SpecProject::at(directory)),
        Some(_) | None => Err(CommandError::usage(format!("--workspace: {} is no file", file.display()))
            .hint("Name the file workspace.yaml itself; `crucible project init` makes one.")),
    }
}

/// Reads the id of a spec.
pub(crate) fn spec_id(text: &str) -> Result<SpecId, SpecIdError> {
    text.parse()
}
