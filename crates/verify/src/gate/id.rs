//! The name of a gate.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The name of a gate, as a plan declares it and as its logs are called: `lite`, `cargo-test`, `npm-test.web`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GateId(String);

/// The text is no gate's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid gate name {text:?}; use 1 to 64 of a-z, 0-9, `-`, `_` and `.`, beginning with a letter or digit"
)]
pub struct GateIdError {
    text: String,
}

impl GateId {
    /// The name as text; safe as a part of a file's name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for GateId {
    type Err = GateIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let allowed =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
        let starts_well = text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
        if starts_well && text.len() <= 64 && text.bytes().all(allowed) {
            Ok(Self(text.to_owned()))
        } else {
            Err(GateIdError {
                text: text.chars().take(80).collect(),
            })
        }
    }
}

impl TryFrom<String> for GateId {
    type Error = GateIdError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<GateId> for String {
    fn from(id: GateId) -> Self {
        id.0
    }
}

impl fmt::Display for GateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_in_a_file_name() {
        for good in ["lite", "cargo-test", "npm_test.web", "7z"] {
            assert_eq!(good.parse::<GateId>().unwrap().to_string(), good);
        }
        for bad in [
            "",
            "../x",
            "a/b",
            "A",
            "-x",
            ".x",
            "a b",
            "a\0",
            &"x".repeat(65),
        ] {
            assert!(bad.parse::<GateId>().is_err(), "{bad:?}");
        }
    }
}
