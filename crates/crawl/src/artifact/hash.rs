//! The short hash that identifies artifacts of a crawl: the first twelve hexadecimal digits of a SHA-256.

use std::fmt;
use std::str::FromStr;

use crucible_model::Digest;
use serde::{Deserialize, Serialize};

/// Twelve lowercase hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ShortHash(String);

/// The text is not a short hash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a short hash is 12 lowercase hexadecimal digits")]
pub struct ShortHashError;

impl ShortHash {
    /// Computes the short hash of bytes.
    #[must_use]
    pub fn compute(bytes: &[u8]) -> Self {
        Self(Digest::compute(bytes).short())
    }

    /// The digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ShortHash {
    type Err = ShortHashError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() == 12 && text.bytes().all(is_digit) {
            Ok(Self(text.to_owned()))
        } else {
            Err(ShortHashError)
        }
    }
}

impl TryFrom<String> for ShortHash {
    type Error = ShortHashError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ShortHash> for String {
    fn from(hash: ShortHash) -> Self {
        hash.0
    }
}

impl fmt::Display for ShortHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
