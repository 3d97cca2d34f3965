//! The trait of test runners and its small types.
//!
//! A runner may call others, so the values that it gets hold the list of all runners ([`TreeView::runners`],
//! [`ReportContext::runners`]). This file and the runners do not import that list.

use super::{Call, CommandOutput, NotRunReason, ReportContext, Reporting, TreeView, format};
use crate::results::TestResults;
use crate::tally::TestRunner;

/// The program that a runner needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tool {
    /// Its name on `PATH`.
    pub program: &'static str,
    /// How to install it, an imperative such as ``run `rustup default stable` ``.
    pub install: &'static str,
}

/// The files of a repository that steer a runner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunnerFiles {
    /// The names of the programs that read them.
    pub programs: &'static [&'static str],
    /// Files whose lines are commands that it runs.
    pub recipes: &'static [&'static str],
    /// Files that only configure it.
    pub settings: &'static [&'static str],
}

/// A program that runs tests.
pub trait Runner: Sync {
    /// Returns the name of its gate.
    fn id(&self) -> &'static str;

    /// Returns the program that it needs.
    fn tool(&self) -> Tool;

    /// Returns the manifests that [`Runner::detect`] reads.
    fn reads(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the command that runs the tests of this tree, and its evidence; `None` if the runner has none
    /// there.
    fn detect(&self, view: &TreeView) -> Option<(Vec<String>, String)>;

    /// Returns commands that run these tests where the detected one cannot, the better first.
    fn alternatives(&self, view: &TreeView) -> Vec<Vec<String>> {
        let _none = view;
        Vec::new()
    }

    /// Returns commands that build what the tests of the detected command may run, the likelier first.
    fn builds(&self, view: &TreeView) -> Vec<Vec<String>> {
        let _none = view;
        Vec::new()
    }

    /// Returns the same by a weaker sign, which counts where no runner detects a gate.
    fn detect_alone(&self, view: &TreeView) -> Option<(Vec<String>, String)> {
        let _none = view;
        None
    }

    /// Returns whether a command starts this runner.
    fn runs(&self, call: &Call<'_>) -> bool;

    /// Returns variables that a gate of this runner gets unless they are set.
    fn env(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Returns how to call the command for a report per test; `None` if it has none.
    fn reporting(&self, call: &Call<'_>, at: &ReportContext<'_>) -> Option<Reporting> {
        let _ = at;
        Some(Reporting::unchanged(call))
    }

    /// Returns the output for people if standard output was the report.
    fn readable_output(&self, stdout: &str) -> Option<String> {
        let _ = stdout;
        None
    }

    /// Reads the results test by test.
    fn results(&self, output: &CommandOutput) -> Option<TestResults> {
        format::any_stream(output)
    }

    /// Returns whether it starts other runners, so that its output may be theirs.
    fn calls_others(&self) -> bool {
        false
    }

    /// Returns the language of its tests: only one of two runners for the same language becomes a gate.
    fn suite(&self) -> &'static str {
        ""
    }

    /// Returns the reader that counts its tests by its output, if any.
    fn counts(&self) -> Option<TestRunner> {
        None
    }

    /// Returns the beginnings of its output lines if it ran no test.
    fn nothing_ran(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns whether each test is a process of its own and another, without tested code, decides by its exit code.
    fn decides_outside(&self) -> bool {
        false
    }

    /// Returns the files of a repository that steer it.
    fn influence(&self) -> RunnerFiles {
        RunnerFiles::default()
    }

    /// Returns its output for something missing that no source change can add, each with the remedy.
    fn signs(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Returns why it could not run, if [`Runner::signs`] is not sufficient.
    fn obstacle(&self, output: &CommandOutput) -> Option<NotRunReason> {
        let _ = output;
        None
    }
}

/// Returns the first of these runners that a call starts.
pub(crate) fn find_runner(
    runners: &[&'static dyn Runner],
    call: &Call<'_>,
) -> Option<&'static dyn Runner> {
    runners.iter().find(|runner| runner.runs(call)).copied()
}

/// Words of ours as a command.
pub(crate) fn command(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
