//! Limits as types, so that a count of files is never taken for a count of bytes.

use serde::{Deserialize, Serialize};

/// A number of bytes that must not be exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ByteLimit(pub u64);

/// A number of files that must not be exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FileLimit(pub u64);
