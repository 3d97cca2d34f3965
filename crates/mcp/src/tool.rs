//! What a tool is.

use std::sync::Arc;

use async_trait::async_trait;
use crucible_model::Failure;
use rmcp::model::JsonObject;
use schemars::JsonSchema;

use crate::answer::Answer;
use crate::session::Session;

/// What a tool does to the world, as hints for clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    Reads,
    /// It writes to Crucible's own directory, and may call models.
    Works,
    /// It commits to the user's branch.
    Lands,
}

#[async_trait(?Send)]
pub(crate) trait ToolKind: Sync {
    fn name(&self) -> &'static str;
    /// Its title for people.
    fn title(&self) -> &'static str;
    /// What it does, for models.
    fn description(&self) -> &'static str;
    /// What it does to the world.
    fn effect(&self) -> Effect;
    /// The schema of its arguments.
    fn schema(&self) -> Arc<JsonObject>;
    async fn call(&self, session: &Session<'_>, arguments: JsonObject) -> Result<Answer, Failure>;
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
