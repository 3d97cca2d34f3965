//! What the tests of a gate show with the changed functions broken on purpose. Pure.
//!
//! Tests that the change adds show the change if they fail then. Tests that fail before and after the change may wait for
//! it if they run its code: the message of a broken function then stands among the lines on the test. Runners print these
//! lines in their own ways, but each below a line with the test's name.
//!
//! Invariant: a test whose lines are not found, or that a truncated output may hide, counts as one that runs the code.

use std::collections::BTreeSet;

use crucible_sandbox::Extent;

use crate::broken_change::{BrokenRuns, Variant, is_green};
use crate::gate::GateRun;
use crate::judge::{is_edited_example, title};
use crate::results::TestStatus;

/// The most names of a list.
const MAX_NAMES: usize = 10;
/// A shorter title may stand anywhere.
const SHORTEST_TITLE: usize = 3;

/// Returns the tests that the change adds, that pass with it and that fail with its functions broken. Examples in
/// documentation that the change edits are not among them.
#[must_use]
pub fn noticing_added_tests(runs: BrokenRuns<'_>, edited_examples: &[String]) -> Vec<String> {
    let before = runs.before.and_then(|before| before.results.as_ref());
    let is_added = |name: &&str| before.is_some_and(|before| !before.tests.contains_key(*name));
    let broken = [Variant::Fails, Variant::ReturnsNothing].map(|variant| runs.runs.get(&variant));
    let is_noticed = |name: &&str| broken.iter().flatten().any(|run| !is_green(run, name));
    let passed = runs.after.results.iter();
    passed
        .flat_map(|results| results.with_status(TestStatus::Passed))
        .filter(is_added)
        .filter(|name| !is_edited_example(name, edited_examples))
        .filter(is_noticed)
        .take(MAX_NAMES)
        .map(str::to_owned)
        .collect()
}

/// Returns the tests that fail before and after the change and may run its code. `message` is what a broken function fails
/// with; without one, each such test may.
#[must_use]
pub fn still_failing(runs: BrokenRuns<'_>, message: Option<&str>) -> Vec<String> {
    let before = runs.before.and_then(|before| before.results.as_ref());
    let was_red = |name: &&str| {
        before.is_some_and(|before| before.tests.get(*name) == Some(&TestStatus::Failed))
    };
    let now = runs.after.results.iter();
    let red: Vec<&str> = now
        .flat_map(|results| results.with_status(TestStatus::Failed))
        .filter(was_red)
        .collect();
    let broken = runs.runs.get(&Variant::Fails);
    let apart = match (broken, message) {
        (Some(run), Some(message)) => unrelated(run, &red, message),
        _ => BTreeSet::new(),
    };
    red.into_iter()
        .filter(|name| !apart.contains(name))
        .take(MAX_NAMES)
        .map(str::to_owned)
        .collect()
}

/// Returns those of `red` of which the output has lines, none of them with the message.
fn unrelated<'n>(run: &GateRun, red: &[&'n str], message: &str) -> BTreeSet<&'n str> {
    let is_whole = [&run.stdout, &run.stderr]
        .iter()
        .all(|captured| captured.extent == Extent::Whole);
    let Some(results) = run.results.as_ref().filter(|_| is_whole) else {
        return BTreeSet::new();
    };
    let failing: Vec<&str> = results.with_status(TestStatus::Failed).collect();
    let (mut seen, mut running) = (BTreeSet::new(), BTreeSet::new());
    for captured in [&run.stdout, &run.stderr] {
        let text = String::from_utf8_lossy(&captured.bytes);
        let mut current: Vec<&str> = Vec::new();
        for line in text.lines() {
            let named: Vec<&str> = match is_frame(line) {
                true => Vec::new(),
                false => failing
                    .iter()
                    .copied()
                    .filter(|name| names(line, name))
                    .collect(),
            };
            if !named.is_empty() {
                seen.extend(named.iter().copied());
                current = named;
            }
            if line.contains(message) {
                running.extend(current.iter().copied());
            }
        }
    }
    let is_apart = |name: &&&str| {
        title(name).len() >= SHORTEST_TITLE && seen.contains(*name) && !running.contains(*name)
    };
    red.iter().filter(is_apart).copied().collect()
}

