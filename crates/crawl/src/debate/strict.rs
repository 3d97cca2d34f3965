//! Reading a reply strictly: the whole text is one JSON object, its keys are unique and exactly those that are known, and every
//! list and text is bounded. Nothing is repaired.
//!
//! What is no JSON is told apart from JSON of another shape: the first is a failure of the provider, the second one of the
//! schema.

use std::fmt;

use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::error::ReplyFault;
use crate::short_line::short_line;
use crate::unique_json::UniqueJson;

/// The longest reply that is read, in bytes: the largest budget in tokens that are all long.
pub(super) const MOST_BYTES: usize = 64 * 1024;

/// The most of a name or message from outside that an error shows.
const MOST_SHOWN: usize = 60;

/// Reads a reply.
///
/// # Errors
///
/// [`ReplyFault::TooLong`], [`ReplyFault::NoJson`] or [`ReplyFault::WrongShape`].
pub(super) fn read<T>(text: &str, from: impl FnOnce(Fields) -> Result<T, Misfit>) -> Result<T, ReplyFault> {
    if text.len() > MOST_BYTES {
        return Err(ReplyFault::TooLong { bytes: text.len(), limit: MOST_BYTES });
    }
    serde_json::from_str::<IgnoredAny>(text)
        .map_err(|error| ReplyFault::NoJson { detail: short_line(&error.to_string(), MOST_SHOWN) })?;
    let wrong = |detail: String| ReplyFault::WrongShape { detail };
    let UniqueJson(value) =
        serde_json::from_str(text).map_err(|error| wrong(short_line(&error.to_string(), MOST_SHOWN)))?;
    let read = Fields::of(value, "the reply".to_owned()).and_then(from);
    read.map_err(|misfit| wrong(misfit.0))
}

/// What does not fit, with its place.
#[derive(Debug)]
pub(super) struct Misfit(String);

impl Misfit {
    pub(super) fn new(place: &str, what: impl fmt::Display) -> Self {
        Self(format!("{place} {what}"))
    }
}

/// An object that is taken apart, key by key.
pub(super) struct Fields {
    place: String,
    map: Map<String, Value>,
}

impl Fields {
    /// The object at a place.
    pub(super) fn of(value: Value, place: String) -> Result<Self, Misfit> {
        match value {
            Value::Object(map) => Ok(Self { place, map }),
            other => Err(Misfit::new(&place, format_args!("is {}, not an object", kind(&other)))),
        }
    }

    fn take(&mut self, key: &'static str) -> Result<Value, Misfit> {
        self.map.remove(key).ok_or_else(|| Misfit::new(&self.place, format_args!("lacks `{key}`")))
    }

    fn place_of(&self, key: &str) -> String {
        format!("`{key}` of {}", self.place)
    }

    /// The value of a key that may be left out.
    pub(super) fn optional(&mut self, key: &'static str) -> Option<(Value, String)> {
        self.map.remove(key).map(|value| (value, self.place_of(key)))
    }

    /// An object.
    pub(super) fn object(&mut self, key: &'static str) -> Result<Self, Misfit> {
        Self::of(self.take(key)?, self.place_of(key))
    }

    /// A text of at most so many characters.
    pub(super) fn text(&mut self, key: &'static str, most: usize) -> Result<String, Misfit> {
        text(self.take(key)?, &self.place_of(key), most)
    }

    /// A text that is not empty.
    pub(super) fn words(&mut self, key: &'static str, most: usize) -> Result<String, Misfit> {
        let text = self.text(key, most)?;
        if text.trim().is_empty() {
            return Err(Misfit::new(&self.place_of(key), "is empty"));
        }
        Ok(text)
    }

    /// A truth value.
    pub(super) fn truth(&mut self, key: &'static str) -> Result<bool, Misfit> {
        match self.take(key)? {
            Value::Bool(truth) => Ok(truth),
            other => {
                let what = format!("is {}, not true or false", kind(&other));
                Err(Misfit::new(&self.place_of(key), what))
            }
        }
    }

    /// One of a few words.
    pub(super) fn one_of<T: Copy>(&mut self, key: &'static str, known: &[(&str, T)]) -> Result<T, Misfit> {
        let word = self.text(key, MOST_SHOWN)?;
        known.iter().find(|(name, _)| *name == word).map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            Misfit::new(&self.place_of(key), format_args!("is none of {}", names.join(", ")))
        })
    }

    /// A list of at most so many items.
    pub(super) fn list<T>(
        &mut self,
        key: &'static str,
        most: usize,
        item: impl Fn(Value, String) -> Result<T, Misfit>,
    ) -> Result<Vec<T>, Misfit> {
        list(self.take(key)?, &self.place_of(key), most, item)
    }

    /// A list of texts.
    pub(super) fn texts(
        &mut self,
        key: &'static str,
        most: usize,
        each: usize,
    ) -> Result<Vec<String>, Misfit> {
        self.list(key, most, |value, place| text(value, &place, each))
    }

    /// Every key, with its value and its place.
    pub(super) fn entries(self) -> impl Iterator<Item = (String, Value, String)> {
        let place = self.place;
        self.map.into_iter().map(move |(key, value)| {
            let place = format!("a value of {place}");
            (key, value, place)
        })
    }

    /// Makes sure that nothing is left.
    pub(super) fn done(self) -> Result<(), Misfit> {
        match self.map.keys().next() {
            None => Ok(()),
            Some(key) => Err(Misfit::new(
                &self.place,
                format_args!("has the unknown key `{}`", short_line(key, MOST_SHOWN)),
            )),
        }
    }
}

/// The text that a value is.
pub(super) fn text(value: Value, place: &str, most: usize) -> Result<String, Misfit> {
    match value {
        Value::String(text) if text.chars().count() > most => {
            Err(Misfit::new(place, format_args!("is longer than {most} characters")))
        }
        Value::String(text) => Ok(text),
        other => Err(Misfit::new(place, format_args!("is {}, not a text", kind(&other)))),
    }
}

/// The list that a value is.
pub(super) fn list<T>(
    value: Value,
    place: &str,
    most: usize,
    item: impl Fn(Value, String) -> Result<T, Misfit>,
) -> Result<Vec<T>, Misfit> {
    let Value::Array(values) = value else {
        return Err(Misfit::new(place, format_args!("is {}, not a list", kind(&value))));
    };
    if values.len() > most {
        let what = format!("has {} items, more than {most}", values.len());
        return Err(Misfit::new(place, what));
    }
    let numbered = values.into_iter().enumerate();
    numbered.map(|(index, value)| item(value, format!("item {} of {place}", index + 1))).collect()
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
