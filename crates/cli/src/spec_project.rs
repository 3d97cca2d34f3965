//! Finds the project of a command: that of the working directory, or of the named workspace.

use std::path::Path;

use crucible_spec::session::FIXUPS;
use crucible_spec::{SpecId, SpecProject, SpecStore, WorkspaceFile};

use crate::app::App;
use crate::error::CommandError;

/// The project of the command: the one of `--workspace FILE`, else the one that contains the working
/// directory.
pub(crate) fn project(app: &App, workspace: Option<&Path>) -> Result<SpecProject, CommandError> {
    match workspace {
        Some(file) => Ok(named_workspace(app, file)?.project()),
        None => Ok(SpecProject::find(app.env.working_directory())),
    }
}

/// The workspace of the command: the one of `--workspace FILE`, else the nearest one upward.
pub(crate) fn workspace(app: &App, named: Option<&Path>) -> Result<WorkspaceFile, CommandError> {
    let start = app.env.working_directory();
    match named {
        Some(file) => named_workspace(app, file),
        None => WorkspaceFile::discover(start).ok_or_else(|| {
            let message = format!(
                "no workspace.yaml in {} or any parent directory",
                start.display()
            );
            CommandError::usage(message)
                .hint("Create one with `crucible project init`, or name one with --workspace FILE.")
        }),
    }
}

/// The file that lists the specs of a project: `--workspace FILE`, else the project's own, if any.
pub(crate) fn list_of(
    app: &App,
    named: Option<&Path>,
    project: &SpecProject,
) -> Result<Option<WorkspaceFile>, CommandError> {
    match named {
        Some(file) => named_workspace(app, file).map(Some),
        None => Ok(WorkspaceFile::within(project.root())),
    }
}

/// The file of `--workspace FILE`.
fn named_workspace(app: &App, file: &Path) -> Result<WorkspaceFile, CommandError> {
    let file = app.absolute(file);
    if file.is_file() {
        return Ok(WorkspaceFile::at(file));
    }
    Err(
        CommandError::usage(format!("--workspace: {} is not a file", file.display()))
            .hint("Name the file workspace.yaml itself; `crucible project init` creates one."),
    )
}

/// Opens a spec for reading, with the record of unfinished work on it. Without Crucible's own directory
/// there is no record.
pub(crate) fn spec_to_read(app: &App, project: &SpecProject, spec: SpecId) -> SpecStore {
    let store = SpecStore::new(project, spec);
    match app.env.crucible_home() {
        Ok(home) => store.with_records(home.join(FIXUPS)),
        Err(_) => store,
    }
}
