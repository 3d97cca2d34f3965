//! Decides whether a change makes progress where tests failed before. Pure.
//!
//! A test that turned green is progress. A repository can also have failing tests that no change for the goal turns green.
//! There, tests that the change adds show progress, if they fail once the changed code is broken on purpose, and if no
//! failing test concerns the goal or the changed code. Anything else needs a person who accepts the refusal
//! ([`ACCEPTABLE`]).
//!
//! What always holds: a failing test about which the output of the broken code says nothing counts as one that the goal is
//! about.

use crucible_model::{Code, Finding, Level, Verdict};

use super::environment::{self, is_alike, words};
use super::{Baseline, GateBefore, GateTests, JudgedRun, TestFilePolicy};
use crate::broken_change::BrokenOutcome;
use crate::canary::CanaryOutcome;
use crate::gate::GateRun;
use crate::results::{TestResults, TestStatus};

const NOTHING_FIXED: Code = Code::new("verify-nothing-fixed");

/// The codes of refusals that a person can accept for a run: nothing shows that the goal is reached, but nothing got worse.
pub const ACCEPTABLE: [&str; 2] = ["verify-nothing-fixed", "verify-change-not-noticed"];

/// Words of goals that name no part of a program.
const GENERAL: [&str; 34] = [
    "add",
    "adds",
    "also",
    "bug",
    "bugs",
    "build",
    "change",
    "checks",
    "class",
    "code",
    "correct",
    "error",
    "errors",
    "file",
    "function",
    "green",
    "issue",
    "lib",
    "make",
    "method",
    "new",
    "one",
    "please",
    "problem",
    "red",
    "regression",
    "regressions",
    "repair",
    "return",
    "returns",
    "src",
    "suite",
    "use",
    "value",
];
/// Words of goals that want the tests themselves green.
const RESULTS: [&str; 12] = [
    "broken", "fail", "failed", "failing", "fails", "failure", "failures", "green", "pass",
    "passes", "passing", "red",
];
const CHECKS: [&str; 8] = [
    "build",
    "checks",
    "ci",
    "everything",
    "spec",
    "suite",
    "test",
    "tests",
];
/// Words of goals about behaviour that is wrong now.
const REPAIRS: [&str; 16] = [
    "broken",
    "bug",
    "correct",
    "crash",
    "crashes",
    "error",
    "fix",
    "fixes",
    "handle",
    "incorrect",
    "must",
    "regression",
    "repair",
    "should",
    "wrong",
    "wrongly",
];

/// Returns the finding on a change after which no test that failed before passes; `None` if one passes or none failed.
pub(super) fn judge_progress<'r>(
    runs: impl Iterator<Item = (&'r GateRun, &'r JudgedRun)> + Clone,
    baseline: &Baseline<'_>,
) -> Option<Finding> {
    let before = |run: &GateRun| baseline.before(run);
    let has_failed = |results: &TestResults| {
        results.is_whole() && results.with_status(TestStatus::Failed).next().is_some()
    };
    let failed_before = runs.clone().any(|(run, judged)| {
        let results = before(run).and_then(|before| before.results.as_ref());
        judged.tests.is_some() && results.is_some_and(has_failed)
    });
    let progress = runs.clone().any(|(run, judged)| match &judged.tests {
        Some(tests) => !tests.fixed.is_empty(),
        None => {
            judged.verdict.passes()
                && before(run).is_some_and(|before| !before.passed && !before.is_set_aside(run))
        }
    });
    if !failed_before || progress {
        return None;
    }
    let tests = || runs.clone().filter_map(|(_, judged)| judged.tests.as_ref());
    let has_added = tests().any(|tests| !tests.added.is_empty());
    Some(if is_environment(runs.clone(), baseline) {
        let hint = "no test that failed before the change passes now; all of them fail for lack of something in the sandbox, such as a network, and none concerns the goal";
        Finding::warning(NOTHING_FIXED, "gates", hint)
    } else if has_added
        && baseline.tests == TestFilePolicy::Editable
        && !tests().any(|tests| concerns(tests, baseline))
    {
        let hint = "no test that failed before the change passes now; only tests that the change adds pass";
        Finding::warning(NOTHING_FIXED, "gates", hint)
    } else if let Some(shown_by) = shown_by(tests(), baseline) {
        let hint = format!(
            "no test that failed before the change passes now, and none of them concerns the goal or the changed code; tests that the change adds pass, and fail with the changed code broken on purpose: {shown_by}"
        );
        Finding::warning(NOTHING_FIXED, "gates", hint)
    } else {
        let mut hint = String::from(
            "no test that failed before the change passes now; the change has to turn a failing test green, or add a passing test of the changed code if no failing test concerns it",
        );
        if has_added && !baseline.edited_examples.is_empty() {
            hint.push_str("; an example in documentation that the change edits does not count");
        }
        Finding::error(NOTHING_FIXED, "gates", hint)
    })
}

/// Returns whether the broken-change check can still show the progress of a change with these findings: the only objection is
/// that no failing test turned green, and the change adds tests that pass.
#[must_use]
pub fn may_show_progress<'r>(
    verdict: &Verdict,
    mut tests: impl Iterator<Item = &'r GateTests>,
) -> bool {
    verdict
        .errors()
        .all(|finding| finding.code == NOTHING_FIXED)
        && tests.any(|tests| !tests.added.is_empty())
}

