//! The result of each test of a gate.
//!
//! A runner with reports per test fills in [`TestResults`]; the verdict compares the results after a change
//! with those before it.
//!
//! Invariants: a test has one status; of two reports with the same name the worse one counts; at most
//! [`MAX_TESTS`] tests are kept, and a truncated report is marked.

use std::collections::BTreeMap;

use crucible_model::Digest;
use serde::{Deserialize, Serialize};

use crate::gate::{GateEnd, GateRun};
use crate::tally::{TallyBasis, TestRunner, TestTally};
use crate::text::Normaliser;

/// Maximum number of tests with kept results.
pub(crate) const MAX_TESTS: usize = 100_000;

/// The beginning of the name of a test that represents a step of a script.
pub(crate) const STEP: &str = "script step: ";
/// The same for a step that runs tests.
pub(crate) const TEST_STEP: &str = "script test step: ";

/// Returns whether a test stands for a step of a script.
pub(crate) fn is_step(name: &str) -> bool {
    name.starts_with(STEP) || name.starts_with(TEST_STEP)
}

/// Maximum length of a kept name in bytes.
const MAX_NAME: usize = 512;

/// How one test ended, from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TestStatus {
    /// It passed.
    Passed,
    /// It did not run: skipped, ignored, or expected to fail.
    Skipped,
    /// It failed or raised an error.
    Failed,
}

/// The tests of one gate, by the name under which its runner reports them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestResults {
    /// Whether the whole report was read.
    pub basis: TallyBasis,
    /// Status by name, such as `tests/test_a.py::test_b` or `crate::module::test`.
    pub tests: BTreeMap<String, TestStatus>,
    /// The digests of the normalised output of failed steps of a script, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub step_outputs: BTreeMap<String, Digest>,
}

impl TestResults {
    /// Adds a result; the worse status wins for a duplicate name.
    pub fn add(&mut self, name: impl Into<String>, status: TestStatus) {
        let name = name.into();
        if self.tests.len() >= MAX_TESTS && !self.tests.contains_key(&name) {
            self.basis = TallyBasis::Cut;
            return;
        }
        let entry = self.tests.entry(name).or_insert(status);
        *entry = (*entry).max(status);
    }

    /// Returns the results of a gate that ran in `copy`. They are complete only if the command exited like
    /// its runner does. Names do not contain the copy's path.
    pub(crate) fn of_run(run: &GateRun, names: &Normaliser) -> Option<Self> {
        let read = Self::read(run)?;
        let mut results = Self {
            basis: read.basis,
            ..Self::default()
        };
        for (name, status) in read.tests {
            results.add(cut(&names.name(&name)), status);
        }
        for (name, output) in Self::outputs_of_failed_steps(run, names) {
            let name = cut(&names.name(&name));
            if results.tests.get(&name) == Some(&TestStatus::Failed) {
                results.step_outputs.insert(name, output);
            }
        }
        let has_failed = results.with_status(TestStatus::Failed).next().is_some();
        if !(run.end == GateEnd::Exited(0) || has_failed && ended_with_failed_tests(run)) {
            results.basis = TallyBasis::Cut;
        }
        Some(results)
    }

    /// Returns whether every test of the gate is there.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.basis == TallyBasis::Whole
    }

    /// Returns the names of the tests with this status, sorted.
    pub fn with_status(&self, status: TestStatus) -> impl Iterator<Item = &str> {
        self.tests
            .iter()
            .filter(move |(_, is)| **is == status)
            .map(|(name, _)| name.as_str())
    }
}

/// Programs whose exit code depends on tests only: they run nothing else, or stop at the first failing
/// command.
const RUNNERS: &[&str] = &[
    "bun", "bundle", "cargo", "ctest", "deno", "dotnet", "go", "gradle", "gradlew", "jest", "just",
    "make", "mix", "mocha", "mvn", "mvnw", "node", "npm", "npx", "php", "phpunit", "pnpm",
    "poetry", "prove", "py.test", "pytest", "rake", "rspec", "ruby", "uv", "vitest", "yarn",
];