/// Whether a line is a place in a stack, which may name another test's function.
fn is_frame(line: &str) -> bool {
    let text = line.trim_start();
    text.starts_with("File \"") || text.starts_with("at ") || text.contains(".py:")
}

/// Whether a line names a test, as a whole word.
fn names(line: &str, test: &str) -> bool {
    let title = title(test);
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(title).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + title.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::gate::GateEnd;
    use crate::judge::GateBefore;
    use crate::judge::tests::run_of;

    const MESSAGE: &str = "broken on purpose";

    fn libtest(output: &str) -> GateRun {
        let code = if output.contains("FAILED") { 101 } else { 0 };
        run_of("cargo test", GateEnd::Exited(code), output, "")
    }

    fn before() -> GateBefore {
        let run = libtest(
            "running 2 tests\ntest a_green ... ok\ntest zone ... FAILED\n\ntest result: FAILED. 1 passed; 1 failed\n",
        );
        GateBefore {
            results: run.results,
            ..GateBefore::default()
        }
    }

    fn after() -> GateRun {
        libtest(
            "running 3 tests\ntest a_green ... ok\ntest twice ... ok\ntest zone ... FAILED\n\ntest result: FAILED. 2 passed; 1 failed\n",
        )
    }

    /// The added tests and the failing ones, with `twice` and `zone` as they end on broken code.
    fn shown(twice: &str, blocks: &str) -> (Vec<String>, Vec<String>) {
        let failed = if twice == "ok" { 1 } else { 2 };
        let output = format!(
            "running 3 tests\ntest a_green ... ok\ntest twice ... {twice}\ntest zone ... FAILED\n\nfailures:\n\n{blocks}\n\
             test result: FAILED. {} passed; {failed} failed\n",
            3 - failed
        );
        let (before, after) = (before(), after());
        let runs = BTreeMap::from([(Variant::Fails, libtest(&output))]);
        let runs = BrokenRuns {
            before: Some(&before),
            after: &after,
            runs: &runs,
        };
        (
            noticing_added_tests(runs, &[]),
            still_failing(runs, Some(MESSAGE)),
        )
    }

    const TWICE: &str =
        "---- twice stdout ----\nthread 'twice' panicked at src/lib.rs:9:\nbroken on purpose\n";

    #[test]
    fn added_test_that_fails_on_broken_code_counts() {
        let zone =
            "---- zone stdout ----\nthread 'zone' panicked at src/lib.rs:30:\nassertion failed\n";
        let (added, red) = shown("FAILED", &format!("{TWICE}\n{zone}"));
        assert_eq!((added, red), (vec!["twice".to_owned()], Vec::new()));
        let (added, _) = shown("ok", zone);
        assert!(added.is_empty(), "it tests nothing of the change");
    }

    #[test]
    fn failing_test_that_runs_the_code_is_listed() {
        let reaches =
            "---- zone stdout ----\nthread 'zone' panicked at src/lib.rs:30:\nbroken on purpose\n";
        for blocks in [
            format!("{TWICE}\n{reaches}"),
            format!("{reaches}\n{TWICE}"),
            // Another test is named within its lines.
            format!("---- zone stdout ----\n  at twice (src/lib.rs:3)\nbroken on purpose\n{TWICE}"),
        ] {
            assert_eq!(shown("FAILED", &blocks).1, ["zone"], "{blocks}");
        }
    }

    #[test]
    fn failing_test_without_lines_is_listed() {
        let (before, after) = (before(), after());
        let with = |runs: &BTreeMap<Variant, GateRun>, message| {
            still_failing(
                BrokenRuns {
                    before: Some(&before),
                    after: &after,
                    runs,
                },
                message,
            )
        };
        assert_eq!(with(&BTreeMap::new(), Some(MESSAGE)), ["zone"]);
        let silent = BTreeMap::from([(Variant::Fails, after.clone())]);
        assert_eq!(with(&silent, None), ["zone"]);
        // The program ended before the test ran.
        let missing_gate_run = libtest(
            "running 3 tests\ntest twice ... FAILED\n\ntest result: FAILED. 0 passed; 1 failed\n",
        );
        assert_eq!(
            with(
                &BTreeMap::from([(Variant::Fails, missing_gate_run)]),
                Some(MESSAGE)
            ),
            ["zone"]
        );
    }
}
