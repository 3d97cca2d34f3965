//! The output of a gate's command, for runners.

use std::cell::OnceCell;

use crucible_sandbox::Extent;

use crate::gate::{GateEnd, GateRun};
use crate::results::TestResults;
use crate::tally::{TallyBasis, TestCounts, TestRunner, TestTally};
use crate::text::visible;

/// The output and the report of one command, without escape sequences.
pub struct CommandOutput<'r> {
    /// The command.
    pub run: &'r GateRun,
    /// The report, if the runner wrote one.
    pub report: Option<String>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
    /// Whether all of it was kept.
    pub basis: TallyBasis,
    tally: OnceCell<TestTally>,
}

impl<'r> CommandOutput<'r> {
    pub(super) fn from_run(run: &'r GateRun) -> Self {
        let streams = [&run.stdout, &run.stderr];
        let cut = streams.iter().any(|stream| stream.extent == Extent::Cut)
            || run
                .report
                .as_ref()
                .is_some_and(|report| report.extent == Extent::Cut);
        Self {
            run,
            report: run
                .report
                .as_ref()
                .map(|report| String::from_utf8_lossy(&report.bytes).into_owned()),
            stdout: plain(&run.stdout.text()),
            stderr: plain(&run.stderr.text()),
            basis: if cut {
                TallyBasis::Cut
            } else {
                TallyBasis::Whole
            },
            tally: OnceCell::new(),
        }
    }

    /// Returns the lines of both streams, standard error first.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.stderr.lines().chain(self.stdout.lines())
    }

    /// Returns the first line that contains this text.
    #[must_use]
    pub(crate) fn line_with(&self, text: &str) -> Option<&str> {
        self.lines().find(|line| line.contains(text)).map(str::trim)
    }

    /// Returns the exit code, if the command exited by itself.
    #[must_use]
    pub fn code(&self) -> Option<i32> {
        match self.run.end {
            GateEnd::Exited(code) => Some(code),
            _ => None,
        }
    }

    /// Returns what the runners counted.
    pub fn tally(&self) -> &TestTally {
        self.tally.get_or_init(|| TestTally::read(self.run))
    }

    /// Returns whether a test finished, passed or not. A Go package that does not compile counts as failed
    /// and ran none.
    #[must_use]
    pub(crate) fn has_finished_test(&self) -> bool {
        let is_real = |kind: &TestRunner, counts: &TestCounts| match kind {
            TestRunner::GoPackages => counts.passed > 0 || self.line_with("--- FAIL: ").is_some(),
            _ => counts.ran() > 0,
        };
        self.tally()
            .runners
            .iter()
            .any(|(kind, counts)| is_real(kind, counts))
    }

    /// Returns results that were read from all that this holds.
    #[must_use]
    pub(crate) fn new_results(&self) -> TestResults {
        TestResults {
            basis: self.basis,
            ..TestResults::default()
        }
    }
}

fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for line in text.lines() {
        plain.push_str(&visible(line));
        plain.push('\n');
    }
    plain
}
