//! Strict parsing of a model's reply: one JSON object with unique, known keys and bounded lists and strings.
//! Nothing is repaired.
//!
//! Invalid JSON and JSON of the wrong shape are different errors: the first is a failure of the provider, the
//! second of the schema. An error quotes at most one short, sanitized piece of the reply.

use std::fmt;

use serde::de::IgnoredAny;
use serde_json::{Map, Number, Value, json};

use crate::text::short_line;
use crate::unique_json::UniqueJson;

/// The most of a name or message from outside that an error shows.
const MAX_SHOWN: usize = 60;

/// Every whole number up to here has an exact floating-point value.
const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

/// Why a text is not the expected object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StrictFault {
    /// It is longer than the limit.
    #[error("it has {bytes} bytes; the limit is {limit}")]
    TooLong {
        /// How many it has.
        bytes: usize,
        /// How many are read.
        limit: usize,
    },
    /// It is not JSON, is truncated, or has trailing data.
    #[error("it is not a single JSON object ({detail})")]
    NoJson {
        /// Where it stops being JSON.
        detail: String,
    },
    /// It is JSON, but not of the expected shape.
    #[error("it does not match the expected object ({detail})")]
    WrongShape {
        /// Which place is wrong, and how.
        detail: String,
    },
}

/// Reads a text of at most `limit` bytes as one JSON object, which `from` destructures.
///
/// # Errors
///
/// See [`StrictFault`].
pub fn read<T>(
    text: &str,
    limit: usize,
    from: impl FnOnce(Fields) -> Result<T, SchemaMismatch>,
) -> Result<T, StrictFault> {
    if text.len() > limit {
        return Err(StrictFault::TooLong {
            bytes: text.len(),
            limit,
        });
    }
    serde_json::from_str::<IgnoredAny>(text).map_err(|error| StrictFault::NoJson {
        detail: why_no_json(text, &error),
    })?;
    let wrong = |detail: String| StrictFault::WrongShape { detail };
    let UniqueJson(value) = serde_json::from_str(text)
        .map_err(|error| wrong(short_line(&error.to_string(), MAX_SHOWN)))?;
    let read = Fields::new(value, "the reply".to_owned()).and_then(from);
    read.map_err(|misfit| wrong(misfit.0))
}

/// The most common mistakes of models get a description; others get their position.
fn why_no_json(text: &str, error: &serde_json::Error) -> String {
    let begun = text.trim_start();
    if begun.is_empty() {
        "it is empty".to_owned()
    } else if begun.starts_with("```") {
        "it begins with a Markdown fence, ```".to_owned()
    } else if begun.starts_with('{') {
        short_line(&error.to_string(), MAX_SHOWN)
    } else {
        "it begins with something else than `{`".to_owned()
    }
}

/// Returns a closed JSON Schema object: all keys required, no others. A model writes the keys in this order,
/// so reasons come before the decision.
#[must_use]
pub fn closed<const KEYS: usize>(properties: [(&str, Value); KEYS]) -> Value {
    let required = properties.each_ref().map(|(key, _)| *key);
    let properties: Map<String, Value> = properties
        .iter()
        .map(|(key, schema)| ((*key).to_owned(), schema.clone()))
        .collect();
    json!({
        "type": "object", "required": required.as_slice(), "additionalProperties": false, "properties": properties,
    })
}

/// What does not fit, with its place.
#[derive(Debug)]
pub struct SchemaMismatch(String);

impl SchemaMismatch {
    /// What does not fit at this place.
    pub fn new(place: &str, what: impl fmt::Display) -> Self {
        Self(format!("{place} {what}"))
    }
}

/// An object that is read key by key.
pub struct Fields {
    place: String,
    map: Map<String, Value>,
}

impl Fields {
    /// The object at a place.
    ///
    /// # Errors
    ///
    /// [`SchemaMismatch`] where it is something else.
    pub fn new(value: Value, place: String) -> Result<Self, SchemaMismatch> {
        match value {
            Value::Object(map) => Ok(Self { place, map }),
            other => Err(SchemaMismatch::new(
                &place,
                format_args!("is {}, not an object", kind(&other)),
            )),
        }
    }

