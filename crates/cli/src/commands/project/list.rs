//! `crucible project list`: the specs of the workspace.

use clap::Args;
use crucible_model::{ExitStatus, Failure, one_line};
use crucible_spec::{WorkspaceEntry, WorkspaceFile};
use crucible_terminal::{lines_of, table};

use crate::app::App;

/// List the specs of the workspace
///
/// Reads only workspace.yaml; `crucible project status` reads the specs themselves.
#[derive(Args)]
pub(crate) struct List {
    /// Show only specs with this tag; several tags must all match
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
}

impl List {
    pub(crate) fn run(&self, app: &App, workspace: &WorkspaceFile) -> Result<ExitStatus, Failure> {
        let content = workspace.load()?;
        let requested =
            |entry: &&WorkspaceEntry| self.tags.iter().all(|tag| entry.tags.contains(tag));
        let specs: Vec<&WorkspaceEntry> = content.specs.iter().filter(requested).collect();
        if app.output.is_json() {
            let rows: Vec<_> = specs
                .iter()
                .map(|entry| {
                    let mut row = serde_json::json!({ "id": entry.id, "tags": entry.tags });
                    if let Some(added) = entry.added {
                        row["added"] = added.to_string().into();
                    }
                    row
                })
                .collect();
            app.output.json(&serde_json::json!({
                "schema_version": "workspace-list-json.v1", "workspace": workspace.path(), "name": content.name, "specs": rows,
            }))?;
        } else if content.specs.is_empty() {
            app.output
                .line("no specs yet; add one: crucible project add-spec SPEC-ID");
        } else if specs.is_empty() {
            app.output.line(&format!(
                "none of {} specs has the tags",
                content.specs.len()
            ));
        } else {
            let mut rows = table(["spec", "tags", "added"]);
            for entry in specs {
                let added = entry
                    .added
                    .map(|added| added.to_string())
                    .unwrap_or_default();
                rows.add_row([
                    entry.id.to_string(),
                    one_line(&entry.tags.join(", ")),
                    added,
                ]);
            }
            app.output.line(&lines_of(&rows));
        }
        Ok(ExitStatus::Success)
    }
}
