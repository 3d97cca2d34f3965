//! The results of tests that were named before the run. Pure.
//!
//! The lists of [`GateTests`](crate::GateTests) hold what changed. A test that passed before and after is in none of them,
//! so a report has one row for each named test that a gate reported.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::gate::{GateId, GateOutcome, GateRun};
use crate::judge::Baseline;
use crate::results::{TestResults, TestStatus};
use crate::tally::{TestRunner, TestTally};

/// The result of a test that was named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedTestResult {
    /// The name that its runner reports.
    pub name: String,
    /// The gate that ran it.
    pub gate: GateId,
    /// How it ended; the worst of several runs on the same files.
    pub status: TestStatus,
    /// How it ended before the change; absent if the gate did not report it then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<TestStatus>,
}

/// Returns the results of the named tests, by gate and name. Only gates whose verdict counts and whose reports are complete
/// are read. A test without a row did not run.
pub(crate) fn named_results(
    named: &BTreeSet<String>,
    outcomes: &[GateOutcome],
    baseline: &Baseline<'_>,
) -> Vec<NamedTestResult> {
    let mut rows = Vec::new();
    for outcome in outcomes {
        let GateOutcome::Ran(run) = outcome else {
            continue;
        };
        if !baseline.counts(run) {
            continue;
        }
        let before = baseline
            .before(run)
            .and_then(|before| before.results.as_ref());
        let again = baseline
            .reruns
            .iter()
            .filter(|second_gate_run| second_gate_run.id == run.id);
        let runs: Vec<&GateRun> = std::iter::once(run.as_ref()).chain(again).collect();
        for name in named {
            let statuses: Option<Vec<TestStatus>> = runs
                .iter()
                .map(|run| {
                    let results = run.results.as_ref().filter(|results| results.is_whole())?;
                    if has_more_than_counted(run, results) {
                        return None;
                    }
                    results.tests.get(name).copied()
                })
                .collect();
            if let Some(status) = statuses.and_then(|all| all.into_iter().max()) {
                rows.push(NamedTestResult {
                    name: name.clone(),
                    gate: run.id.clone(),
                    status,
                    before: before.and_then(|results| results.tests.get(name).copied()),
                });
            }
        }
    }
    rows
}

/// Returns whether the results have more tests than their runner counted: tested code printed the lines of the others. Only
/// for runners that print a line and count it for each test in the same way.
fn has_more_than_counted(run: &GateRun, results: &TestResults) -> bool {
    let counted = [
        TestRunner::Libtest,
        TestRunner::Unittest,
        TestRunner::Pytest,
    ];
    let tally = TestTally::read(run);
    let is_only_of = tally.runners.keys().all(|runner| counted.contains(runner));
    let counts = tally.runners.values();
    let count: u64 = counts
        .map(|counts| counts.ran() + counts.skipped + counts.unfinished)
        .sum();
    is_only_of && count > 0 && results.tests.len() as u64 > count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canary::CanaryOutcome;
    use crate::gate::GateEnd;
    use crate::judge::GateBefore;
    use crate::judge::tests::run_of;

    /// Prints these lines, and that as many tests ran.
    fn unittest(lines: &str, code: i32) -> GateRun {
        let count = lines.lines().count();
        counted(lines, count, code)
    }

    fn counted(lines: &str, count: usize, code: i32) -> GateRun {
        let rule = "-".repeat(70);
        let end = if code == 0 {
            "OK"
        } else {
            "FAILED (failures=1)"
        };
        let output = format!("{lines}\n\n{rule}\nRan {count} tests in 0.1s\n\n{end}\n");
        run_of("python3 -m unittest -v", GateEnd::Exited(code), "", &output)
    }

    fn rows(run: &GateRun, baseline: &Baseline<'_>) -> Vec<(String, TestStatus)> {
        let named = ["test_a.A.test_b", "test_a.A.test_x"]
            .map(str::to_owned)
            .into();
        let outcomes = [GateOutcome::Ran(Box::new(run.clone()))];
        let rows = named_results(&named, &outcomes, baseline);
        rows.into_iter().map(|row| (row.name, row.status)).collect()
    }

    #[test]
    fn named_test_that_ran_has_a_row() {
        let run = unittest(
            "test_b (test_a.A.test_b) ... ok\ntest_c (test_a.A.test_c) ... ok",
            0,
        );
        let expected = [("test_a.A.test_b".to_owned(), TestStatus::Passed)];
        assert_eq!(rows(&run, &Baseline::default()), expected);
    }

    #[test]
    fn worse_result_of_two_runs_counts() {
        let passed = unittest("test_b (test_a.A.test_b) ... ok", 0);
        let failed = unittest("test_b (test_a.A.test_b) ... FAIL", 1);
        for (first, second) in [(&passed, &failed), (&failed, &passed)] {
            let baseline = Baseline {
                reruns: std::slice::from_ref(second),
                ..Baseline::default()
            };
            assert_eq!(rows(first, &baseline)[0].1, TestStatus::Failed);
        }
        // A second run that lacks the test shows nothing.
        let other = unittest("test_c (test_a.A.test_c) ... ok", 0);
        let baseline = Baseline {
            reruns: std::slice::from_ref(&other),
            ..Baseline::default()
        };
        assert_eq!(rows(&passed, &baseline), []);
    }

    #[test]
    fn gate_that_does_not_count_has_no_row() {
        let run = unittest("test_b (test_a.A.test_b) ... ok", 0);
        let before = GateBefore {
            id: run.id.to_string(),
            canary: CanaryOutcome::Unnoticed,
            ..GateBefore::default()
        };
        let baseline = Baseline {
            gates: std::slice::from_ref(&before),
            ..Baseline::default()
        };
        assert_eq!(rows(&run, &baseline), []);
        // A report that breaks off is not complete.
        let cut = unittest("test_b (test_a.A.test_b) ... ok", 134);
        assert_eq!(rows(&cut, &Baseline::default()), []);
    }

    #[test]
    fn line_that_runner_did_not_count_is_no_test() {
        let lines = "test_b (test_a.A.test_b) ... ok\ntest_x (test_a.A.test_x) ... ok";
        assert_eq!(rows(&counted(lines, 1, 0), &Baseline::default()), []);
        assert_eq!(rows(&counted(lines, 2, 0), &Baseline::default()).len(), 2);
    }
}