    fn take(&mut self, key: &'static str) -> Result<Value, SchemaMismatch> {
        self.map
            .remove(key)
            .ok_or_else(|| SchemaMismatch::new(&self.place, format_args!("lacks `{key}`")))
    }

    fn place_of(&self, key: &str) -> String {
        format!("`{key}` of {}", self.place)
    }

    /// The value of a key that may be left out.
    pub fn optional(&mut self, key: &'static str) -> Option<(Value, String)> {
        self.map
            .remove(key)
            .map(|value| (value, self.place_of(key)))
    }

    /// An object.
    ///
    /// # Errors
    ///
    /// [`SchemaMismatch`] where it is something else.
    pub fn object(&mut self, key: &'static str) -> Result<Self, SchemaMismatch> {
        Self::new(self.take(key)?, self.place_of(key))
    }

    /// A text of at most so many characters.
    ///
    /// # Errors
    ///
    /// [`SchemaMismatch`] where it is something else.
    pub fn text(&mut self, key: &'static str, most: usize) -> Result<String, SchemaMismatch> {
        text(self.take(key)?, &self.place_of(key), most)
    }

    /// A text that is not empty.
    ///
    /// # Errors
    ///
    /// [`SchemaMismatch`] where it is something else.
    pub fn words(&mut self, key: &'static str, most: usize) -> Result<String, SchemaMismatch> {
        let text = self.text(key, most)?;
        if text.trim().is_empty() {
            return Err(SchemaMismatch::new(&self.place_of(key), "is empty"));
        }
        Ok(text)
    }

    /// A truth value.
    ///
    /// # Errors
    ///
    /// [`SchemaMismatch`] where it is something else.
    pub fn truth(&mut self, key: &'static str) -> Result<bool, SchemaMismatch> {
        truth(self.take(key)?, &self.place_of(key))
    }

    /// A truth value that may be left out.
    ///
    /// # Errors
    ///
    /// [`SchemaMismatch`] where it is something else.
    pub fn optional_truth(&mut self, key: &'static str) -> Result<Option<bool>, SchemaMismatch> {
        self.optional(key)
            .map(|(value, place)| truth(value, &place))
            .transpose()
    }

    /// A text that may be null or left out.
    ///
    /// # Errors
    ///
    /// [`SchemaMismatch`] where it is something else.
    pub fn optional_text(
        &mut self,
        key: &'static str,
        most: usize,
    ) -> Result<Option<String>, SchemaMismatch> {
        let given = self.optional(key).filter(|(value, _)| !value.is_null());
        given
            .map(|(value, place)| text(value, &place, most))
            .transpose()
    }

    /// A whole number of any size that is read exactly. As in a JSON Schema, `3.0` and `3e0` are whole.
    ///
    /// # Errors
    ///
    /// [`SchemaMismatch`] where it is something else.
    pub fn integer(&mut self, key: &'static str) -> Result<i128, SchemaMismatch> {
        let (value, place) = (self.take(key)?, self.place_of(key));
        let Value::Number(number) = &value else {
            return Err(SchemaMismatch::new(
                &place,
                format_args!("is {}, not a whole number", kind(&value)),
            ));
        };
        as_integer(number).ok_or_else(|| {
            SchemaMismatch::new(
                &place,
                format_args!("is {number}, which is not a whole number that can be read exactly"),
            )
        })
    }

    /// One of a few words.
    ///
    /// # Errors
    ///
    /// [`SchemaMismatch`] where it is something else.
    pub fn one_of<T: Copy>(
        &mut self,
        key: &'static str,
        known: &[(&str, T)],
    ) -> Result<T, SchemaMismatch> {
        let word = self.text(key, usize::MAX)?;
        known
            .iter()
            .find(|(name, _)| *name == word)
            .map(|(_, value)| *value)
            .ok_or_else(|| {
                let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
                let word = short_line(&word, MAX_SHOWN);
                SchemaMismatch::new(
                    &self.place_of(key),
                    format_args!("is \"{word}\", none of {}", names.join(", ")),
                )
            })
    }

