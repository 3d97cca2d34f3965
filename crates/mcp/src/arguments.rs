//! Reads the arguments of a call, strictly.

use crucible_model::{ExitStatus, Failure, one_line};
use rmcp::model::JsonObject;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads arguments; `tool` is named in errors.
pub(crate) fn read<T: DeserializeOwned>(tool: &str, arguments: JsonObject) -> Result<T, Failure> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| {
        Failure::new(
            ExitStatus::Schema,
            format!(
                "the arguments of {tool} are not valid: {}",
                one_line(&error.to_string())
            ),
        )
        .hint("`tools/list` has the schema of the arguments; unknown fields are refused.")
    })
}

/// Refuses a text that is longer than `most` bytes.
pub(crate) fn limited(name: &str, text: &str, most: usize) -> Result<(), Failure> {
    match text.len() {
        length if length > most => Err(Failure::new(
            ExitStatus::OverLimit,
            format!("`{name}` has {length} bytes; the limit is {most}"),
        )),
        _ => Ok(()),
    }
}