/// Lowers the refusals that a person accepted to warnings.
pub(super) fn accept(verdict: Verdict, accepted: &[String]) -> Verdict {
    let is_accepted = |finding: &Finding| {
        finding.level == Level::Error
            && ACCEPTABLE.contains(&finding.code.as_str())
            && accepted.iter().any(|code| code == finding.code.as_str())
    };
    let lower = |finding: &Finding| match is_accepted(finding) {
        true => Finding::warning(
            finding.code.clone(),
            &finding.subject,
            format!("{}; a person accepted this", finding.hint),
        ),
        false => finding.clone(),
    };
    Verdict::new(verdict.findings().iter().map(lower).collect())
}

/// Returns the added tests that show the change; `None` if they do not suffice.
fn shown_by<'t>(
    mut tests: impl Iterator<Item = &'t GateTests>,
    baseline: &Baseline<'_>,
) -> Option<String> {
    let check = baseline.broken?;
    let noticed = |gate: &&crate::broken_change::BrokenGate| gate.outcome == BrokenOutcome::Noticed;
    let added: Vec<&str> = check
        .gates
        .iter()
        .filter(noticed)
        .flat_map(|gate| gate.noticed_by_added.iter().map(String::as_str))
        .collect();
    let is_shown = check.outcome == BrokenOutcome::Noticed
        && !added.is_empty()
        && !tests.any(|tests| concerns(tests, baseline));
    is_shown.then(|| added.join(", "))
}

/// Returns whether a test that still fails concerns the goal or the changed code.
fn concerns(tests: &GateTests, baseline: &Baseline<'_>) -> bool {
    let red = &tests.still_failing;
    if red.is_empty() {
        return false;
    }
    let reached = baseline.broken.is_some_and(|check| {
        check
            .gates
            .iter()
            .any(|gate| gate.id == tests.gate.as_str() && !gate.still_red.is_empty())
    });
    // Names that were left out could be the goal's.
    let is_listed = red.count == red.names.len() as u64;
    let is_waiting = red.names.iter().any(|name| baseline.waiting.contains(name));
    reached || !is_listed || is_waiting || is_goal_about(baseline.goal, &red.names)
}

/// Returns whether a goal may be about one of these failing tests, by its words.
fn is_goal_about(goal: &str, red: &[String]) -> bool {
    let lower = goal.to_lowercase();
    let has = |list: &[&str]| {
        let mut words = lower.split(|c: char| !c.is_alphanumeric());
        words.any(|word| list.contains(&word))
    };
    let mut of_goal = words(goal);
    of_goal.retain(|word| !GENERAL.contains(&word.as_str()) && !RESULTS.contains(&word.as_str()));
    if of_goal.is_empty() || has(&RESULTS) && has(&CHECKS) {
        return true;
    }
    let is_repair = has(&REPAIRS);
    let of_tests = red.iter().flat_map(|name| match is_repair {
        true => words(name),
        false => words(title(name)),
    });
    let of_tests: Vec<String> = of_tests.collect();
    of_goal
        .iter()
        .any(|word| of_tests.iter().any(|other| is_alike(word, other)))
}

/// Returns the own name of a test, without its file, its module and its groups.
pub(crate) fn title(name: &str) -> &str {
    let title = name.rsplit(" > ").next().unwrap_or(name);
    let title = title.rsplit("::").next().unwrap_or(title);
    // `test_total (tests.test_price.Price)`
    let title = match title.split_once(" (") {
        Some((own, place)) if place.ends_with(')') && !own.contains(' ') => own,
        _ => title,
    };
    match title.contains(char::is_whitespace) {
        true => title,
        false => title.rsplit('.').next().unwrap_or(title),
    }
}

/// Returns whether all failing tests failed before for lack of something in the sandbox, none concerns the
/// goal, nothing got worse, and passing tests of a gate noticed broken sources.
fn is_environment<'r>(
    runs: impl Iterator<Item = (&'r GateRun, &'r JudgedRun)> + Clone,
    baseline: &Baseline<'_>,
) -> bool {
    let is_set_aside = |before: &GateBefore| {
        let failed: Vec<&str> = before
            .results
            .iter()
            .flat_map(|results| results.with_status(TestStatus::Failed))
            .collect();
        failed.is_empty()
            || before
                .environment
                .as_ref()
                .is_some_and(|evidence| !environment::concerns_goal(evidence, &failed, baseline))
    };
    let has_noticed = |before: &GateBefore| {
        let passed = before
            .results
            .iter()
            .flat_map(|results| results.with_status(TestStatus::Passed));
        before.canary == CanaryOutcome::Noticed && passed.count() > 0
    };
    let mut befores = runs.clone().filter_map(|(run, _)| baseline.before(run));
    runs.clone().all(|(_, judged)| judged.verdict.passes())
        && runs
            .clone()
            .all(|(run, _)| baseline.before(run).is_none_or(is_set_aside))
        && befores.any(has_noticed)
}

#[cfg(test)]
mod tests;