    /// A list of at most so many items.
    ///
    /// # Errors
    ///
    /// [`SchemaMismatch`] where it is something else.
    pub fn list<T>(
        &mut self,
        key: &'static str,
        most: usize,
        item: impl Fn(Value, String) -> Result<T, SchemaMismatch>,
    ) -> Result<Vec<T>, SchemaMismatch> {
        list(self.take(key)?, &self.place_of(key), most, item)
    }

    /// A list of texts.
    ///
    /// # Errors
    ///
    /// [`SchemaMismatch`] where it is something else.
    pub fn texts(
        &mut self,
        key: &'static str,
        most: usize,
        each: usize,
    ) -> Result<Vec<String>, SchemaMismatch> {
        self.list(key, most, |value, place| text(value, &place, each))
    }

    /// Every key, with its value and its place.
    pub fn entries(self) -> impl Iterator<Item = (String, Value, String)> {
        let place = self.place;
        self.map.into_iter().map(move |(key, value)| {
            let place = format!("a value of {place}");
            (key, value, place)
        })
    }

    /// Checks that no key is left.
    ///
    /// # Errors
    ///
    /// [`SchemaMismatch`] where it is something else.
    pub fn finish(self) -> Result<(), SchemaMismatch> {
        match self.map.keys().next() {
            None => Ok(()),
            Some(key) => Err(SchemaMismatch::new(
                &self.place,
                format_args!("has the unknown key `{}`", short_line(key, MAX_SHOWN)),
            )),
        }
    }
}

/// Returns the value as a string.
///
/// # Errors
///
/// [`SchemaMismatch`] where it is something else.
pub fn text(value: Value, place: &str, most: usize) -> Result<String, SchemaMismatch> {
    match value {
        Value::String(text) if text.chars().count() > most => Err(SchemaMismatch::new(
            place,
            format_args!("is longer than {most} characters"),
        )),
        Value::String(text) => Ok(text),
        other => Err(SchemaMismatch::new(
            place,
            format_args!("is {}, not a text", kind(&other)),
        )),
    }
}

/// Returns the value as a list.
///
/// # Errors
///
/// [`SchemaMismatch`] where it is something else.
pub fn list<T>(
    value: Value,
    place: &str,
    most: usize,
    item: impl Fn(Value, String) -> Result<T, SchemaMismatch>,
) -> Result<Vec<T>, SchemaMismatch> {
    let Value::Array(values) = value else {
        return Err(SchemaMismatch::new(
            place,
            format_args!("is {}, not a list", kind(&value)),
        ));
    };
    if values.len() > most {
        let what = format!("has {} items, more than {most}", values.len());
        return Err(SchemaMismatch::new(place, what));
    }
    let numbered = values.into_iter().enumerate();
    numbered
        .map(|(index, value)| item(value, format!("item {} of {place}", index + 1)))
        .collect()
}

fn truth(value: Value, place: &str) -> Result<bool, SchemaMismatch> {
    match value {
        Value::Bool(truth) => Ok(truth),
        other => Err(SchemaMismatch::new(
            place,
            format_args!("is {}, not true or false", kind(&other)),
        )),
    }
}

