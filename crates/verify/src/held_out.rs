//! Decides whether a change passes tests that no proposer has seen. Pure.
//!
//! The gates run twice before a landing: on the change, and on the change with the held-out files. A test that fails only in the
//! second run refuses the landing. A report has numbers and digests, no name of a test and nothing that one printed.

use std::collections::BTreeMap;

use crucible_model::{Code, Digest, Finding, Verdict};
use serde::{Deserialize, Serialize};

use crate::gate::{GateEnd, GateRun};
use crate::results::TestStatus;

/// What held-out tests showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldOutReport {
    /// The schema of this document.
    pub schema_version: HeldOutVersion,
    /// The digests of the files.
    pub files: Vec<Digest>,
    /// Tests that passed and that no gate has without these files.
    pub passed: u64,
    /// Tests and commands that fail with these files and not without them.
    pub failed: u64,
    /// Whether the gates ran them.
    pub outcome: HeldOutOutcome,
}

/// The schema id of a report on held-out tests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum HeldOutVersion {
    /// The only version.
    #[default]
    #[serde(rename = "crucible-held-out-v1")]
    V1,
}

/// Whether the gates ran held-out tests, and how they ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeldOutOutcome {
    /// All passed.
    Passed,
    /// Some failed.
    Failed,
    /// No gate reports a test of them.
    NotRun,
}

/// Whether held-out files take the place of files of the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldOutPlacement {
    /// All are new, so their tests are new, too.
    New,
    /// Some replace a file, whose tests have the same names.
    Replacing,
}

/// Compares the gates on the change with the same gates with the held-out files.
#[must_use]
pub fn compare_held_out(
    without: &[GateRun],
    with: &[GateRun],
    files: Vec<Digest>,
    places: HeldOutPlacement,
) -> HeldOutReport {
    let (mut passed, mut failed) = (0, 0);
    let mut reports_no_tests = false;
    for run in with {
        let before = without.iter().find(|before| before.id == run.id);
        let is_green = |run: &GateRun| run.end == GateEnd::Exited(0);
        let none = BTreeMap::new();
        let tests = |run: &'_ GateRun| run.results.as_ref().map(|results| results.tests.clone());
        let (now, known) = (tests(run), before.and_then(tests));
        reports_no_tests |= now.is_none();
        let known = known.as_ref().unwrap_or(&none);
        let mut newly_failed = 0;
        for (name, status) in now.iter().flatten() {
            match (status, known.get(name)) {
                (TestStatus::Failed, Some(TestStatus::Failed)) => {}
                (TestStatus::Failed, _) => newly_failed += 1,
                (TestStatus::Passed, None) => passed += 1,
                _ => {}
            }
        }
        // What its tests do not show: a file that cannot be loaded, or a gate without tests.
        let is_lost = before.is_some_and(is_green) && !is_green(run);
        failed += if newly_failed == 0 {
            u64::from(is_lost)
        } else {
            newly_failed
        };
    }
    let outcome = if failed > 0 {
        HeldOutOutcome::Failed
    } else if with.is_empty() || passed == 0 && !reports_no_tests && places == HeldOutPlacement::New
    {
        HeldOutOutcome::NotRun
    } else {
        HeldOutOutcome::Passed
    };
    HeldOutReport {
        schema_version: HeldOutVersion::V1,
        files,
        passed,
        failed,
        outcome,
    }
}

/// Returns the findings on held-out tests. They tell how many fail, and nothing else.
#[must_use]
pub fn judge_held_out(report: &HeldOutReport) -> Verdict {
    let subject = "held-out tests";
    Verdict::new(match report.outcome {
        HeldOutOutcome::Passed => Vec::new(),
        HeldOutOutcome::Failed => vec![Finding::error(
            Code::new("verify-held-out-failed"),
            subject,
            format!("{} of them fail on the change", report.failed),
        )],
        HeldOutOutcome::NotRun => vec![Finding::error(
            Code::new("verify-held-out-not-run"),
            subject,
            "no gate runs a test of these files; name a directory whose files have the paths where the gates look for tests",
        )],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::tests::run_of;

    const ONE: &str = "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed\n";
    const TWO: &str = "running 2 tests\ntest a ... ok\ntest secret ... ok\n\ntest result: ok. 2 passed; 0 failed\n";
    const RED: &str = "running 2 tests\ntest a ... ok\ntest secret ... FAILED\n\ntest result: FAILED. 1 passed; 1 failed\n";

    fn run(output: &str) -> GateRun {
        let code = if output.contains("FAILED") || output == "red" {
            101
        } else {
            0
        };
        run_of("cargo test", GateEnd::Exited(code), output, "")
    }

    fn compared(without: &str, with: &str, places: HeldOutPlacement) -> HeldOutReport {
        compare_held_out(&[run(without)], &[run(with)], Vec::new(), places)
    }

    #[test]
    fn failed_held_out_test_reveals_only_its_number() {
        let report = compared(ONE, RED, HeldOutPlacement::New);
        assert_eq!((report.failed, report.outcome), (1, HeldOutOutcome::Failed));
        let verdict = judge_held_out(&report);
        assert!(!verdict.passes());
        let printed = format!("{verdict:?}{}", serde_json::to_string(&report).unwrap());
        assert!(!printed.contains("secret"), "{printed}");
    }

    #[test]
    fn held_out_tests_must_have_run() {
        use HeldOutPlacement::{New, Replacing};
        for (without, with, places, outcome) in [
            (ONE, TWO, New, HeldOutOutcome::Passed),
            (ONE, ONE, New, HeldOutOutcome::NotRun),
            (ONE, ONE, Replacing, HeldOutOutcome::Passed),
            (RED, RED, Replacing, HeldOutOutcome::Passed),
            ("fine", "fine", New, HeldOutOutcome::Passed),
            ("fine", "red", New, HeldOutOutcome::Failed),
            (ONE, "red", New, HeldOutOutcome::Failed),
        ] {
            let report = compared(without, with, places);
            assert_eq!(report.outcome, outcome, "{without} {with}");
        }
        let none = compare_held_out(&[], &[], Vec::new(), New);
        assert_eq!(none.outcome, HeldOutOutcome::NotRun);
    }
}
