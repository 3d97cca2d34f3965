//! Limits as types, so that a count of files is never taken for a count of bytes.

use serde::{Deserialize, Serialize};

/// How many bytes, from the first byte of a keyword on, decide whether a secret stands there. Who cuts a text and asks
/// for secrets has to read so far beyond the cut.
pub const SECRET_REACH: usize = 1024;

/// A number of bytes that must not be exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ByteLimit(pub u64);

/// A number of files that must not be exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FileLimit(pub u64);
