//! Canonical JSON (RFC 8785): one byte sequence per value.
//!
//! Everything that is hashed, signed or compared is serialized here. Key order, white space and number
//! spelling therefore never make equal values differ.

use serde::Serialize;

/// The value has no canonical form, for example a map with keys that are not strings or a number
/// that is not finite.
#[derive(Debug, thiserror::Error)]
#[error("cannot serialize the value as canonical JSON: {0}")]
pub struct CanonicalError(#[from] serde_json::Error);

/// Writes `value` as RFC 8785 canonical JSON, without a final newline.
///
/// # Errors
///
/// Fails when the value cannot be expressed in JSON at all.
pub fn to_canonical_json<T: Serialize>(value: &T) -> Result<Vec<u8>, CanonicalError> {
    Ok(serde_json_canonicalizer::to_vec(value)?)
}

/// Writes `value` as RFC 8785 canonical JSON and a final newline.
///
/// # Errors
///
/// Fails as [`to_canonical_json`] does.
pub fn to_canonical_line<T: Serialize>(value: &T) -> Result<Vec<u8>, CanonicalError> {
    let mut line = to_canonical_json(value)?;
    line.push(b'\n');
    Ok(line)
}
