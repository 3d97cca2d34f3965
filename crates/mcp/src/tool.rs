//! The list of tools.

use std::sync::Arc;

use async_trait::async_trait;
use crucible_model::Failure;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;

use crate::answer::Answer;
use crate::calls::Session;
use crate::tools;

/// What a tool does to the world, as hints for clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It reads.
    Reads,
    /// It writes to Crucible's own directory, and may call models.
    Works,
    /// It commits to the user's branch.
    Lands,
}

/// One tool.
#[async_trait(?Send)]
pub(crate) trait ToolKind: Sync {
    /// Its name.
    fn name(&self) -> &'static str;
    /// Its title for people.
    fn title(&self) -> &'static str;
    /// What it does, for models.
    fn description(&self) -> &'static str;
    /// What it does to the world.
    fn effect(&self) -> Effect;
    /// The schema of its arguments.
    fn schema(&self) -> Arc<JsonObject>;
    /// Calls it.
    async fn call(&self, session: &Session<'_>, arguments: JsonObject) -> Result<Answer, Failure>;
}

/// Every tool, in the order in which clients see them.
pub(crate) static TOOLS: &[&dyn ToolKind] = &[
    &tools::BuildContext,
    &tools::CheckPatch,
    &tools::StartRun,
    &tools::SubmitProposal,
    &tools::RunStatus,
    &tools::RunFindings,
    &tools::ListRuns,
    &tools::LandRun,
];

/// Whether clients may land changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Landing {
    /// The user's settings allow it.
    Allowed,
    /// Only the user lands.
    Refused,
}

/// Returns the tool of this name.
pub(crate) fn tool(name: &str) -> Option<&'static dyn ToolKind> {
    TOOLS.iter().copied().find(|tool| tool.name() == name)
}

/// Returns the tools as clients see them. One that is not allowed is not listed.
pub(crate) fn listed(landing: Landing) -> Vec<Tool> {
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

/// The schema of arguments of this type.
pub(crate) fn schema_of<T: JsonSchema>() -> Arc<JsonObject> {
    let settings = schemars::generate::SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
    });
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut object = match schema.to_value() {
        serde_json::Value::Object(object) => object,
        _ => JsonObject::new(),
    };
    object.remove("title");
    object.remove("description");
    Arc::new(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_refuses_unknown_fields() {
        let tools = listed(Landing::Allowed);
        assert_eq!(tools.len(), TOOLS.len());
        for tool in tools {
            let schema = tool.schema_as_json_value();
            assert_eq!(schema["type"], "object", "{}", tool.name);
            assert_eq!(schema["additionalProperties"], false, "{}", tool.name);
            for (name, field) in schema["properties"].as_object().unwrap() {
                assert!(field["description"].is_string(), "{}: {name}", tool.name);
            }
            jsonschema::validator_for(&schema).unwrap();
        }
    }

    #[test]
    fn landing_is_listed_only_where_allowed() {
        let names = |landing| {
            let tools = listed(landing).into_iter();
            tools.map(|tool| tool.name.to_string()).collect::<Vec<_>>()
        };
        assert!(names(Landing::Allowed).contains(&"land_run".to_owned()));
        assert!(!names(Landing::Refused).contains(&"land_run".to_owned()));
    }
}