/// Returns whether the exit code is the runner's code for failed tests. For a shell or a script, something
/// else may have failed.
fn ended_with_failed_tests(run: &GateRun) -> bool {
    let GateEnd::Exited(code) = run.end else {
        return false;
    };
    let program = run
        .command
        .first()
        .map_or("", |program| program.rsplit('/').next().unwrap_or(program));
    let goes_on = run
        .command
        .iter()
        .any(|word| word == "-k" || word == "--keep-going");
    let is_runner = RUNNERS.contains(&program) || program.starts_with("python");
    if !is_runner || program == "make" && goes_on || TestResults::is_unknown_script(run) {
        return false;
    }
    let tally = TestTally::read(run);
    let is_of = |runner| tally.runners.contains_key(&runner);
    let of_mocha = tally.runners.get(&TestRunner::Mocha);
    match code {
        code if of_mocha.is_some_and(|counts| i64::try_from(counts.failed) == Ok(code.into())) => {
            true
        }
        1 => true,
        2 => program == "make",
        8 => is_of(TestRunner::Ctest),
        100 => is_of(TestRunner::Nextest),
        101 => is_of(TestRunner::Libtest),
        _ => false,
    }
}

/// Truncates a name to the maximum length. What stands in place of the rest differs between names.
fn cut(name: &str) -> String {
    if name.len() <= MAX_NAME {
        return name.to_owned();
    }
    let digest = Digest::compute(name.as_bytes()).to_string();
    let mark = digest.rsplit(':').next().unwrap_or(&digest);
    let mark: String = mark.chars().take(16).collect();
    let mut end = MAX_NAME - mark.len() - "…".len();
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…{mark}", &name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::tests::run_of;

    fn read(command: &str, code: i32, output: &str) -> TestResults {
        run_of(command, GateEnd::Exited(code), output, "")
            .results
            .unwrap()
    }

    #[test]
    fn libtest_results_are_read() {
        let cargo = "running 3 tests\ntest a ... ok\ntest b ... FAILED\ntest c ... ignored, slow\n\n\
            test result: FAILED. 1 passed; 1 failed; 1 ignored\n";
        let results = read("cargo test", 101, cargo);
        assert!(results.is_whole());
        assert_eq!(
            results.tests.into_iter().collect::<Vec<_>>(),
            [
                ("a".to_owned(), TestStatus::Passed),
                ("b".to_owned(), TestStatus::Failed),
                ("c".to_owned(), TestStatus::Skipped)
            ]
        );
    }

    /// Doc tests end in any order, and those of a crate's own text are named only by their file.
    #[test]
    fn libtest_names_are_independent_of_order() {
        let targets =
            "     Running tests/it.rs (target/debug/deps/it-0123456789abcdef)\n   Doc-tests x\n";
        let read = |docs: &str| {
            let unit = "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed\n\n";
            let stdout = format!("{unit}running 2 tests\n{docs}\ntest result: ok. 2 passed\n");
            run_of("cargo test", GateEnd::Exited(0), &stdout, targets)
                .results
                .unwrap()
                .tests
        };
        let (own, named) = (
            "test src/lib.rs - (line 19) ... ok\n",
            "test src/lib.rs - f (line 3) ... ok\n",
        );
        let first = read(&format!("{own}{named}"));
        assert_eq!(first, read(&format!("{named}{own}")));
        assert_eq!(
            first.keys().collect::<Vec<_>>(),
            ["it::a", "src/lib.rs -", "src/lib.rs - f"]
        );
    }

    /// Neither package nor file distinguishes such tests, and a failing one must not hide a passing one.
    #[test]
    fn repeated_libtest_names_are_numbered() {
        let running =
            |file: &str| format!("     Running {file} (target/debug/deps/it-0123456789abcdef)\n");
        let stderr = format!(
            "{}{}   Doc-tests x\n",
            running("tests/it.rs"),
            running("tests/it.rs")
        );
        let list = |status: &str| {
            format!("running 1 test\ntest basic ... {status}\n\ntest result: {status}.\n\n")
        };
        let docs = "running 2 tests\ntest src/lib.rs - f (line 9) ... FAILED\ntest src/lib.rs - f (line 3) ... ok\n";
        let stdout = format!("{}{}{docs}\n", list("FAILED"), list("ok"));
        let tests = run_of("cargo test", GateEnd::Exited(101), &stdout, &stderr)
            .results
            .unwrap()
            .tests;
        assert_eq!(
            tests.into_iter().collect::<Vec<_>>(),
            [
                ("it #2::basic".to_owned(), TestStatus::Passed),
                ("it::basic".to_owned(), TestStatus::Failed),
                ("src/lib.rs - f".to_owned(), TestStatus::Passed),
                ("src/lib.rs - f #2".to_owned(), TestStatus::Failed),
            ]
        );
    }

    #[test]
    fn unittest_results_are_read() {
        let output = "test_b (test_a.A.test_b) ... ok\ntest_c (test_a.A.test_c) ... FAIL\ntest_d (test_a.A.test_d) ... skipped 'x'\n";
        let results = run_of("python3 -m unittest -v", GateEnd::Exited(1), "", output)
            .results
            .unwrap();
        assert!(results.is_whole());
        assert_eq!(
            results.with_status(TestStatus::Failed).collect::<Vec<_>>(),
            ["test_a.A.test_c"]
        );
        assert_eq!(results.tests.len(), 3);
    }

    #[test]
    fn missing_tests_make_results_incomplete() {
        let all = "running 2 tests\ntest a ... ok\ntest b ... FAILED\ntest result: FAILED. 1 passed; 1 failed\n";
        for (code, is_whole) in [(101, true), (1, true), (0, true), (134, false), (3, false)] {
            assert_eq!(read("cargo test", code, all).is_whole(), is_whole, "{code}");
        }
        let green = "running 1 test\ntest a ... ok\ntest result: ok. 1 passed; 0 failed\n";
        assert!(
            !read("cargo test", 101, green).is_whole(),
            "no failed test explains the code"
        );
        for (command, is_whole) in [
            ("sh run.sh", false),
            ("./check", false),
            ("make -k test", false),
            ("make test", true),
        ] {
            assert_eq!(read(command, 1, all).is_whole(), is_whole, "{command}");
        }
        assert_eq!(
            run_of("cargo test", GateEnd::Exited(0), "", "").results,
            None
        );
    }

    #[test]
    fn names_do_not_tell_where_the_copy_was() {
        let results = read(
            "cargo test",
            0,
            "running 1 test\ntest /copy/a.test.mjs ... ok\ntest result: ok. 1 passed; 0 failed\n",
        );
        assert_eq!(results.tests.keys().collect::<Vec<_>>(), ["a.test.mjs"]);
    }

    #[test]
    fn worse_status_of_repeated_name_wins() {
        let mut results = TestResults::default();
        for status in [TestStatus::Failed, TestStatus::Passed] {
            results.add("a", status);
        }
        results.add("b", TestStatus::Passed);
        assert_eq!(
            results.with_status(TestStatus::Failed).collect::<Vec<_>>(),
            ["a"]
        );
        assert_eq!(
            results.with_status(TestStatus::Passed).collect::<Vec<_>>(),
            ["b"]
        );
    }

    #[test]
    fn report_with_too_many_tests_is_marked_cut() {
        let mut results = TestResults::default();
        (0..=MAX_TESTS).for_each(|number| results.add(number.to_string(), TestStatus::Passed));
        assert_eq!(
            (results.tests.len(), results.basis),
            (MAX_TESTS, TallyBasis::Cut)
        );
    }
}
