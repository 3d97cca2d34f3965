//! Limits as types, so that a number of files is never used as a number of bytes.

use serde::{Deserialize, Serialize};

/// Number of bytes, from the first byte of a keyword, that decide whether it belongs to a secret. Code that
/// truncates text and scans it must scan this many bytes past the cut.
pub const SECRET_REACH: usize = 1024;

/// A number of bytes that must not be exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ByteLimit(pub u64);

/// A number of files that must not be exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FileLimit(pub u64);
