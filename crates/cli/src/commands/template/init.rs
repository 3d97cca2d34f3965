//! `crucible template init`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use crucible_host::fs::write_atomic;
use crucible_model::ExitStatus;
use crucible_spec::{
    IDEA, LockClaim, OnListed, SpecId, SpecStore, SpecTemplate, TEMPLATES, WorkspaceEntry,
    WorkspaceFile, keep_out_of_git,
};

use crate::app::App;
use crate::error::CommandError;
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
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let template = SpecTemplate::find(&self.template)
            .ok_or_else(|| CommandError::usage(format!("unknown template {:?}", self.template)))?;
        let project = project(app, self.workspace.as_deref())?;
        let workspace = list_of(app, self.workspace.as_deref(), &project)?;
        let listed = workspace.as_ref().map(WorkspaceFile::load).transpose()?;
        let store = SpecStore::new(&project, self.spec.clone());
        if store.exists()? && !self.force {
            return Err(self.taken());
        }
        // Done first, because it can be refused. A list may name a spec that has not started; the next
        // attempt starts it.
        let unlisted = listed.is_some_and(|listed| listed.entry(&self.spec).is_none());
        if let Some(workspace) = workspace.as_ref().filter(|_| unlisted) {
            let tags = vec![template.name.to_owned()];
            let entry = WorkspaceEntry {
                id: self.spec.clone(),
                tags,
                added: Some(app.clock.now()),
            };
            workspace.add(&entry, OnListed::Refuse)?;
        }
        let lock = store.lock("crucible template init", LockClaim::IfFree)?;
        keep_out_of_git(project.root())?;
        // Another process may have just started the same spec.
        if !self.force && store.read(IDEA)?.is_some() {
            return Err(self.taken());
        }
        lock.write_context(
            IDEA.trim_start_matches("context/"),
            template.idea.as_bytes(),
        )?;
        let readme = store.dir().join("README.md");
        write_atomic(&readme, template.readme(&self.spec).as_bytes())?;
        drop(lock);
        let idea = store.dir().join(IDEA);
        let next = format!("crucible spec {} --through tasks", self.spec);
        if app.output.is_json() {
            app.output.json(&serde_json::json!({
                "schema_version": SCHEMA, "template": template.name, "spec_id": self.spec, "idea": idea,
                "readme": readme, "listed_in": workspace.as_ref().filter(|_| unlisted).map(WorkspaceFile::path), "next": next,
            }))?;
            return Ok(ExitStatus::Success);
        }
        app.output.line(&format!("wrote {}", idea.display()));
        app.output.line(&format!("wrote {}", readme.display()));
        if let Some(workspace) = workspace.filter(|_| unlisted) {
            app.output
                .line(&format!("listed in {}", workspace.path().display()));
        }
        app.output
            .line("next: edit the parts marked `Yours:` in the idea, then");
        app.output.line(&format!("      {next}"));
        Ok(ExitStatus::Success)
    }

    fn taken(&self) -> CommandError {
        CommandError::usage(format!(
            "the spec {} already exists and was not changed",
            self.spec
        ))
        .hint("Choose another id, or overwrite its idea and its README with --force.")
    }
}
