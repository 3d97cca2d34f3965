//! `crucible project add-spec`: adds a spec to the workspace.

use std::error::Error;

use clap::Args;
use crucible_model::{ExitStatus, Failure};
use crucible_spec::{EntryChange, OnListed, SpecId, SpecTag, WorkspaceEntry, WorkspaceFile};

use crate::app::App;
use crate::names::{parse_public_name, spec_id};

/// Add a spec to the workspace
///
/// Comments, unknown keys, order and line endings of workspace.yaml are preserved. The spec need not
/// exist yet: `crucible spec SPEC-ID` starts it.
#[derive(Args)]
pub(crate) struct AddSpec {
    /// The id of the spec
    #[arg(value_name = "SPEC-ID", value_parser = spec_id)]
    spec: SpecId,
    /// A tag of the spec (repeatable)
    #[arg(long = "tag", value_name = "TAG", value_parser = tag)]
    tags: Vec<SpecTag>,
    /// Replace the tags and the time of a spec that is already listed
    #[arg(long)]
    force: bool,
}

impl AddSpec {
    pub(crate) fn run(&self, app: &App, workspace: &WorkspaceFile) -> Result<ExitStatus, Failure> {
        let mut tags: Vec<String> = Vec::new();
        for tag in self.tags.iter().map(ToString::to_string) {
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        let entry = WorkspaceEntry {
            id: self.spec.clone(),
            tags,
            added: Some(app.clock.now()),
        };
        let listed = if self.force {
            OnListed::Replace
        } else {
            OnListed::Refuse
        };
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
    parse_public_name("a tag", text)
}
