//! Finds the project of a command: that of the working directory, or of the named workspace.

use std::path::Path;

use crucible_evidence::SpecFormat;
use crucible_forge::ForgeProject;
use crucible_model::Failure;
use crucible_settings::Settings;
use crucible_spec::session::FIXUPS;
use crucible_spec::{
    SpecFolder, SpecId, SpecOutline, SpecProject, SpecStore, WorkspaceFile, find_spec_folder,
};

use crate::app::App;

/// The project of the command: the one of `--workspace FILE`, else the one that contains the working
/// directory.
pub(crate) fn project(app: &App, workspace: Option<&Path>) -> Result<SpecProject, Failure> {
    match workspace {
        Some(file) => Ok(WorkspaceFile::from_path(app.absolute(file))?.project()),
        None => Ok(SpecProject::find(app.env.working_directory())),
    }
}

/// The project of a command on skills, with these flags on top of its settings.
pub(crate) fn skill_project(
    app: &App,
    flags: &[(&str, String)],
) -> Result<(ForgeProject, Settings), Failure> {
    let found = project(app, None)?;
    let settings = app.config(found.root(), flags)?;
    let root = found.root().to_owned();
    let project = ForgeProject::from_settings(&settings, root, found.key()?)?;
    Ok((project, settings))
}

/// The workspace of the command: the one of `--workspace FILE`, else the nearest one upward.
pub(crate) fn workspace(app: &App, named: Option<&Path>) -> Result<WorkspaceFile, Failure> {
    let start = app.env.working_directory();
    match named {
        Some(file) => WorkspaceFile::from_path(app.absolute(file)),
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
        Some(file) => WorkspaceFile::from_path(app.absolute(file)).map(Some),
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

/// A spec that a command names.
pub(crate) enum NamedSpec {
    /// A spec with phases.
    Own(SpecId),
    /// A folder of another format.
    Folder(SpecFolder),
}

/// Returns the spec of this name: Crucible's own, else a folder of another format.
pub(crate) fn named_spec(
    app: &App,
    project: &SpecProject,
    named: &str,
) -> Result<NamedSpec, Failure> {
    let folder = find_spec_folder(project, app.env.working_directory(), named);
    match (folder, named.parse::<SpecId>()) {
        (Ok(folder), _) if folder.format() != SpecFormat::Crucible => Ok(NamedSpec::Folder(folder)),
        (_, Ok(id)) => Ok(NamedSpec::Own(id)),
        (Ok(folder), Err(_)) => {
            let id = folder.spec_name().parse::<SpecId>();
            id.map(NamedSpec::Own)
                .map_err(|error| Failure::usage(error.to_string()))
        }
        (Err(error), Err(_)) if named.contains('/') => Err(error.into()),
        (Err(_), Err(error)) => Err(Failure::usage(error.to_string())),
    }
}

/// Reads a spec of any format.
pub(crate) fn outline_of(
    app: &App,
    project: &SpecProject,
    named: &str,
) -> Result<SpecOutline, Failure> {
    let folder = find_spec_folder(project, app.env.working_directory(), named)?;
    Ok(folder.read())
}
