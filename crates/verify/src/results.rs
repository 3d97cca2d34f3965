//! The result of each test of a gate.
//!
//! A runner that reports test by test fills in [`TestResults`]; the verdict compares the results after a change with those before it.
//!
//! What always holds: a test has one status; of two reports with the same name the worse one counts; at most [`MAX_TESTS`] tests are kept, and
//! a report that was cut says so.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::tally::TallyBasis;

/// The most tests whose results are kept.
pub const MAX_TESTS: usize = 100_000;

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
}

impl TestResults {
    /// Adds a result; the worse status wins where the name is there already.
    pub fn add(&mut self, name: impl Into<String>, status: TestStatus) {
        let name = name.into();
        if self.tests.len() >= MAX_TESTS && !self.tests.contains_key(&name) {
            self.basis = TallyBasis::Cut;
            return;
        }
        let kept = self.tests.entry(name).or_insert(status);
        *kept = (*kept).max(status);
    }

    /// Returns the names of the tests with this status, sorted.
    pub fn with_status(&self, status: TestStatus) -> impl Iterator<Item = &str> {
        self.tests.iter().filter(move |(_, is)| **is == status).map(|(name, _)| name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worse_status_of_repeated_name_wins() {
        let mut results = TestResults::default();
        for status in [TestStatus::Failed, TestStatus::Passed] {
            results.add("a", status);
        }
        results.add("b", TestStatus::Passed);
        assert_eq!(results.with_status(TestStatus::Failed).collect::<Vec<_>>(), ["a"]);
        assert_eq!(results.with_status(TestStatus::Passed).collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn report_with_too_many_tests_is_marked_cut() {
        let mut results = TestResults::default();
        (0..=MAX_TESTS).for_each(|number| results.add(number.to_string(), TestStatus::Passed));
        assert_eq!((results.tests.len(), results.basis), (MAX_TESTS, TallyBasis::Cut));
    }
}
