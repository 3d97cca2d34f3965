//! Decides whether a gate tests the changed code, from a run on deliberately broken sources. Pure.
//!
//! A gate that tests an installed copy of the package, or nothing, has the same result on broken sources. It
//! proves nothing about a change. Invariant: only a difference explained by the broken sources counts, never
//! one in the output alone.

use serde::{Deserialize, Serialize};

use crate::gate::{GateEnd, GateRun, NotStarted};
use crate::results::{STEP, TestResults, TestStatus, is_step};
use crate::tally::{TallyBasis, TestTally};

/// What a gate's run on broken sources showed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CanaryOutcome {
    /// The gate ended differently: it tests the sources.
    Noticed,
    /// The gate had the same result: it does not test the sources, so its verdict on a change does not count.
    Unnoticed,
    /// A gate that fails before any change, and passes no test or has steps whose tests are not reported, cannot show it; it
    /// counts.
    #[default]
    Unknown,
    /// The gate was not run on broken sources, because the user switched that off; it counts.
    Off,
}

impl CanaryOutcome {
    /// Returns whether the gate's verdict on a change counts.
    #[must_use]
    pub fn counts(&self) -> bool {
        *self != Self::Unnoticed
    }
}

/// Returns whether a run on broken sources can differ from this one: it passed, or a test of it did.
#[must_use]
pub fn can_canary_differ(before: &GateRun) -> bool {
    before.end == GateEnd::Exited(0) || passed(before).next().is_some() || tests_passed(before) > 0
}

/// Compares a gate's run on broken sources with the one on the sources as they are.
#[must_use]
pub fn judge_canary(before: &GateRun, broken: &GateRun) -> CanaryOutcome {
    if !can_canary_differ(before) {
        return CanaryOutcome::Unknown;
    }
    let has_ended_otherwise = match (&before.end, &broken.end) {
        // A build does not compile broken sources.
        (
            _,
            GateEnd::NotStarted {
                why: NotStarted::Setup,
                ..
            },
        ) => true,
        // Nothing ran, so nothing was noticed.
        (_, GateEnd::NotStarted { .. }) => return CanaryOutcome::Unnoticed,
        (GateEnd::Exited(0), end) => *end != GateEnd::Exited(0),
        (GateEnd::TimedOut { .. }, _) => false,
        (_, GateEnd::TimedOut { .. }) => true,
        _ => false,
    };
    let now = broken.results.as_ref();
    let is_green = |name: &str| {
        let status = |results: &TestResults| results.tests.get(name).copied();
        now.and_then(status) == Some(TestStatus::Passed)
    };
    let has_lost_tests =
        passed(before).any(|name| !is_green(name)) || tests_passed(broken) < tests_passed(before);
    // A failing test whose file no longer loads is reported under another name.
    let is_gone =
        |name: &str| now.is_some_and(|now| now.is_whole() && !now.tests.contains_key(name));
    let has_lost_failures = with_status(before, TestStatus::Failed).any(is_gone);
    if has_ended_otherwise || has_lost_tests || has_lost_failures {
        CanaryOutcome::Noticed
    } else if with_status(before, TestStatus::Failed).any(is_step)
        || with_status(before, TestStatus::Failed).next().is_some()
            && passed(before).all(|name| name.starts_with(STEP))
    {
        // What the tests of a failed step cover is not reported, and tests that all fail show nothing.
        CanaryOutcome::Unknown
    } else {
        CanaryOutcome::Unnoticed
    }
}

/// Returns the tests that passed, if the report is complete.
fn passed(before: &GateRun) -> impl Iterator<Item = &str> {
    with_status(before, TestStatus::Passed)
}

/// Returns the tests with this status, if the report is complete.
fn with_status(run: &GateRun, status: TestStatus) -> impl Iterator<Item = &str> {
    let whole = run.results.iter().filter(|results| results.is_whole());
    whole.flat_map(move |results| results.with_status(status))
}

