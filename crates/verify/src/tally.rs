//! Counts a gate's tests from the output of test runners.
//!
//! An exit code of 0 means that nothing failed, not that anything ran. Code under test may end its own
//! process or skip tests, and still succeed. The output must therefore show completion. [`TestTally::read`]
//! counts the tests that known runners announce and report, with one reader for each runner ([`readers`]);
//! [`compare`](verdict::compare) compares the counts with those of the same gate before any change.
//!
//! Invariants: reading takes time linear in the output and cannot fail; an invalid number is ignored; sums
//! saturate.
//! A tally cannot expose a runner that starts a process for each test and trusts its exit code. Nor can it expose
//! code that prints a complete false report.

mod announced;
mod readers;
mod verdict;

use std::collections::BTreeMap;

use crucible_sandbox::{Captured, Extent};
use serde::{Deserialize, Serialize};

use crate::gate::{GateEnd, GateRun};
use crate::text::visible;
use readers::{Reader, readers};

pub(crate) use verdict::compare;

/// A test runner that prints counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TestRunner {
    /// Rust's own harness, below `cargo test`.
    Libtest,
    /// `cargo nextest`.
    Nextest,
    /// Python's `unittest`, Django's tests included.
    Unittest,
    /// pytest.
    Pytest,
    /// `go test`, counted in packages.
    GoPackages,
    /// `go test -v`, counted in tests.
    GoTests,
    /// Jest.
    Jest,
    /// Vitest.
    Vitest,
    /// Mocha.
    Mocha,
    /// `node --test`.
    Node,
    /// Anything that prints the Test Anything Protocol.
    Tap,
    /// CTest.
    Ctest,
}

impl TestRunner {
    /// Returns the common name of the runner.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Libtest => "cargo test",
            Self::Nextest => "cargo nextest",
            Self::Unittest => "unittest",
            Self::Pytest => "pytest",
            Self::GoPackages => "go test",
            Self::GoTests => "go test -v",
            Self::Jest => "jest",
            Self::Vitest => "vitest",
            Self::Mocha => "mocha",
            Self::Node => "node --test",
            Self::Tap => "TAP",
            Self::Ctest => "ctest",
        }
    }
}

/// The counts of one runner, summed over all its reports in one gate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestCounts {
    /// Tests with a passing result.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
    /// Tests that were skipped or ignored, or whose failure was expected.
    pub skipped: u64,
    /// Tests that were announced without a result.
    pub unfinished: u64,
}

impl TestCounts {
    /// Returns the number of tests that finished.
    #[must_use]
    pub const fn ran(&self) -> u64 {
        self.passed.saturating_add(self.failed)
    }

    const fn is_empty(&self) -> bool {
        self.ran() == 0 && self.skipped == 0 && self.unfinished == 0
    }

    fn add(&mut self, other: Self) {
        self.passed = self.passed.saturating_add(other.passed);
        self.failed = self.failed.saturating_add(other.failed);
        self.skipped = self.skipped.saturating_add(other.skipped);
        self.unfinished = self.unfinished.saturating_add(other.unfinished);
    }
}

/// How much of the output a tally was read from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TallyBasis {
    /// All of it.
    #[default]
    Whole,
    /// Only the end, because the output was too long.
    Cut,
}

/// The counts of one gate's runners.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestTally {
    /// How much of the output was read.
    pub basis: TallyBasis,
    /// The counts per runner; a runner without output has no entry.
    pub runners: BTreeMap<TestRunner, TestCounts>,
}

impl TestTally {
    /// Reads the tally of a gate's command.
    #[must_use]
    pub fn read(run: &GateRun) -> Self {
        let captured = match run.end {
            GateEnd::Exited(0) => CapturedOutput::Read,
            _ => CapturedOutput::PassOver,
        };
        let mut tally = Self::default();
        for stream in [&run.stdout, &run.stderr] {
            tally.add_stream(stream, captured);
        }
        tally
    }

    fn add_stream(&mut self, stream: &Captured, captured: CapturedOutput) {
        if stream.extent == Extent::Cut {
            self.basis = TallyBasis::Cut;
        }
        let mut tally = read_text(&stream.text(), captured);
        // The first of each pair prints the second's reports as output of its tests.
        for (outer, inner) in [
            (TestRunner::Nextest, TestRunner::Libtest),
            (TestRunner::Node, TestRunner::Tap),
        ] {
            if tally.contains_key(&outer) {
                tally.remove(&inner);
            }
        }
        for (runner, counts) in tally {
            self.runners.entry(runner).or_default().add(counts);
        }
    }
}

/// How to handle the output of failing tests. It may contain the reports of runners that these tests started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CapturedOutput {
    /// Parse it like the rest. Without failures it is absent, and anything similar is forged.
    Read,
    /// Skip it: it is not shown once the test passes.
    PassOver,
}

fn read_text(text: &str, captured: CapturedOutput) -> BTreeMap<TestRunner, TestCounts> {
    let mut readers: Vec<(TestRunner, Box<dyn Reader>)> = readers();
    let mut section = None;
    for raw in text.lines() {
        let line = visible(raw);
        let line = line.trim_end();
        if captured == CapturedOutput::PassOver {
            if section.is_some_and(|section: Section| !section.ends_at(line)) {
                continue;
            }
            section = Section::begun_by(line);
        }
        for (_, reader) in &mut readers {
            reader.line(line);
        }
    }
    readers
        .into_iter()
        .filter_map(|(runner, mut reader)| Some((runner, reader.end()?)))
        .collect()
}

/// A part of the output with a failing test's own output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Libtest,
    Pytest,
}

impl Section {
    fn begun_by(line: &str) -> Option<Self> {
        if line.starts_with("---- ") && line.ends_with(" ----") {
            return Some(Self::Libtest);
        }
        let captured =
            line.starts_with('-') && line.trim_start_matches('-').starts_with(" Captured ");
        captured.then_some(Self::Pytest)
    }

    fn ends_at(self, line: &str) -> bool {
        match self {
            Self::Libtest => line == "failures:" || Self::begun_by(line) == Some(self),
            Self::Pytest => ["====", "____", "----"]
                .iter()
                .any(|rule| line.starts_with(rule)),
        }
    }
}

#[cfg(test)]
mod tests;
