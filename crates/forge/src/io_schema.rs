//! What goes into a skill and what comes out: two JSON Schemas, each of an object.
//!
//! A schema is text from outside that decides later whether a run succeeded, so it is held to a part of JSON Schema 2020-12 that cannot be
//! turned against its user: references lead within the schema, by JSON pointer, never in a circle, and unfold to a bounded size;
//! patterns are regular expressions that take linear time; nothing is ever fetched.

use std::collections::BTreeMap;

use crucible_model::{UniqueJson, is_hidden, short_line, to_canonical_json};
use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::{Map, Value};

/// The most bytes that both schemas take together, as canonical JSON.
pub const MAX_SCHEMA_BYTES: usize = 64 * 1024;
/// The deepest nesting.
const MAX_DEPTH: usize = 32;
/// The most values that a schema has when each reference stands for what it names.
const MAX_UNFOLDED: u64 = 20_000;
/// The most problems that are reported for one value.
const MAX_PROBLEMS: usize = 8;
/// The most characters that are shown of a place.
const MAX_LEN: usize = 120;

/// The schemas of what goes in and what comes out.
#[derive(Debug)]
pub struct IoSchema {
    document: Value,
    input: Validator,
    output: Validator,
}

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoSide {
    /// What goes in.
    Input,
    /// What comes out.
    Output,
}

impl IoSide {
    /// Its key in the document.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
        }
    }
}

/// Why a document is not a pair of schemas.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IoSchemaError {
    /// It is not JSON.
    #[error("the I/O schema is not JSON: {why}")]
    NotJson {
        /// What the parser says.
        why: String,
    },
    /// It is too large.
    #[error(
        "the I/O schema has {bytes} bytes, {MAX_SCHEMA_BYTES} at most are taken; a skill does one thing"
    )]
    TooLarge {
        /// How many.
        bytes: usize,
    },
    /// It is nested too deeply.
    #[error("the I/O schema is nested deeper than {MAX_DEPTH} levels; name its parts under $defs")]
    TooDeep,
    /// It is not an object of these two keys.
    #[error(
        "the I/O schema is {{\"input\": SCHEMA, \"output\": SCHEMA}}, with exactly these two keys; each is a JSON Schema"
    )]
    Shape,
    /// One of them is not the schema of an object.
    #[error("the schema of the {} has to say \"type\": \"object\": a skill takes and gives named values", side.as_str())]
    NotAnObject {
        /// Which.
        side: IoSide,
    },
    /// It uses what is not taken.
    #[error("{place} is not allowed in an I/O schema: {why}")]
    Keyword {
        /// Where, as a JSON pointer.
        place: String,
        /// The reason, as the end of the message.
        why: &'static str,
    },
    /// A reference leads nowhere, or to itself.
    #[error("the reference {reference} {why}")]
    Reference {
        /// The value of `$ref`.
        reference: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// It is not a JSON Schema.
    #[error("the schema of the {} is not a JSON Schema (2020-12): {why}", side.as_str())]
    NotASchema {
        /// Which.
        side: IoSide,
        /// What is wrong, with its place.
        why: String,
    },
}

impl IoSchema {
    /// Reads the document.
    ///
    /// # Errors
    ///
    /// [`IoSchemaError`] says what to change.
    pub fn parse(bytes: &[u8]) -> Result<Self, IoSchemaError> {
        // A document may be laid out with as much space as it has text.
        if bytes.len() > 4 * MAX_SCHEMA_BYTES {
            return Err(IoSchemaError::TooLarge { bytes: bytes.len() });
        }
        let document = UniqueJson::exact(bytes).map_err(|error| IoSchemaError::NotJson {
            why: short_line(&error.to_string(), MAX_LEN),
        })?;
        Self::from_value(document)
    }

    /// The schemas of this document.
    ///
    /// # Errors
    ///
    /// As [`IoSchema::parse`].
    pub fn from_value(document: Value) -> Result<Self, IoSchemaError> {
        if !is_shallow(&document, MAX_DEPTH) {
            return Err(IoSchemaError::TooDeep);
        }
        let canonical = to_canonical_json(&document).map_err(|error| IoSchemaError::NotJson {
            why: short_line(&error.to_string(), MAX_LEN),
        })?;
        if canonical.len() > MAX_SCHEMA_BYTES {
            return Err(IoSchemaError::TooLarge {
                bytes: canonical.len(),
            });
        }
        let (input, output) = match document.as_object() {
            Some(both) if both.len() == 2 => match (both.get("input"), both.get("output")) {
                (Some(input), Some(output)) => (input, output),
                _ => return Err(IoSchemaError::Shape),
            },
            _ => return Err(IoSchemaError::Shape),
        };
        let (input, output) = (
            compile(IoSide::Input, input)?,
            compile(IoSide::Output, output)?,
        );
        Ok(Self {
            document,
            input,
            output,
        })
    }

    /// Both schemas, as they were given.
    #[must_use]
    pub const fn document(&self) -> &Value {
        &self.document
    }

    /// What does not fit in a value, each with its place, at most eight; nothing where it fits. No value is repeated.
    #[must_use]
    pub fn problems(&self, side: IoSide, value: &Value) -> Vec<String> {
        let validator = match side {
            IoSide::Input => &self.input,
            IoSide::Output => &self.output,
        };
        let describe = |error: jsonschema::ValidationError<'_>| {
            let place = error.instance_path().to_string();
            let place = if place.is_empty() {
                "the whole"
            } else {
                place.as_str()
            };
            short_line(
                &format!("{place}: {}", error.masked_with("the value")),
                3 * MAX_LEN,
            )
        };
        validator
            .iter_errors(value)
            .take(MAX_PROBLEMS)
            .map(describe)
            .collect()
    }
}

