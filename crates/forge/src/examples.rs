//! Held-out examples: inputs of a skill and their outputs. The proposer gives them, and no agent that builds the skill
//! sees them.

use crucible_model::{UniqueJson, short_line};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::io_schema::{IoSchema, IoSide};

/// The most examples.
pub(crate) const MAX_EXAMPLES: usize = 64;
/// The most bytes that they take together.
pub const MAX_EXAMPLES_BYTES: usize = 256 * 1024;
/// The form in which they are kept.
const FORM: &str = "skill-examples.v1";

/// An input with its expected output, hidden from the agent that builds the skill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldOutExample {
    /// What goes in.
    pub input: Value,
    /// What has to come out.
    pub output: Value,
}

/// Why a document is not a list of examples.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExamplesError {
    /// It is not of that form.
    #[error("the examples are a JSON list of {{\"input\": …, \"output\": …}}: {why}")]
    Form {
        /// What is wrong.
        why: String,
    },
    /// The list is empty.
    #[error("the list of examples is empty; leave it out, or give one")]
    None,
    /// There are more than `MAX_EXAMPLES`.
    #[error("there are {count} examples, at most {MAX_EXAMPLES} are taken")]
    TooMany {
        /// How many.
        count: usize,
    },
    /// Together they exceed [`MAX_EXAMPLES_BYTES`].
    #[error("the examples have more than {MAX_EXAMPLES_BYTES} bytes; take smaller ones")]
    TooLarge,
    /// One does not fit its schema.
    #[error("example {number}: its {} does not fit the I/O schema: {why}", side.as_str())]
    SchemaMismatch {
        /// Which, from 1 on.
        number: usize,
        /// Which part of it.
        side: IoSide,
        /// What does not fit.
        why: String,
    },
}

impl HeldOutExample {
    /// Reads a list of examples, each of which has to fit these schemas.
    ///
    /// # Errors
    ///
    /// [`ExamplesError`] names the first that is wrong.
    pub fn read(bytes: &[u8], schema: &IoSchema) -> Result<Vec<Self>, ExamplesError> {
        if bytes.len() > MAX_EXAMPLES_BYTES {
            return Err(ExamplesError::TooLarge);
        }
        let form = |error: serde_json::Error| ExamplesError::Form {
            why: short_line(&error.to_string(), 120),
        };
        Self::parse(UniqueJson::exact(bytes).map_err(form)?, schema)
    }

    /// The examples of a list, each of which has to fit these schemas.
    fn parse(document: Value, schema: &IoSchema) -> Result<Vec<Self>, ExamplesError> {
        let examples: Vec<Self> =
            serde_json::from_value(document).map_err(|_| ExamplesError::Form {
                why: "the path exists and is not a regular file".to_owned(),
            })?;
        match examples.len() {
            0 => return Err(ExamplesError::None),
            count if count > MAX_EXAMPLES => return Err(ExamplesError::TooMany { count }),
            _ => {}
        }
        for (index, example) in examples.iter().enumerate() {
            for (side, value) in [
                (IoSide::Input, &example.input),
                (IoSide::Output, &example.output),
            ] {
                let problems = schema.problems(side, value);
                if !problems.is_empty() {
                    return Err(ExamplesError::SchemaMismatch {
                        number: index + 1,
                        side,
                        why: problems.join("; "),
                    });
                }
            }
        }
        Ok(examples)
    }

    /// The examples in a kept document; none where the document is something else.
    ///
    /// # Errors
    ///
    /// [`ExamplesError`] where a document of this form holds no examples for these schemas.
    pub fn parse_stored(
        document: &[u8],
        schema: &IoSchema,
    ) -> Result<Option<Vec<Self>>, ExamplesError> {
        let Ok(UniqueJson(mut document)) = serde_json::from_slice::<UniqueJson>(document) else {
            return Ok(None);
        };
        if document.get("schema_version").and_then(Value::as_str) != Some(FORM) {
            return Ok(None);
        }
        // What was taken once is not measured again: a number may have more digits in the form in which it is kept.
        document
            .get_mut("examples")
            .map(|examples| Self::parse(examples.take(), schema))
            .transpose()
    }

    /// The document in which examples are kept. It is not canonical JSON, which cannot represent integers above 2^53
    /// exactly.
    #[must_use]
    pub fn document(examples: &[Self]) -> Vec<u8> {
        json!({ "schema_version": FORM, "examples": examples })
            .to_string()
            .into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> IoSchema {
        IoSchema::from_value(json!({
            "input": {"type": "object", "required": ["text"]},
            "output": {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
        }))
        .unwrap()
    }

    fn read(value: &Value) -> Result<Vec<HeldOutExample>, ExamplesError> {
        HeldOutExample::read(value.to_string().as_bytes(), &schema())
    }

    #[test]
    fn stored_examples_round_trip_and_others_are_refused() {
        let example = json!({"input": {"text": "a b", "id": 9_007_199_254_740_993_u64}, "output": {"count": 2}});
        let examples = read(&json!([example])).unwrap();
        let document = HeldOutExample::document(&examples);
        assert_eq!(
            HeldOutExample::parse_stored(&document, &schema()),
            Ok(Some(examples))
        );
        assert_eq!(
            HeldOutExample::parse_stored(br#"{"schema_version": "x", "examples": []}"#, &schema()),
            Ok(None)
        );
        assert_eq!(HeldOutExample::parse_stored(b"a note", &schema()), Ok(None));
        let empty = format!(r#"{{"schema_version": "{FORM}", "examples": []}}"#);
        assert_eq!(
            HeldOutExample::parse_stored(empty.as_bytes(), &schema()),
            Err(ExamplesError::None)
        );
    }

    #[test]
    fn stored_examples_of_any_length_round_trip() {
        let numbers = vec!["1e9"; 40_000].join(",");
        let text = format!(r#"[{{"input":{{"text":[{numbers}]}},"output":{{"count":2}}}}]"#);
        let examples = HeldOutExample::read(text.as_bytes(), &schema()).unwrap();
        let document = HeldOutExample::document(&examples);
        assert!(document.len() > MAX_EXAMPLES_BYTES, "{}", document.len());
        assert_eq!(
            HeldOutExample::parse_stored(&document, &schema())
                .unwrap()
                .map(|stored_held_out_examples| stored_held_out_examples.len()),
            Some(1)
        );
    }

    #[test]
    fn examples_must_match_their_schemas_and_limits() {
        let good = json!({"input": {"text": "a b"}, "output": {"count": 2}});
        assert_eq!(read(&json!([good])).unwrap().len(), 1);
        assert_eq!(read(&json!([])), Err(ExamplesError::None));
        let many = vec![good.clone(); MAX_EXAMPLES + 1];
        assert_eq!(
            read(&json!(many)),
            Err(ExamplesError::TooMany {
                count: MAX_EXAMPLES + 1
            })
        );
        for bad in [
            json!({}),
            json!([1]),
            json!([{"input": {}}]),
            json!([{"input": {}, "output": {}, "x": 1}]),
        ] {
            assert!(
                matches!(read(&bad), Err(ExamplesError::Form { .. })),
                "{bad}"
            );
        }
        let misfit = json!([good, {"input": {"text": ""}, "output": {"count": "two"}}]);
        assert!(matches!(
            read(&misfit),
            Err(ExamplesError::SchemaMismatch {
                number: 2,
                side: IoSide::Output,
                ..
            })
        ));
        let large = vec![b' '; MAX_EXAMPLES_BYTES + 1];
        assert_eq!(
            HeldOutExample::read(&large, &schema()),
            Err(ExamplesError::TooLarge)
        );
    }
}
