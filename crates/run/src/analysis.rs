//! `artifacts/analysis.json`: the repository's contents and the gates' results before any change.
//!
//! The gates run once on a copy of the base, and once with broken sources ([`crate::canary`]). Their output
//! is part of the request for a change. A reader sees which failures are old and which gates count.

use std::collections::BTreeMap;

use crucible_model::RepoPath;
use crucible_repo::Oid;
use crucible_verify::{FailureEvidence, GateBefore, GateSpec, TestResults, TestStatus, TestTally};
use serde::{Deserialize, Serialize};

use crate::canary::CanaryReport;
use crate::document::versions;
use crate::gate_workspace::PythonPaths;

/// How many failing tests are named on the terminal.
const MAX_NAMED: usize = 10;

/// One gate's end on one tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GateResult {
    /// Which gate.
    pub id: String,
    /// Whether it passed.
    pub passed: bool,
    /// How it ended, in words without durations.
    pub end: String,
    /// The significant lines of its output, without times, absolute paths and process ids.
    pub excerpt: String,
    /// The number of tests that ran, as their runners report; absent in documents of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tally: Option<TestTally>,
    /// Its results per test; absent if it reports none, and in documents of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<TestResults>,
    /// The location of its failures: tests, stack frames and names; absent if it passed, and in documents of
    /// earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureEvidence>,
    /// Whether every failing test failed for lack of something in the sandbox, such as a network.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_environment: bool,
    /// Why it could not run or does not compile, if that is unrelated to the goal. It then does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_aside: Option<String>,
}

/// The document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Analysis {
    /// Which version of the document this is.
    pub schema_version: AnalysisVersion,
    /// The commit that was looked at.
    pub base_commit: Oid,
    /// The number of tracked files.
    pub tracked_files: u64,
    /// Their bytes.
    pub tracked_bytes: u64,
    /// What was not copied for the gates, with the reason.
    pub left_out: Vec<String>,
    /// The gates of the repository.
    pub gates: Vec<GateSpec>,
    /// The files of the commit that a gate's command names. A patch may not change them unless the operator names them.
    pub gate_files: Vec<RepoPath>,
    /// The same per gate, if there are several; absent in documents of earlier versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gate_files_of: BTreeMap<String, Vec<RepoPath>>,
    /// Whether the commit has a behaviour catalogue (`docs/behaviors/INDEX.md`).
    pub behaviors: BehaviorCatalogue,
    /// How they end before any change.
    pub baseline: Vec<GateResult>,
    /// Their results on broken sources; absent in documents of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<CanaryReport>,
    /// Gates that tested an installed copy of a Python package and now run with `PYTHONPATH`, with its
    /// directories from the top. Absent if no gate did, and in documents of earlier versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub python_paths: PythonPaths,
}

versions! {
    /// The schema id of `artifacts/analysis.json`.
    pub Analysis, AnalysisVersion = "crucible-analysis-v1"
}

impl Analysis {
    /// Where the failing gates failed, of all of them together.
    pub(crate) fn failures(&self) -> FailureEvidence {
        let mut all = FailureEvidence::default();
        self.baseline
            .iter()
            .filter_map(|gate| gate.failure.as_ref())
            .for_each(|failure| all.merge(failure));
        all
    }

    /// What a change is compared with.
    pub(crate) fn before(&self) -> Vec<GateBefore> {
        let with_canary = |before: GateBefore| GateBefore {
            canary: self
                .canary
                .as_ref()
                .map(|canary| canary.outcome(&before.id))
                .unwrap_or_default(),
            ..before
        };
        self.baseline
            .iter()
            .filter_map(GateResult::before)
            .map(with_canary)
            .collect()
    }
}

impl GateResult {
    /// Returns the baseline for later runs of this gate; `None` without a tally.
    pub(crate) fn before(&self) -> Option<GateBefore> {
        Some(GateBefore {
            id: self.id.clone(),
            passed: self.passed,
            tally: self.tally.clone()?,
            results: self.results.clone(),
            environment: self.failure.clone().filter(|_| self.by_environment),
            set_aside: self.set_aside.clone(),
            ..GateBefore::default()
        })
    }
}

impl GateResult {
    fn failed_tests(&self) -> impl Iterator<Item = &str> {
        self.results
            .iter()
            .flat_map(|results| results.with_status(TestStatus::Failed))
    }

    /// Whether a test of it failed, as far as it names them.
    pub(crate) fn has_failed_tests(&self) -> bool {
        self.failed_tests().next().is_some()
    }

    /// Names at most ten failed tests, or the exit status if no test is named.
    pub(crate) fn failing(&self) -> String {
        let failed: Vec<&str> = self.failed_tests().collect();
        if failed.is_empty() {
            return self.end.clone();
        }
        let text = failed
            .iter()
            .take(MAX_NAMED)
            .copied()
            .collect::<Vec<_>>()
            .join(", ");
        let more = failed.len().saturating_sub(MAX_NAMED);
        if more == 0 {
            text
        } else {
            format!("{text} and {more} more")
        }
    }
}

/// Whether a repository has a behaviour catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BehaviorCatalogue {
    /// It has none.
    Absent,
    /// A catalogue exists. The variant's name is from the first version, which did not check catalogues: the
    /// verify report has the result.
    Unchecked,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_analysis_version_counts_every_gate() {
        let text = serde_json::json!({
            "schema_version": "crucible-analysis-v1", "base_commit": "7".repeat(40), "tracked_files": 1, "tracked_bytes": 1,
            "left_out": [], "gates": [], "gate_files": [], "behaviors": "absent",
            "baseline": [{ "id": "tests", "passed": true, "end": "passed", "excerpt": "",
                           "tally": { "basis": "whole", "runners": {} } }],
        });
        let analysis: Analysis = serde_json::from_value(text.clone()).unwrap();
        assert_eq!(serde_json::to_value(&analysis).unwrap(), text);
        let before = analysis.before();
        assert!(before[0].canary.counts() && before[0].results.is_none());
    }

    #[test]
    fn failing_tests_are_named_up_to_a_limit() {
        let result = |failed: usize| {
            let mut results = TestResults::default();
            (0..failed).for_each(|number| results.add(format!("t{number:02}"), TestStatus::Failed));
            results.add("green", TestStatus::Passed);
            let end = "exited with 1".to_owned();
            GateResult {
                id: "tests".into(),
                passed: false,
                end,
                excerpt: String::new(),
                tally: None,
                results: Some(results),
                failure: None,
                by_environment: false,
                set_aside: None,
            }
        };
        assert_eq!(result(0).failing(), "exited with 1");
        assert_eq!(result(2).failing(), "t00, t01");
        assert!(result(12).failing().ends_with("t09 and 2 more"));
    }
}
