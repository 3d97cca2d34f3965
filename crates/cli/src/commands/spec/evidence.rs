//! `crucible spec evidence`: which requirement is proven by which test, run and commit.

use std::path::PathBuf;

use clap::Args;
use crucible_model::{ExitStatus, Failure};

use crate::app::App;
use crate::names::spec_name;
use crate::requirement_report::{ReportFormat, report};
use crate::spec_project::{outline_of, project};

/// Show which tests prove the requirements of a spec
///
/// For each requirement: proven by these tests, in these landed runs, at these commits; partial; or no evidence. A run
/// counts if its record verifies and its commit is in the history of the checked-out one. Nothing is changed, and no model
/// is called. Exits 1 if a requirement is not proven. For example: `crucible spec evidence export-data`
#[derive(Args)]
pub(crate) struct SpecEvidence {
    /// The name of the spec, or the path of its folder
    #[arg(value_name = "SPEC", value_parser = spec_name)]
    spec: String,
    /// Print the matrix as Markdown
    #[arg(long)]
    markdown: bool,
    /// The workspace.yaml of the project [default: the project of the working directory]
    #[arg(long, value_name = "FILE")]
    workspace: Option<PathBuf>,
}

impl SpecEvidence {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let project = project(app, self.workspace.as_deref())?;
        let outline = outline_of(app, &project, &self.spec)?;
        let format = match (app.output.is_json(), self.markdown) {
            (true, true) => {
                return Err(
                    Failure::usage("--json and --markdown contradict each other")
                        .hint("Give one of them."),
                );
            }
            (true, false) => ReportFormat::Json,
            (false, true) => ReportFormat::Markdown,
            (false, false) => ReportFormat::Text,
        };
        report(app, &project, &outline, format)
    }
}
