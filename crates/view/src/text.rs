//! Text from outside, without secrets.

use std::fmt;

use crucible_model::escaped;
use crucible_secrets::Scanner;
use serde::{Deserialize, Deserializer, Serialize};

/// A text that a person, a model, a repository or a program wrote. Detected secrets are replaced when it is made.
///
/// It may contain markup, so a page escapes it. [`fmt::Display`] shows control characters and direction marks as
/// escapes such as `\\u{202e}`; [`RedactedText::as_str`] and JSON have them as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct RedactedText(String);

impl RedactedText {
    /// Creates the text, with each secret replaced by `[secret:<rule-id>]`.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(Scanner::builtin().redact(text).text.into_owned())
    }

    /// Creates the text from bytes; invalid UTF-8 is replaced.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self::new(&String::from_utf8_lossy(bytes))
    }

    /// Creates each text of a list.
    pub(crate) fn all<T: AsRef<str>>(texts: &[T]) -> Vec<Self> {
        texts.iter().map(|text| Self::new(text.as_ref())).collect()
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RedactedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escaped(&self.0))
    }
}

impl<'de> Deserialize<'de> for RedactedText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self::new(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_displayed_as_escapes() {
        let text = RedactedText::new("a\u{202e}\u{1b}[2J\n");
        assert_eq!(text.to_string(), "a\\u{202e}\\u{1b}[2J\n");
        assert_eq!(text.as_str(), "a\u{202e}\u{1b}[2J\n");
    }

    #[test]
    fn secrets_are_replaced_by_each_constructor() {
        let token = format!("ghp_{}", "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6");
        let text = format!("token {token} <b>");
        let parsed: RedactedText =
            serde_json::from_value(serde_json::Value::from(text.as_str())).unwrap();
        for content in [
            RedactedText::new(&text),
            RedactedText::from_bytes(text.as_bytes()),
            parsed,
        ] {
            assert!(!content.as_str().contains(&token), "{content}");
            assert!(content.as_str().contains("[secret:") && content.as_str().ends_with(" <b>"));
        }
    }
}