/// Returns the number of tests that passed; 0 if the output was cut.
fn tests_passed(run: &GateRun) -> u64 {
    let tally = TestTally::read(run);
    let counts = tally
        .runners
        .values()
        .filter(|_| tally.basis == TallyBasis::Whole);
    counts.fold(0, |sum, counts| sum.saturating_add(counts.passed))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::judge::tests::run_of;

    const GREEN: &str = "test a ... ok\ntest b ... ok\ntest result: ok. 2 passed; 0 failed\n";
    const RED: &str = "test a ... ok\ntest b ... FAILED\ntest result: FAILED. 1 passed; 1 failed\n";
    const ALL_RED: &str =
        "test a ... FAILED\ntest b ... FAILED\ntest result: FAILED. 0 passed; 2 failed\n";

    fn run(code: i32, output: &str) -> GateRun {
        run_of("cargo test", GateEnd::Exited(code), output, "")
    }

    /// One green test, and this red one.
    fn libtest_output(red: &str) -> String {
        format!(
            "running 2 tests\ntest a ... ok\n{red} ... FAILED\n\ntest result: FAILED. 1 passed; 1 failed\n"
        )
    }

    fn timed_out() -> GateRun {
        run_of(
            "cargo test",
            GateEnd::TimedOut {
                after: Duration::from_secs(1),
            },
            "",
            "",
        )
    }

    #[test]
    fn failed_step_without_tests_shows_nothing() {
        let run = |linter: TestStatus, tests: TestStatus| {
            let mut results = TestResults::default();
            results.add("script step: eslint .", linter);
            results.add("script step: node check.js", tests);
            GateRun {
                results: Some(results),
                ..run_of("npm test", GateEnd::Exited(1), "", "")
            }
        };
        let (passed, failed) = (TestStatus::Passed, TestStatus::Failed);
        let base = run(passed, failed);
        assert_eq!(
            judge_canary(&base, &run(passed, failed)),
            CanaryOutcome::Unknown
        );
        assert_eq!(
            judge_canary(&base, &run(failed, failed)),
            CanaryOutcome::Noticed
        );
        let green = run(passed, passed);
        assert_eq!(
            judge_canary(&green, &run(passed, passed)),
            CanaryOutcome::Unnoticed
        );
        assert_eq!(
            judge_canary(&green, &run(passed, failed)),
            CanaryOutcome::Noticed
        );
    }

    #[test]
    fn gate_that_ends_differently_has_noticed() {
        for (before, broken) in [
            (run(0, ""), run(1, "")),
            (run(0, GREEN), run(101, "error: could not compile\n")),
            (
                run(0, GREEN),
                run(0, "test result: ok. 0 passed; 0 failed\n"),
            ),
            (run(0, GREEN), run(101, RED)),
            (run(101, RED), run(101, ALL_RED)),
            (run(101, RED), run(101, "error: could not compile\n")),
            (
                run(101, &libtest_output("test b")),
                run(101, &libtest_output("test file-of-b")),
            ),
            (run(0, ""), timed_out()),
            (run(101, RED), timed_out()),
            (
                run(1, "2 failed, 3 passed in 0.10s\n"),
                run(2, "2 errors in 0.10s\n"),
            ),
        ] {
            assert_eq!(
                judge_canary(&before, &broken),
                CanaryOutcome::Noticed,
                "{before:?}"
            );
        }
    }

    #[test]
    fn build_that_fails_on_broken_sources_has_noticed() {
        let failed = GateEnd::NotStarted {
            why: NotStarted::Setup,
            message: String::new(),
        };
        let broken = run_of("x", failed, "", "");
        assert_eq!(judge_canary(&run(0, ""), &broken), CanaryOutcome::Noticed);
    }

    #[test]
    fn gate_that_ends_as_before_has_not_noticed() {
        let absent = GateEnd::NotStarted {
            why: NotStarted::Sandbox,
            message: String::new(),
        };
        for (before, broken) in [
            (run(0, ""), run(0, "")),
            (run(0, ""), run(0, "other words")),
            (run(0, GREEN), run(0, GREEN)),
            (run(101, RED), run(101, RED)),
            (run(0, ""), run_of("x", absent, "", "")),
        ] {
            assert_eq!(
                judge_canary(&before, &broken),
                CanaryOutcome::Unnoticed,
                "{before:?}"
            );
            assert!(!judge_canary(&before, &broken).counts());
        }
    }

    #[test]
    fn gate_failing_without_passing_test_is_unknown() {
        for before in [run(1, ""), run(101, ALL_RED), timed_out()] {
            assert!(!can_canary_differ(&before));
            let outcome = judge_canary(&before, &run(1, ""));
            assert!(
                outcome == CanaryOutcome::Unknown && outcome.counts(),
                "{before:?}"
            );
        }
    }
}
