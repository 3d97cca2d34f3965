//! Names that Crucible gives out itself.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::time::Timestamp;

/// The name of one governed change, and of its directory: `20260131T093000Z-1f2e3d4c5b6a`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(String);

/// The text is not a run id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid run id {text:?}; list runs with `crucible run list`")]
pub struct IdError {
    text: String,
}

impl RunId {
    /// Creates an id from the start time of a run and the digest of its inputs.
    #[must_use]
    pub fn new(begun: Timestamp, of: Digest) -> Self {
        Self(format!(
            "{}-{}",
            begun.compact().to_ascii_lowercase(),
            of.short()
        ))
    }

    /// The id as text; safe as the name of a directory.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RunId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let starts_well = text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
        if starts_well && text.len() <= 64 && text.chars().all(allowed) {
            Ok(Self(text.to_owned()))
        } else {
            Err(IdError {
                text: text.chars().take(80).collect(),
            })
        }
    }
}

impl TryFrom<String> for RunId {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> Self {
        id.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_id_is_a_plain_directory_name() {
        let id = RunId::new(
            "2026-01-31T09:30:00Z".parse().unwrap(),
            Digest::compute(b"goal"),
        );
        assert_eq!(id.as_str().parse(), Ok(id.clone()));
        for bad in ["", ".", "..", "a/b", "A", "-a", "a b", &"a".repeat(65)] {
            assert!(bad.parse::<RunId>().is_err(), "{bad:?}");
        }
    }
}
