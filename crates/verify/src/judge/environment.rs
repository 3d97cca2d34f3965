//! Decides whether failing tests may keep failing for lack of something in the sandbox, unrelated to the
//! goal. Pure.
//!
//! A test that connects to the internet fails before and after any change. If the goal's own tests are not
//! among the failing ones, no failing test can pass, and the right change would be refused. A gate's failing
//! tests are therefore ignored if its runner tells a cause for each of them, each cause is one that only a
//! machine's surroundings have, and nothing connects them with the goal.
//!
//! What always holds: causes are read from the run before any change, which no model has touched; a test
//! without a cause, a failed assertion, a report that was cut, and a word in common with the goal or the
//! change each count against it.

use std::collections::BTreeSet;

use crucible_sandbox::Extent;

use super::Baseline;
use crate::gate::GateRun;
use crate::results::TestStatus;
use crate::tally::{TestRunner, TestTally};
use crate::text::FailureEvidence;

/// Error texts for a missing network or a read-only path. "Permission denied" and "No such file" are not
/// included: they are often real defects.
const CAUSES: [&str; 9] = [
    "Connection refused",
    "Network is unreachable",
    "No route to host",
    "Name or service not known",
    "Temporary failure in name resolution",
    "No address associated with hostname",
    "Address family not supported",
    "Operation not permitted",
    "Read-only file system",
];

/// Words that connect nothing.
const COMMON: [&str; 24] = [
    "and", "are", "but", "case", "fail", "fails", "fix", "for", "from", "has", "into", "must",
    "not", "pass", "should", "test", "tests", "that", "the", "this", "unittest", "when", "with",
    "init",
];
/// The shortest word that connects, and how much of the beginning of two words has to be the same.
const SHORTEST: usize = 3;
const SAME: usize = 4;
/// With so many frames some may have been left out.
const MAX_FRAMES: usize = 64;

/// Returns whether every failing test of a gate failed for lack of something in the sandbox. `log` is its
/// complete normalised output.
#[must_use]
pub fn failed_by_environment(run: &GateRun, log: &str) -> bool {
    let whole = |extent: Extent| extent == Extent::Whole;
    let Some(results) = run.results.as_ref().filter(|results| results.is_whole()) else {
        return false;
    };
    let failed = results.with_status(TestStatus::Failed).count();
    let runners: Vec<TestRunner> = TestTally::read(run).runners.keys().copied().collect();
    let causes = match runners[..] {
        [TestRunner::Pytest] => pytest_causes(log),
        [TestRunner::Unittest] => unittest_causes(log),
        _ => return false,
    };
    let is_environment = |cause: &&str| {
        !cause.to_ascii_lowercase().contains("assert")
            && CAUSES.iter().any(|known| cause.contains(known))
    };
    whole(run.stdout.extent)
        && whole(run.stderr.extent)
        && failed > 0
        && causes.len() == failed
        && causes.iter().all(is_environment)
}

/// Returns the causes in pytest's short summary; an empty one if it states none.
fn pytest_causes(log: &str) -> Vec<&str> {
    let lines = log
        .lines()
        .filter(|line| line.starts_with("FAILED ") || line.starts_with("ERROR "));
    lines
        .map(|line| line.split_once(" - ").map_or("", |(_, cause)| cause))
        .collect()
}

/// The last line of each traceback of unittest; a failed assertion has an empty one.
fn unittest_causes(log: &str) -> Vec<&str> {
    let mut causes: Vec<&str> = Vec::new();
    let mut is_open = false;
    let mut before = "";
    for line in log.lines() {
        let is_rule = |line: &str, of: char| line.len() > 20 && line.chars().all(|c| c == of);
        let is_header = is_rule(before, '=');
        before = line;
        if is_header && (line.starts_with("ERROR: ") || line.starts_with("FAIL: ")) {
            causes.push("");
            is_open = line.starts_with("ERROR: ");
        } else if is_rule(line, '=') || line.starts_with("Ran ") {
            is_open = false;
        } else if is_open && !line.starts_with([' ', '-']) && !line.trim().is_empty() {
            causes.pop();
            causes.push(line);
        }
    }
    causes
}

/// Whether red tests with this evidence have something in common with the goal or the change.
pub(super) fn concerns_goal(
    evidence: &FailureEvidence,
    failed: &[&str],
    baseline: &Baseline<'_>,
) -> bool {
    let files = || evidence.frames.iter().map(|frame| frame.file.as_str());
    let is_changed = |file: &str| {
        baseline
            .changed
            .iter()
            .any(|path| file == path || file.ends_with(&format!("/{path}")))
    };
    if baseline.changed.is_empty() || evidence.frames.len() >= MAX_FRAMES || files().any(is_changed)
    {
        return true;
    }
    let mut of_goal = words(baseline.goal);
    for path in baseline.changed {
        // A package is named by its directory.
        let parts = path
            .rsplit('/')
            .map(|part| part.split('.').next().unwrap_or(part));
        let stem = parts
            .into_iter()
            .find(|part| !part.trim_matches('_').eq_ignore_ascii_case("init"));
        of_goal.extend(words(stem.unwrap_or(path)));
    }
    let functions = evidence
        .frames
        .iter()
        .filter_map(|frame| frame.function.as_deref());
    let names = evidence
        .tests
        .iter()
        .chain(&evidence.names)
        .map(String::as_str);
    let of_tests: BTreeSet<String> = failed
        .iter()
        .copied()
        .chain(files())
        .chain(functions)
        .chain(names)
        .flat_map(words)
        .collect();
    of_goal
        .iter()
        .any(|word| of_tests.iter().any(|other| is_alike(word, other)))
}

