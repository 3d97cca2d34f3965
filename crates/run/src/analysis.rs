//! `artifacts/analysis.json`: what the repository holds, and how its gates fare before any change.
//!
//! The gates run once on a copy of the base. A change is asked for with what they print, and a reader later
//! sees which failures are old.

use crucible_model::RepoPath;
use crucible_repo::Oid;
use crucible_verify::{FailureEvidence, GateBefore, GateSpec, TestTally};
use serde::{Deserialize, Serialize};

use crate::document::versions;

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
    /// How many tests it ran, by what their runners told; absent in documents of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tally: Option<TestTally>,
    /// Where it failed: failing tests, stack frames and names; absent where it passed and in documents of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureEvidence>,
}

/// The document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Analysis {
    /// Which version of the document this is.
    pub schema_version: AnalysisVersion,
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
    /// The files of the commit that a gate's command names. A patch may not change them unless the operator names them.
    pub gate_files: Vec<RepoPath>,
    /// Whether the commit has a behaviour catalogue (`docs/behaviors/INDEX.md`).
    pub behaviors: BehaviorCatalogue,
    /// How they end before any change.
    pub baseline: Vec<GateResult>,
}

versions! {
    /// The schema id of `artifacts/analysis.json`.
    pub Analysis, AnalysisVersion = "crucible-analysis-v1"
}

impl Analysis {
    /// Where the failing gates failed, of all of them together.
    pub(crate) fn failures(&self) -> FailureEvidence {
        let mut all = FailureEvidence::default();
        self.baseline.iter().filter_map(|gate| gate.failure.as_ref()).for_each(|failure| all.merge(failure));
        all
    }

    /// What a change is compared with.
    pub(crate) fn before(&self) -> Vec<GateBefore> {
        self.baseline.iter().filter_map(GateResult::before).collect()
    }
}

impl GateResult {
    /// As what a later run of the same gate is compared with; nothing where no tally was read.
    pub(crate) fn before(&self) -> Option<GateBefore> {
        Some(GateBefore { id: self.id.clone(), passed: self.passed, tally: self.tally.clone()? })
    }
}

/// Whether a repository has a behaviour catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BehaviorCatalogue {
    /// It has none.
    Absent,
    /// It has one. A document keeps the name that the first version gave it, which did not check catalogues: the verify
    /// report tells how it fared.
    Unchecked,
}
