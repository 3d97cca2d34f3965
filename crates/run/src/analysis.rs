//! `artifacts/analysis.json`: what the repository holds, and how its gates fare before any change.
//!
//! The gates run once on a copy of the base. A change is asked for with what they print, and a reader later
//! sees which failures are old.

use crucible_repo::Oid;
use crucible_verify::GateSpec;
use serde::{Deserialize, Serialize};

/// One gate's end on one tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateResult {
    /// Which gate.
    pub id: String,
    /// Whether it passed.
    pub passed: bool,
    /// How it ended, in words without durations.
    pub end: String,
    /// The telling lines of what it printed, without instants, absolute paths and process ids.
    pub excerpt: String,
}

/// The document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Analysis {
    /// `crucible-analysis-v1`.
    pub schema_version: String,
    /// The commit that was looked at.
    pub base_commit: Oid,
    /// The number of tracked files.
    pub tracked_files: u64,
    /// Their bytes.
    pub tracked_bytes: u64,
    /// What is tracked and was left out, with the reason.
    pub left_out: Vec<String>,
    /// The gates of the repository.
    pub gates: Vec<GateSpec>,
    /// How they end before any change.
    pub baseline: Vec<GateResult>,
}