/// The words of a text that can connect it with another.
pub(super) fn words(text: &str) -> BTreeSet<String> {
    let parts = text.split(|c: char| !c.is_alphanumeric()).flat_map(|part| {
        // `HttpClient` is two words, and one.
        let mut humps = vec![String::new()];
        for c in part.chars() {
            if c.is_uppercase() {
                humps.push(String::new());
            }
            if let Some(last) = humps.last_mut() {
                last.extend(c.to_lowercase());
            }
        }
        humps.push(part.to_lowercase());
        humps
    });
    parts
        .filter(|word| word.chars().count() >= SHORTEST && !COMMON.contains(&word.as_str()))
        .collect()
}

/// Whether one word is the other, or both begin alike: `price` and `prices`.
pub(super) fn is_alike(word: &str, other: &str) -> bool {
    let same = word
        .chars()
        .zip(other.chars())
        .take_while(|(a, b)| a == b)
        .count();
    word == other || same >= SAME
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::GateEnd;
    use crate::judge::tests::run_of;
    use crate::results::TestResults;

    const RULE: &str = "======================================================================";

    /// A run of unittest with a red test for each cause.
    fn unittest(causes: &[&str]) -> (GateRun, String) {
        let mut log = String::new();
        let mut results = TestResults::default();
        results.add("tests.test_a.A.test_green", TestStatus::Passed);
        for (number, cause) in causes.iter().enumerate() {
            let kind = if cause.starts_with("Assertion") {
                "FAIL"
            } else {
                "ERROR"
            };
            let name = format!("tests.test_net.Net.test_{number}");
            log += &format!(
                "{RULE}\n{kind}: test_{number} ({name})\n----------------------------------------------------------------------\n\
                 Traceback (most recent call last):\n  File \"tests/test_net.py\", line 7, in test_{number}\n    x()\n{cause}\n\n"
            );
            results.add(name, TestStatus::Failed);
        }
        log += &format!(
            "Ran {} tests in 0.1s\n\nFAILED (errors={})\n",
            causes.len() + 1,
            causes.len()
        );
        let run = run_of("python3 -m unittest", GateEnd::Exited(1), "", &log);
        (
            GateRun {
                results: Some(results),
                ..run
            },
            log,
        )
    }

    const REFUSED: &str = "urllib.error.URLError: <urlopen error [Errno 111] Connection refused>";

    #[test]
    fn every_failing_test_needs_an_external_cause() {
        for (causes, expected) in [
            (&[REFUSED][..], true),
            (
                &[
                    REFUSED,
                    "OSError: [Errno 30] Read-only file system: '/srv/x'",
                ],
                true,
            ),
            (&[], false),
            (&["AssertionError: 0 != 3"], false),
            (&[REFUSED, "AssertionError: 0 != 3"], false),
            (
                &["AssertionError: 'Connection refused' not found in ''"],
                false,
            ),
            (&["ValueError: price"], false),
            (
                &["PermissionError: [Errno 13] Permission denied: 'x'"],
                false,
            ),
        ] {
            let (run, log) = unittest(causes);
            assert_eq!(failed_by_environment(&run, &log), expected, "{causes:?}");
        }
        let (run, log) = unittest(&[REFUSED]);
        let cut = GateRun {
            results: run.results.clone().map(|mut results| {
                results.basis = crate::tally::TallyBasis::Cut;
                results
            }),
            ..run.clone()
        };
        assert!(!failed_by_environment(&cut, &log));
        assert!(
            !failed_by_environment(&run, "Ran 2 tests in 0.1s\n"),
            "no cause is told"
        );
    }

    #[test]
    fn causes_of_pytest_stand_in_its_summary() {
        let log = "FAILED tests/test_net.py::test_a - ConnectionRefusedError: [Errno 111] Connection refused\n\
                   FAILED tests/test_net.py::test_b\n";
        assert_eq!(
            pytest_causes(log),
            ["ConnectionRefusedError: [Errno 111] Connection refused", ""]
        );
    }

    #[test]
    fn failing_tests_match_goal_words_and_files() {
        let (_, log) = unittest(&[REFUSED]);
        let evidence = FailureEvidence::read(&log);
        let concerns = |goal: &str, changed: &[&str]| {
            let changed: Vec<String> = changed.iter().map(|path| (*path).to_owned()).collect();
            let baseline = Baseline {
                goal,
                changed: &changed,
                ..Baseline::default()
            };
            concerns_goal(&evidence, &["tests.test_net.Net.test_0"], &baseline)
        };
        assert!(!concerns(
            "total must add up the prices",
            &["shop/price.py"]
        ));
        for (goal, changed) in [
            ("total must add up", &[][..]),
            ("close the net client", &["shop/price.py"]),
            ("total must add up", &["shop/net.py"]),
            ("total must add up", &["shop/net/__init__.py"]),
            ("total must add up", &["tests/test_net.py"]),
            ("total must add up", &["shop/NetClient.py"]),
        ] {
            assert!(concerns(goal, changed), "{goal} {changed:?}");
        }
    }
}
