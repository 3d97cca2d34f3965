//! `crucible template list`.

use clap::Args;
use crucible_model::{ExitStatus, Failure};
use crucible_spec::TEMPLATES;
use crucible_terminal::table;

use crate::app::App;

/// The schema name of the list.
const SCHEMA: &str = "crucible-templates-v1";

/// List the templates
#[derive(Args)]
pub(crate) struct List {}

impl List {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        if app.output.is_json() {
            let rows: Vec<_> = TEMPLATES
                .iter()
                .map(|template| serde_json::json!({ "name": template.name, "summary": template.summary }))
                .collect();
            app.output
                .json(&serde_json::json!({ "schema_version": SCHEMA, "templates": rows }))?;
            return Ok(ExitStatus::Success);
        }
        let mut rows = table(["template", "what it is for"]);
        for template in TEMPLATES {
            rows.add_row([template.name, template.summary]);
        }
        app.output.line(&rows.trim_fmt());
        app.output
            .line("next: crucible template init TEMPLATE SPEC-ID");
        Ok(ExitStatus::Success)
    }
}