/// Makes the judge of one schema.
fn compile(side: IoSide, schema: &Value) -> Result<Validator, IoSchemaError> {
    let not_an_object = || IoSchemaError::NotAnObject { side };
    let top = schema.as_object().ok_or_else(not_an_object)?;
    if top.get("type").and_then(Value::as_str) != Some("object") {
        return Err(not_an_object());
    }
    let mut place = format!("/{}", side.as_str());
    check_keys(schema, &mut place)?;
    let mut sizes = BTreeMap::new();
    if unfolded(schema, schema, &mut sizes)? > MAX_UNFOLDED {
        let why = "leads, together with the others, to more than can be checked in time";
        let reference = sizes.into_keys().next().unwrap_or_default();
        return Err(IoSchemaError::Reference { reference, why });
    }
    let not_a_schema = |place: String, why: String| {
        let place = if place.is_empty() {
            "the whole".to_owned()
        } else {
            place
        };
        let why = short_line(&format!("{place}: {why}"), 3 * MAX_LEN);
        IoSchemaError::NotASchema { side, why }
    };
    if let Err(error) = jsonschema::draft202012::meta::validate(schema) {
        return Err(not_a_schema(
            error.instance_path().to_string(),
            error.to_string(),
        ));
    }
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .with_pattern_options(
            PatternOptions::regex()
                .size_limit(1 << 20)
                .dfa_size_limit(1 << 20),
        )
        .should_validate_formats(true)
        .build(schema)
        .map_err(|error| not_a_schema(error.instance_path().to_string(), error.to_string()))
}

/// Refuses what would make a reference mean something else than its pointer, other drafts, and texts that hide something.
fn check_keys(value: &Value, place: &mut String) -> Result<(), IoSchemaError> {
    let refused = |place: &str, why| {
        Err(IoSchemaError::Keyword {
            place: short_line(place, MAX_LEN),
            why,
        })
    };
    let hides = |text: &str| {
        text.chars()
            .any(|c| is_hidden(c) && !matches!(c, '\n' | '\t'))
    };
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                let before = place.len();
                place.push('/');
                place.push_str(key);
                if hides(key) {
                    return refused(place, "it holds characters that nobody sees");
                }
                if let Some(why) = refusal(key, inner) {
                    return refused(place, why);
                }
                check_keys(inner, place)?;
                place.truncate(before);
            }
            Ok(())
        }
        Value::Array(items) => items.iter().try_for_each(|item| check_keys(item, place)),
        Value::String(text) if hides(text) => {
            refused(place, "it holds characters that nobody sees")
        }
        Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => Ok(()),
    }
}

/// Why a keyword with this value is not taken.
fn refusal(key: &str, value: &Value) -> Option<&'static str> {
    let text = value.as_str()?;
    match key {
        "$ref" if text != "#" && !text.starts_with("#/") => {
            Some("a reference leads within the schema, such as #/$defs/NAME; nothing is fetched")
        }
        "$id" | "$anchor" | "$dynamicAnchor" | "$dynamicRef" | "$recursiveRef" => {
            Some("references are JSON pointers within the schema, such as #/$defs/NAME")
        }
        "$schema"
            if text.trim_end_matches('#') != "https://json-schema.org/draft/2020-12/schema" =>
        {
            Some("only the draft 2020-12 is")
        }
        _ => None,
    }
}

/// How many values a part of a schema has where each reference stands for what it names. `sizes` knows those references that were
/// followed; one that is being followed has no size yet.
fn unfolded(
    root: &Value,
    part: &Value,
    sizes: &mut BTreeMap<String, Option<u64>>,
) -> Result<u64, IoSchemaError> {
    let inner: Vec<&Value> = match part {
        Value::Object(map) => map.values().collect(),
        Value::Array(items) => items.iter().collect(),
        _ => Vec::new(),
    };
    let mut size: u64 = 1;
    if let Some(reference) = part.as_object().and_then(reference) {
        size = size.saturating_add(followed(root, reference, sizes)?);
    }
    for value in inner {
        size = size.saturating_add(unfolded(root, value, sizes)?);
    }
    Ok(size)
}

fn followed(
    root: &Value,
    reference: &str,
    sizes: &mut BTreeMap<String, Option<u64>>,
) -> Result<u64, IoSchemaError> {
    let wrong = |why| IoSchemaError::Reference {
        reference: short_line(reference, MAX_LEN),
        why,
    };
    match sizes.get(reference) {
        Some(Some(size)) => return Ok(*size),
        Some(None) => {
            return Err(wrong(
                "leads in a circle; a skill takes and gives values of a bounded depth",
            ));
        }
        None => {}
    }
    if sizes.values().filter(|size| size.is_none()).count() >= MAX_DEPTH {
        return Err(wrong(
            "is the last of too long a chain of references; write its parts where they are used",
        ));
    }
    if reference.contains('%') {
        return Err(wrong(
            "is escaped; name parts with letters, digits, `_` and `-`",
        ));
    }
    let target = root
        .pointer(reference.trim_start_matches('#'))
        .ok_or_else(|| wrong("leads nowhere in its schema; name the part under its $defs"))?;
    sizes.insert(reference.to_owned(), None);
    let size = unfolded(root, target, sizes)?;
    sizes.insert(reference.to_owned(), Some(size));
    Ok(size)
}

fn reference(map: &Map<String, Value>) -> Option<&str> {
    map.get("$ref").and_then(Value::as_str)
}

/// Whether a value has no more levels than these.
fn is_shallow(value: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else {
        return false;
    };
    match value {
        Value::Object(map) => map.values().all(|value| is_shallow(value, below)),
        Value::Array(items) => items.iter().all(|value| is_shallow(value, below)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

#[cfg(test)]
mod tests;
