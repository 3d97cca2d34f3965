//! `crucible template init`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use crucible_model::{ExitStatus, Failure};
use crucible_spec::{OnExisting, SpecId, SpecTemplate, TEMPLATES, TemplateStart};

use crate::app::App;
use crate::names::spec_id;
use crate::spec_project::{list_of, project};

/// The schema name of the report.
const SCHEMA: &str = "crucible-template-init-v1";

/// Start a spec from a template
///
/// Writes `.crucible/specs/SPEC-ID/context/idea.md` and a README.md with the next commands, and lists the
/// spec in the project's workspace.yaml if there is one. No model is called. An existing spec is left
/// unchanged.
#[derive(Args)]
pub(crate) struct Init {
    /// The template; `crucible template list` describes each one
    #[arg(value_parser = names())]
    template: String,

    /// The id of the new spec
    #[arg(value_name = "SPEC-ID", value_parser = spec_id)]
    spec: SpecId,

    /// Overwrite the idea and README of an existing spec
    #[arg(long)]
    force: bool,

    /// The workspace file in whose directory to create the spec
    #[arg(long, value_name = "FILE")]
    workspace: Option<PathBuf>,
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(TEMPLATES.iter().map(|template| template.name))
}

impl Init {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let template = SpecTemplate::find(&self.template)
            .ok_or_else(|| Failure::usage(format!("unknown template {:?}", self.template)))?;
        let project = project(app, self.workspace.as_deref())?;
        let workspace = list_of(app, self.workspace.as_deref(), &project)?;
        let start = TemplateStart {
            template,
            project: &project,
            workspace: workspace.as_ref(),
            spec: &self.spec,
            now: app.clock.now(),
        };
        let started = start.write(match self.force {
            true => OnExisting::Overwrite,
            false => OnExisting::Refuse,
        })?;
        let next = format!("crucible spec {} --through tasks", self.spec);
        if app.output.is_json() {
            app.output.json(&serde_json::json!({
                "schema_version": SCHEMA, "template": template.name, "spec_id": self.spec, "idea": started.idea,
                "readme": started.readme, "listed_in": started.listed_in, "next": next,
            }))?;
            return Ok(ExitStatus::Success);
        }
        for path in [&started.idea, &started.readme] {
            app.output.line(&format!("wrote {}", path.display()));
        }
        if let Some(list) = &started.listed_in {
            app.output.line(&format!("listed in {}", list.display()));
        }
        app.output
            .line("next: edit the parts marked `Yours:` in the idea, then");
        app.output.line(&format!("      {next}"));
        Ok(ExitStatus::Success)
    }
}
