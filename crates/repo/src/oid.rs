//! The name git gives to an object: 40 (SHA-1) or 64 (SHA-256) lowercase hexadecimal digits.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The name of a commit, a tree or a blob in a git repository.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Oid(String);

/// The text is not an object name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a git object name: 40 or 64 lowercase hexadecimal digits")]
pub struct OidError;

impl AsRef<str> for Oid {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Oid {
    /// The digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name in binary form, as in git's files.
    pub(crate) fn raw(&self) -> Vec<u8> {
        let value = |digit: &u8| {
            if digit.is_ascii_digit() {
                digit - b'0'
            } else {
                digit - b'a' + 10
            }
        };
        self.0
            .as_bytes()
            .chunks(2)
            .map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | value(digit)))
            .collect()
    }

    /// Reads what git printed.
    pub(crate) fn from_ascii(bytes: &[u8]) -> Option<Self> {
        std::str::from_utf8(bytes).ok()?.parse().ok()
    }

    /// Returns whether git uses it for "no object".
    pub(crate) fn is_null(&self) -> bool {
        self.0.bytes().all(|digit| digit == b'0')
    }
}

impl FromStr for Oid {
    type Err = OidError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if matches!(text.len(), 40 | 64) && text.bytes().all(is_digit) {
            Ok(Self(text.to_owned()))
        } else {
            Err(OidError)
        }
    }
}

impl TryFrom<String> for Oid {
    type Error = OidError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Oid> for String {
    fn from(oid: Oid) -> Self {
        oid.0
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_full_lowercase_names_are_names() {
        assert!("a".repeat(40).parse::<Oid>().is_ok());
        assert!("0".repeat(64).parse::<Oid>().is_ok_and(|oid| oid.is_null()));
        for bad in [
            "",
            "HEAD",
            "-x",
            &"a".repeat(39),
            &"A".repeat(40),
            &"g".repeat(40),
            &"a".repeat(41),
        ] {
            assert_eq!(bad.parse::<Oid>(), Err(OidError), "{bad:?}");
        }
    }
}
