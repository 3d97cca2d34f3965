//! The capabilities of a backend, so that callers need not guess.

use crucible_model::EditFormat;
use serde::{Deserialize, Serialize};

/// How far a backend can enforce a form of answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StructuredOutput {
    /// `metadata["response_format"]` may hold a JSON Schema for the answer, in OpenAI's shape:
    /// `{"type":"json_schema","json_schema":{"name","strict","schema"}}`. Every backend accepts a schema
    /// that closes each object (`additionalProperties: false`), requires all its properties, and bounds
    /// neither numbers nor strings. Properties are sent in the order of `required`, which is the order in
    /// which the model writes them. Bounds of a list (`minItems`, `maxItems`) are omitted unless the
    /// server is known to accept them. An answer that reaches its token limit still ends in the middle of
    /// its JSON.
    JsonSchema,
    /// The answer can be forced to be JSON of any shape.
    JsonMode,
    /// The model chooses the form.
    None,
}

impl StructuredOutput {
    /// The name, as in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::JsonSchema => "json-schema",
            Self::JsonMode => "json-mode",
            Self::None => "none",
        }
    }
}

/// The capabilities of a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Capabilities {
    /// The best form for file changes.
    pub edit_format: EditFormat,
    /// How far a form of answer can be enforced.
    pub structured_output: StructuredOutput,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_the_one_in_json() {
        for form in [
            StructuredOutput::JsonSchema,
            StructuredOutput::JsonMode,
            StructuredOutput::None,
        ] {
            assert_eq!(serde_json::to_value(form).unwrap(), form.as_str());
        }
    }
}
