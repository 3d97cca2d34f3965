//! SHA-256 digests, the only content names that Crucible trusts.
//!
//! A digest is always printed, parsed and serialized as 64 lowercase hexadecimal digits.

use std::fmt;
use std::io;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::Digest as _;

use crate::canonical::{CanonicalError, to_canonical_json};

/// The SHA-256 digest of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

/// The text is not 64 lowercase hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a digest is 64 lowercase hexadecimal digits")]
pub struct DigestError;

impl Digest {
    /// The predecessor of a chain's first event: all zeroes, the digest of no known input.
    pub const ZERO: Self = Self([0; 32]);

    /// The digest of `bytes`.
    #[must_use]
    pub fn compute(bytes: &[u8]) -> Self {
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// The digest of the canonical JSON of `value`.
    ///
    /// # Errors
    ///
    /// Fails when the value has no canonical form.
    pub fn of_canonical<T: Serialize>(value: &T) -> Result<Self, CanonicalError> {
        Ok(Self::compute(&to_canonical_json(value)?))
    }

    /// The first twelve hexadecimal digits, for people.
    #[must_use]
    pub fn short(&self) -> String {
        let mut text = self.to_string();
        text.truncate(12);
        text
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = text.as_bytes();
        if bytes.len() != 64 {
            return Err(DigestError);
        }
        let nibble = |c: u8| match c {
            b'0'..=b'9' => Ok(c - b'0'),
            b'a'..=b'f' => Ok(c - b'a' + 10),
            _ => Err(DigestError),
        };
        let mut out = [0u8; 32];
        for (slot, pair) in out.iter_mut().zip(bytes.chunks_exact(2)) {
            *slot = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Ok(Self(out))
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

/// Digests a stream of bytes as they pass, for input that should not be held in memory.
#[derive(Default)]
pub struct DigestWriter(sha2::Sha256);

impl DigestWriter {
    /// Takes the next bytes of the stream.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the digest of all bytes added so far.
    #[must_use]
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl io::Write for DigestWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_input_has_the_published_digest() {
        let empty = Digest::compute(b"");
        assert_eq!(
            empty.to_string(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        assert_eq!(empty.to_string().parse(), Ok(empty));
    }

    #[test]
    fn refuses_other_spellings() {
        let upper = Digest::compute(b"").to_string().to_uppercase();
        for bad in ["", "abc", &upper, &"g".repeat(64), &"é".repeat(32)] {
            assert_eq!(bad.parse::<Digest>(), Err(DigestError), "{bad:?}");
        }
    }

    #[test]
    fn key_order_does_not_change_digest() {
        let a: serde_json::Value = serde_json::from_str(r#"{"b":1.0,"a":[2]}"#).unwrap();
        let b: serde_json::Value = serde_json::from_str(r#"{ "a":[2], "b":1 }"#).unwrap();
        assert_eq!(
            Digest::of_canonical(&a).unwrap(),
            Digest::of_canonical(&b).unwrap()
        );
    }
}
