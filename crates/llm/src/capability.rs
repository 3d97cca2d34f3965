//! What a backend is good at, so that callers ask instead of guessing.

use crucible_model::EditFormat;
use serde::{Deserialize, Serialize};

/// How far a backend can be held to a form of answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StructuredOutput {
    /// `metadata["response_format"]` may hold a JSON Schema that the answer then follows, in OpenAI's shape:
    /// `{"type":"json_schema","json_schema":{"name","strict","schema"}}`. Every backend takes one that closes each object
    /// (`additionalProperties: false`), requires all its properties, and bounds neither numbers nor texts. Properties go out in the
    /// order in which they are required, which is the order in which the model writes them. Bounds of a list (`minItems`,
    /// `maxItems`) are left out where the server is not known to take them. An answer at its token limit ends in the middle of
    /// its JSON even so.
    JsonSchema,
    /// The answer can be held to be JSON, of any shape.
    JsonMode,
    /// The form is up to the model.
    None,
}

impl StructuredOutput {
    /// Its name, as JSON has it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::JsonSchema => "json-schema",
            Self::JsonMode => "json-mode",
            Self::None => "none",
        }
    }
}

/// What a backend is good at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Capabilities {
    /// How it best hands back a change of files.
    pub edit_format: EditFormat,
    /// How far its answers can be held to a form.
    pub structured_output: StructuredOutput,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_the_one_in_json() {
        for form in [StructuredOutput::JsonSchema, StructuredOutput::JsonMode, StructuredOutput::None] {
            assert_eq!(serde_json::to_value(form).unwrap(), form.as_str());
        }
    }
}
