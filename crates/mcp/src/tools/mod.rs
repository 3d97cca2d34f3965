//! The list of tools, and a file for each.

mod build_context;
mod check_patch;
mod land_run;
mod list_runs;
mod run_findings;
mod run_status;
mod start_run;
mod submit_proposal;

use rmcp::model::{Tool, ToolAnnotations};

use build_context::BuildContext;
use check_patch::CheckPatch;
use land_run::LandRun;
use list_runs::ListRuns;
use run_findings::RunFindings;
use run_status::RunStatus;
use start_run::StartRun;
use submit_proposal::SubmitProposal;

use crate::session::Landing;
use crate::tool::{Effect, ToolKind};

/// Every tool, in the order in which clients see them.
pub(crate) static TOOLS: &[&dyn ToolKind] = &[
    &BuildContext,
    &CheckPatch,
    &StartRun,
    &SubmitProposal,
    &RunStatus,
    &RunFindings,
    &ListRuns,
    &LandRun,
];

/// Returns the tool of this name.
pub(crate) fn tool(name: &str) -> Option<&'static dyn ToolKind> {
    TOOLS.iter().copied().find(|tool| tool.name() == name)
}

/// Returns the tools as clients see them. One that is not allowed is not listed.
pub(crate) fn list_tools(landing: Landing) -> Vec<Tool> {
    let is_listed =
        |tool: &&&dyn ToolKind| tool.effect() != Effect::Lands || landing == Landing::Allowed;
    TOOLS
        .iter()
        .filter(is_listed)
        .map(|tool| described(*tool))
        .collect()
}

fn described(tool: &dyn ToolKind) -> Tool {
    let hints = ToolAnnotations::new()
        .read_only(tool.effect() == Effect::Reads)
        .destructive(tool.effect() == Effect::Lands)
        .open_world(tool.effect() == Effect::Works);
    Tool::new(tool.name(), tool.description(), tool.schema())
        .with_title(tool.title())
        .with_annotations(hints)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_refuses_unknown_fields() {
        let tools = list_tools(Landing::Allowed);
        assert_eq!(tools.len(), TOOLS.len());
        for tool in tools {
            let schema = tool.schema_as_json_value();
            assert_eq!(schema["type"], "object", "{}", tool.name);
            assert_eq!(schema["additionalProperties"], false, "{}", tool.name);
            for (name, field) in schema["properties"].as_object().into_iter().flatten() {
                assert!(field["description"].is_string(), "{}: {name}", tool.name);
            }
            jsonschema::validator_for(&schema).unwrap();
        }
    }

    #[test]
    fn landing_is_listed_only_where_allowed() {
        let names = |landing| {
            let tools = list_tools(landing).into_iter();
            tools.map(|tool| tool.name.to_string()).collect::<Vec<_>>()
        };
        assert!(names(Landing::Allowed).contains(&"land_run".to_owned()));
        assert!(!names(Landing::Refused).contains(&"land_run".to_owned()));
    }
}
