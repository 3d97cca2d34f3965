//! The id of a spec, which is also the name of its directory.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The longest id, in bytes.
const MAX_LEN: usize = 64;

/// The id of a spec: 1 to 64 ASCII letters, digits, `-`, `_` and `.`, starting with a letter or a digit,
/// not ending with `.`, and without two `.` in a row. So it is a plain directory name on every system.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SpecId(String);

/// The text is not the id of a spec.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a spec id: {text:?}; it takes 1 to {MAX_LEN} letters, digits, `-`, `_` and `.`, begins with a letter or a digit, does not end \
     with a `.` and has no two in a row: export-data"
)]
pub struct SpecIdError {
    text: String,
}

impl SpecId {
    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SpecId {
    type Err = SpecIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        let plain = !text.ends_with('.') && !text.contains("..");
        if begins && plain && text.len() <= MAX_LEN && text.chars().all(allowed) {
            Ok(Self(text.to_owned()))
        } else {
            Err(SpecIdError {
                text: text.chars().take(MAX_LEN + 8).collect(),
            })
        }
    }
}

impl TryFrom<String> for SpecId {
    type Error = SpecIdError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<SpecId> for String {
    fn from(id: SpecId) -> Self {
        id.0
    }
}

impl fmt::Display for SpecId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_id_is_one_plain_directory_name() {
        for good in ["export-data", "a", "PROJ-123", "v1.2_x", &"a".repeat(64)] {
            assert_eq!(good.parse::<SpecId>().unwrap().as_str(), good);
        }
        for bad in [
            "",
            ".",
            "..",
            "a/b",
            "../a",
            "a..b",
            "a.",
            ".a",
            "-a",
            "_a",
            "a b",
            "ä",
            "a\n",
            "a\0",
            "a\\b",
            &"a".repeat(65),
            &"a".repeat(300),
        ] {
            assert!(bad.parse::<SpecId>().is_err(), "{bad:?}");
        }
    }
}
