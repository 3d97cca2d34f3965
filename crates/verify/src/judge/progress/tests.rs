//! Tests of what counts as progress.

use super::*;
use crate::broken_change::{BrokenChange, BrokenGate, BrokenPolicy};
use crate::gate::GateEnd;
use crate::judge::tests::run_of;
use crate::judge::{judge_run_after, judge_set};
use crate::tally::TestTally;

const BEFORE: &str = "running 2 tests\ntest adds ... ok\ntest zone ... FAILED\n\ntest result: FAILED. 1 passed; 1 failed\n";
const AFTER: &str = "running 3 tests\ntest adds ... ok\ntest twice ... ok\ntest zone ... FAILED\n\ntest result: FAILED. 2 passed; 1 failed\n";

fn check(outcome: BrokenOutcome, added: &[&str], still_red: &[&str]) -> BrokenChange {
    let names = |list: &[&str]| list.iter().map(ToString::to_string).collect();
    BrokenChange {
        policy: BrokenPolicy::Required,
        outcome,
        functions: Vec::new(),
        constants: 0,
        not_broken: Vec::new(),
        gates: vec![BrokenGate {
            id: "unit".into(),
            outcome,
            unaffected: Vec::new(),
            noticed_by_added: names(added),
            still_red: names(still_red),
        }],
    }
}

/// The level of the finding that nothing was fixed.
fn level(
    goal: &str,
    broken: Option<&BrokenChange>,
    tests: TestFilePolicy,
    accepted: &[String],
) -> Option<Level> {
    level_with(goal, broken, tests, accepted, &[])
}

fn level_with(
    goal: &str,
    broken: Option<&BrokenChange>,
    tests: TestFilePolicy,
    accepted: &[String],
    waiting: &[String],
) -> Option<Level> {
    let run = |text: &str| run_of("cargo test", GateEnd::Exited(101), text, "");
    let earlier = run(BEFORE);
    let gates = [GateBefore {
        id: "unit".into(),
        passed: false,
        tally: TestTally::read(&earlier),
        results: earlier.results,
        ..GateBefore::default()
    }];
    let baseline = Baseline {
        gates: &gates,
        goal,
        broken,
        tests,
        accepted,
        waiting,
        ..Baseline::default()
    };
    let now = run(AFTER);
    let judged = judge_run_after(&now, &baseline);
    let set = judge_set(std::iter::once((&now, &judged)), &baseline);
    let mut found = set.findings().iter();
    found
        .find(|finding| finding.code == NOTHING_FIXED)
        .map(|finding| finding.level)
}

const GOAL: &str = "add a function twice(a) to lib/num.js, with a test";

#[test]
fn added_test_that_notices_the_change_is_progress() {
    let noticed = check(BrokenOutcome::Noticed, &["twice"], &[]);
    let of = |goal, broken| level(goal, broken, TestFilePolicy::Fixed, &[]);
    assert_eq!(of(GOAL, Some(&noticed)), Some(Level::Warning));
    assert_eq!(of(GOAL, None), Some(Level::Error), "the check was not made");
}

#[test]
fn trivial_added_test_is_no_progress() {
    for broken in [
        check(BrokenOutcome::Noticed, &[], &[]),
        check(BrokenOutcome::Unnoticed, &["twice"], &[]),
        check(BrokenOutcome::NotChecked, &["twice"], &[]),
        // The failing test runs the changed code.
        check(BrokenOutcome::Noticed, &["twice"], &["zone"]),
    ] {
        let found = level(GOAL, Some(&broken), TestFilePolicy::Fixed, &[]);
        assert_eq!(found, Some(Level::Error), "{broken:?}");
    }
}

#[test]
fn goal_about_the_failing_test_needs_it_green() {
    let noticed = check(BrokenOutcome::Noticed, &["twice"], &[]);
    for goal in [
        "make the tests pass",
        "fix the failing tests",
        "fix the bug",
        "fix regressions",
        "Please repair the build",
        "the zone must be that of the user",
        "add zones to dates",
        "",
    ] {
        for tests in [TestFilePolicy::Fixed, TestFilePolicy::Editable] {
            let found = level(goal, Some(&noticed), tests, &[]);
            assert_eq!(found, Some(Level::Error), "{goal}");
        }
    }
}

#[test]
fn failing_test_of_a_commit_of_tests_waits() {
    let noticed = check(BrokenOutcome::Noticed, &["twice"], &[]);
    for (waiting, expected) in [("zone", Level::Error), ("other", Level::Warning)] {
        let waiting = [waiting.to_owned()];
        let found = level_with(GOAL, Some(&noticed), TestFilePolicy::Fixed, &[], &waiting);
        assert_eq!(found, Some(expected));
    }
}

#[test]
fn repair_goal_is_compared_with_files_of_tests() {
    let red = ["tests/test_price.py::test_total".to_owned()];
    assert!(is_goal_about("the price must be rounded half up", &red));
    assert!(is_goal_about("add total()", &red));
    assert!(!is_goal_about("add a currency to each price", &red));
    assert!(!is_goal_about("support yen, with tests", &red));
}

#[test]
fn accepted_refusal_is_a_warning() {
    let accepted = [NOTHING_FIXED.to_string()];
    assert_eq!(
        level(
            "make the tests pass",
            None,
            TestFilePolicy::Fixed,
            &accepted
        ),
        Some(Level::Warning)
    );
    let other = ["verify-test-broken".to_owned()];
    let verdict = Verdict::new(vec![Finding::error(
        Code::new("verify-test-broken"),
        "unit",
        "h",
    )]);
    assert!(
        !accept(verdict, &other).passes(),
        "only these two can be accepted"
    );
}

#[test]
fn titles_are_the_own_names_of_tests() {
    for (name, expected) in [
        ("tests/test_a.py::Price::test_total", "test_total"),
        ("test_total (tests.test_price.Price)", "test_total"),
        ("tests.test_price.Price.test_total", "test_total"),
        (
            "test/a.test.js > args > parses 1.5 or so",
            "parses 1.5 or so",
        ),
        ("zone", "zone"),
    ] {
        assert_eq!(title(name), expected);
    }
}
