//! The commit of a run, and the signed statements about it.

use crucible_run::Landing;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::text::RedactedText;

/// The commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LandingView {
    /// Its id.
    pub commit: RedactedText,
    /// The tree that it holds.
    pub tree: RedactedText,
    /// Its message, trailers included.
    pub message: RedactedText,
}

impl LandingView {
    pub(crate) fn from_landing(landing: &Landing) -> Self {
        Self {
            commit: RedactedText::new(landing.commit.as_ref()),
            tree: RedactedText::new(landing.tree.as_ref()),
            message: RedactedText::new(&landing.message),
        }
    }
}

/// A signed statement about the commit. `crucible attest verify` checks its signature; here it is only shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatementView {
    /// The type of its predicate.
    pub predicate: RedactedText,
    /// What it is about: names with digests.
    pub subjects: Vec<RedactedText>,
}

impl StatementView {
    pub(crate) fn from_payload(payload: &[u8]) -> Self {
        let value: Value = serde_json::from_slice(payload).unwrap_or_default();
        let text =
            |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let subjects = value.get("subject").and_then(Value::as_array);
        let subject = |subject: &Value| {
            let digests = subject.get("digest").and_then(Value::as_object);
            let digests: Vec<String> = digests
                .into_iter()
                .flatten()
                .map(|(kind, digest)| format!("{kind} {}", digest.as_str().unwrap_or_default()))
                .collect();
            RedactedText::new(&format!(
                "{}: {}",
                text(subject.get("name")),
                digests.join(", ")
            ))
        };
        Self {
            predicate: RedactedText::new(&text(value.get("predicateType"))),
            subjects: subjects.into_iter().flatten().map(subject).collect(),
        }
    }
}