fn as_integer(number: &Number) -> Option<i128> {
    let digits = number
        .as_i64()
        .map(i128::from)
        .or_else(|| number.as_u64().map(i128::from));
    let is_exact = |float: &f64| float.fract() == 0.0 && float.abs() <= MAX_SAFE_INTEGER;
    digits.or_else(|| {
        format!("{:.0}", number.as_f64().filter(is_exact)?)
            .parse()
            .ok()
    })
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Result<i128, String> {
        let read = read(&format!("{{\"n\":{text}}}"), 1000, |mut fields| {
            fields.integer("n")
        });
        read.map_err(|fault| fault.to_string())
    }

    #[test]
    fn whole_number_is_exact_or_refused() {
        for (text, whole) in [
            ("3", 3),
            ("-3", -3),
            ("0", 0),
            ("-0", 0),
            ("3.0", 3),
            ("1e3", 1000),
            ("18446744073709551615", 18_446_744_073_709_551_615),
            ("9007199254740993", 9_007_199_254_740_993),
            ("9007199254740991.0", 9_007_199_254_740_991),
        ] {
            assert_eq!(number(text), Ok(whole), "{text}");
        }
        for (text, content) in [
            ("2.5", "is 2.5, which is not a whole number"),
            (
                "9007199254740993.0",
                "which is not a whole number that can be read exactly",
            ),
            (
                "1e300",
                "which is not a whole number that can be read exactly",
            ),
            (
                "99999999999999999999",
                "is 1e+20, which is not a whole number",
            ),
            ("1e999", "out of range"),
            (
                "\"three\"",
                "`n` of the reply is a text, not a whole number",
            ),
            ("null", "`n` of the reply is null, not a whole number"),
            ("true", "not a whole number"),
        ] {
            let fault = number(text).unwrap_err();
            assert!(fault.contains(content), "{text}: {fault}");
        }
    }

    #[test]
    fn optional_key_of_wrong_type_is_refused() {
        fn both(text: &str) -> Result<(Option<String>, Option<bool>), String> {
            let both = read(text, 1000, |mut fields| {
                let both = (
                    fields.optional_text("text", 3)?,
                    fields.optional_truth("truth")?,
                );
                fields.finish().map(|()| both)
            });
            both.map_err(|fault| fault.to_string())
        }
        assert_eq!(both("{}"), Ok((None, None)));
        assert_eq!(both(r#"{"text":null}"#), Ok((None, None)));
        assert_eq!(
            both(r#"{"text":"","truth":false}"#),
            Ok((Some(String::new()), Some(false)))
        );
        for (text, content) in [
            (
                r#"{"text":1}"#,
                "`text` of the reply is a number, not a text",
            ),
            (
                r#"{"text":"four"}"#,
                "`text` of the reply is longer than 3 characters",
            ),
            (
                r#"{"truth":"true"}"#,
                "`truth` of the reply is a text, not true or false",
            ),
            (
                r#"{"truth":null}"#,
                "`truth` of the reply is null, not true or false",
            ),
        ] {
            let fault = both(text).unwrap_err();
            assert!(fault.contains(content), "{text}: {fault}");
        }
    }

    #[test]
    fn common_model_mistakes_are_described() {
        for (text, content) in [
            ("", "it is empty"),
            (" \n", "it is empty"),
            ("```json\n{}\n```", "it begins with a Markdown fence, ```"),
            ("Here it is: {}", "it begins with something else than `{`"),
            ("\u{feff}{}", "it begins with something else than `{`"),
            ("{} {}", "trailing characters at line 1 column 4"),
            ("{} Done!", "trailing characters at line 1 column 4"),
            ("{\"a\":", "EOF while parsing a value at line 1 column 5"),
        ] {
            let fault = read(text, 1000, |_| Ok(())).unwrap_err();
            assert_eq!(
                fault,
                StrictFault::NoJson {
                    detail: content.to_owned()
                },
                "{text}"
            );
        }
    }

    #[test]
    fn error_quotes_one_short_clean_piece() {
        let long = format!("{{\"word\":\"\\u001b[2J{}\"}}", "x".repeat(500));
        let fault = read(&long, 1000, |mut fields| {
            fields.one_of("word", &[("yes", true), ("no", false)])
        });
        let text = fault.unwrap_err().to_string();
        assert!(
            text.contains("`word` of the reply is \"\\u{1b}[2Jxx"),
            "{text}"
        );
        assert!(
            text.ends_with("x…\", none of yes, no)") && text.len() < 200,
            "{text}"
        );
    }
}
