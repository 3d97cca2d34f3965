//! `crucible project init`: creates a workspace without specs.

use std::path::Path;

use clap::Args;
use crucible_model::{ExitStatus, Failure, says_nothing};
use crucible_spec::{SpecProject, WorkspaceFile};

use crate::app::App;

/// Create a workspace: write workspace.yaml
///
/// The file goes into the project that contains the working directory: the nearest parent directory with
/// a `.crucible` or a `.git`, or else the working directory itself. The command fails if the file already
/// exists.
#[derive(Args)]
pub(crate) struct Init {
    /// The name of the workspace [default: the name of its directory]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

impl Init {
    pub(crate) fn run(&self, app: &App, named: Option<&Path>) -> Result<ExitStatus, Failure> {
        let current_dir = app.env.working_directory();
        let file = match named {
            Some(file) => WorkspaceFile::at(app.absolute(file)),
            None => WorkspaceFile::in_directory(SpecProject::find(current_dir).root()),
        };
        let name = match &self.name {
            Some(name) if says_nothing(name) => {
                return Err(Failure::usage("the name of a workspace must not be empty")
                    .hint("Omit --name to use the name of the directory."));
            }
            Some(name) => name.clone(),
            None => directory_name(file.path()),
        };
        file.create(&name)?;
        app.output.show(|| serde_json::json!({
                "schema_version": "workspace-init-json.v1", "workspace": file.path(), "name": name,
            }), || {
            app.output.line(&format!("wrote {}", file.path().display()));
            app.output
                .line("next: crucible project add-spec SPEC-ID --tag TAG");
        })
    }
}

/// The name of the directory that contains a file.
fn directory_name(file: &Path) -> String {
    let name = file
        .parent()
        .and_then(Path::file_name)
        .unwrap_or_default()
        .to_string_lossy();
    if says_nothing(&name) {
        "workspace".to_owned()
    } else {
        name.into_owned()
    }
}
