//! Finds the project of a command: that of the working directory, or of the named workspace.

use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::path::Path;
use std::str::FromStr;

use crucible_model::ExitStatus;
use crucible_secrets::Scanner;
use crucible_spec::{SpecId, SpecProject, WorkspaceFile};

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

/// Parses the id of a spec.
pub(crate) fn spec_id(text: &str) -> Result<SpecId, Box<dyn Error + Send + Sync>> {
    named("the id of the spec", text)
}

/// Parses a name that is written to files and receipts, and so must not contain a secret.
pub(crate) fn named<T>(what: &'static str, text: &str) -> Result<T, Box<dyn Error + Send + Sync>>
where
    T: FromStr<Err: Error + Send + Sync + 'static>,
{
    free_of_secrets(what, text)?;
    Ok(text.parse::<T>()?)
}

/// Refuses a name that looks like a secret.
pub(crate) fn free_of_secrets(what: &'static str, name: &str) -> Result<(), SecretInName> {
    match Scanner::builtin().scan(name.as_bytes()).first() {
        Some(found) => Err(SecretInName {
            what,
            rule: found.rule.to_string(),
        }),
        None => Ok(()),
    }
}

/// A name that looks like a secret; it is not shown.
#[derive(Debug)]
pub(crate) struct SecretInName {
    what: &'static str,
    rule: String,
}

impl Display for SecretInName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { what, rule } = self;
        write!(
            f,
            "{what} looks like a secret ({rule}), and would be written to receipts and other files"
        )
    }
}

impl Error for SecretInName {}

impl From<&SecretInName> for CommandError {
    fn from(error: &SecretInName) -> Self {
        Self::new(ExitStatus::SecretDetected, error.to_string())
            .hint("Choose another name. If it is a real secret, revoke it: the shell history contains it.")
    }
}
