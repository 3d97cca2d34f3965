//! A part of a document whose shape is free, as text.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::text::RedactedText;

/// JSON of any shape, shown as text without secrets. A JSON string is shown as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct JsonText(RedactedText);

impl JsonText {
    /// The text.
    #[must_use]
    pub const fn text(&self) -> &RedactedText {
        &self.0
    }

    /// Whether it has nothing to show.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(self.0.as_str(), "" | "null" | "[]" | "{}")
    }
}

impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = match Value::deserialize(deserializer)? {
            Value::String(text) => text,
            value => format!("{value:#}"),
        };
        Ok(Self(RedactedText::new(&text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_text_without_secrets() {
        let token = format!("ghp_{}", "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6");
        let value = serde_json::json!({ "hosts": ["a.test"], "key": token });
        let text: JsonText = serde_json::from_value(value).unwrap();
        assert!(text.text().as_str().contains("a.test"));
        assert!(!text.text().as_str().contains(&token));
        let empty: JsonText = serde_json::from_value(serde_json::json!([])).unwrap();
        assert!(empty.is_empty() && !text.is_empty());
    }
}
