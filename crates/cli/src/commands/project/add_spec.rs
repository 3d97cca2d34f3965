//! `crucible project add-spec`: a spec more in the workspace.

use std::error::Error;

use clap::Args;
use crucible_model::ExitStatus;
use crucible_spec::{EntryChange, OnListed, SpecId, SpecTag, WorkspaceEntry, WorkspaceFile};

use crate::app::App;
use crate::commands::spec::place::{named, spec_id};
use crate::error::CommandError;

/// List a spec in the workspace
///
/// Comments, unknown keys, order and line ends of workspace.yaml stay. The spec need not have begun: `crucible spec SPEC-ID` begins it.
#[derive(Args)]
pub(crate) struct AddSpec {
    /// The spec's id
    #[arg(value_name = "SPEC-ID", value_parser = spec_id)]
    spec: SpecId,
    /// What it is about; give it once for each tag
    #[arg(long = "tag", value_name = "TAG", value_parser = tag)]
    tags: Vec<SpecTag>,
    /// Give a spec that is listed already these tags instead of its own, and a new instant
    #[arg(long)]
    force: bool,
}

impl AddSpec {
    pub(crate) fn run(&self, app: &App, workspace: &WorkspaceFile) -> Result<ExitStatus, CommandError> {
        let mut tags: Vec<String> = Vec::new();
        for tag in self.tags.iter().map(ToString::to_string) {
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        let entry = WorkspaceEntry { id: self.spec.clone(), tags, added: Some(app.clock.now()) };
        let listed = if self.force { OnListed::Replace } else { OnListed::Refuse };
        let change = workspace.add(&entry, listed)?;
        if app.output.is_json() {
            let change = match change {
                EntryChange::Added => "added",
                EntryChange::Replaced => "replaced",
            };
            app.output.json(&serde_json::json!({
                "schema_version": "workspace-add-json.v1", "workspace": workspace.path(), "change": change,
                "spec": { "id": entry.id, "tags": entry.tags, "added": entry.added },
            }))?;
        } else {
            let (id, path) = (&entry.id, workspace.path().display());
            app.output.line(&match change {
                EntryChange::Added => format!("added {id} to {path}"),
                EntryChange::Replaced => format!("{id} has new tags in {path}"),
            });
        }
        Ok(ExitStatus::Success)
    }
}

fn tag(text: &str) -> Result<SpecTag, Box<dyn Error + Send + Sync>> {
    named("a tag", text)
}
