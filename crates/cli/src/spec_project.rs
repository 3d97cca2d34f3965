//! Finds the project of a command: that of the working directory, or of the named workspace.

use std::path::Path;

use crucible_model::Failure;
use crucible_spec::session::FIXUPS;
use crucible_spec::{SpecId, SpecProject, SpecStore, WorkspaceFile};

use crate::app::App;

/// The project of the command: the one of `--workspace FILE`, else the one that contains the working
/// directory.
pub(crate) fn project(app: &App, workspace: Option<&Path>) -> Result<SpecProject, Failure> {
    match workspace {
        Some(file) => Ok(WorkspaceFile::named(app.absolute(file))?.project()),
        None => Ok(SpecProject::find(app.env.working_directory())),
    }
}

/// The workspace of the command: the one of `--workspace FILE`, else the nearest one upward.
pub(crate) fn workspace(app: &App, named: Option<&Path>) -> Result<WorkspaceFile, Failure> {
    let start = app.env.working_directory();
    match named {
        Some(file) => WorkspaceFile::named(app.absolute(file)),
        None => WorkspaceFile::required(start),
    }
}

/// The file that lists the specs of a project: `--workspace FILE`, else the project's own, if any.
pub(crate) fn list_of(
    app: &App,
    named: Option<&Path>,
    project: &SpecProject,
) -> Result<Option<WorkspaceFile>, Failure> {
    match named {
        Some(file) => WorkspaceFile::named(app.absolute(file)).map(Some),
        None => Ok(WorkspaceFile::within(project.root())),
    }
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
