//! Facts that the caller passes along with a question.

use std::collections::BTreeMap;

use serde_json::Value;

/// Facts about a question that only the triage sees.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TriageContext(BTreeMap<String, Value>);

impl TriageContext {
    /// An empty context.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// The entries, by key.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// The context as the triage sees it: compact JSON with sorted keys, or nothing if it is empty. It is
    /// not the canonical form, which would round large whole numbers.
    pub(crate) fn triage_json(&self) -> Option<String> {
        let entries = self
            .0
            .iter()
            .map(|(key, value)| (key.clone(), value.clone()));
        (!self.0.is_empty()).then(|| Value::Object(entries.collect()).to_string())
    }
}

impl<K: Into<String>, V: Into<Value>> FromIterator<(K, V)> for TriageContext {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        Self(
            entries
                .into_iter()
                .map(|(key, value)| (key.into(), value.into()))
                .collect(),
        )
    }
}
