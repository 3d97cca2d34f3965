//! Test runners: all knowledge about programs that run tests.
//!
//! A [`Runner`] says how it is detected in a repository, which command runs it, how it reports test by test
//! and how that is read, when its output means that it could not run, and which files of a repository steer
//! it. Each runner is one file; [`runners`] lists them all. Adding one is one file and one line there.
//! Nothing here starts a process: [`detect`] looks at names and manifests, `prepare` changes the words of a
//! command before it runs, and [`TestResults::read`] and [`could_not_run`] read what a gate left behind.
//!
//! What always holds: reading is linear in what was printed, bounded by what was kept, and cannot fail. Names
//! of tests hold no directory of this machine, no duration and no address, so that two runs of the same tests
//! have the same names.

mod ava;
mod call;
mod cargo;
mod chain;
mod command_output;
mod compiling;
mod could_not_run;
mod ctest;
mod dotnet;
mod format;
mod go;
mod gradle;
mod jest;
mod just;
mod make;
mod maven;
mod minitest;
mod mix;
mod mocha;
mod nextest;
mod node;
mod phpunit;
mod prepare;
mod prove;
mod pytest;
mod python;
mod recipe;
mod rspec;
mod scripts;
mod tox;
mod tree_view;
mod unittest;
mod vitest;

use std::path::Path;

use crate::gate::GateRun;
use crate::results::TestResults;
use crate::tally::TestRunner;

pub use call::Call;
pub use command_output::CommandOutput;
pub use compiling::{cannot_compile, concerns_compiling};
pub use could_not_run::{CouldNotRun, could_not_run};
pub use prepare::{ReportAt, ReportPlace, Reporting};
pub use tree_view::{DetectError, TreeView};

pub(crate) use could_not_run::{missing, no_tests_ran};
pub(crate) use prepare::prepare;

/// A detected command that checks a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetectedGate {
    /// The gate's name, which is its runner's.
    pub id: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Which file shows it, one sentence.
    pub why: String,
}

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
pub struct Influence {
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
    fn reporting(&self, call: &Call<'_>, at: &ReportAt<'_>) -> Option<Reporting> {
        let _ = at;
        Some(Reporting::unchanged(call))
    }

    /// Returns the output for people if standard output was the report.
    fn shown(&self, stdout: &str) -> Option<String> {
        let _ = stdout;
        None
    }

    /// Reads the results test by test.
    fn results(&self, told: &CommandOutput) -> Option<TestResults> {
        format::any_stream(told)
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

    /// Returns the files of a repository that steer it.
    fn influence(&self) -> Influence {
        Influence::default()
    }

    /// Returns its output for something missing that no source change can add, each with the remedy.
    fn signs(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Returns why it could not run, if [`Runner::signs`] is not sufficient.
    fn obstacle(&self, told: &CommandOutput) -> Option<CouldNotRun> {
        let _ = told;
        None
    }
}

/// Returns every runner, in the order in which their gates run. A runner that calls others comes after them.
#[must_use]
pub fn runners() -> &'static [&'static dyn Runner] {
    &[
        &nextest::Nextest,
        &cargo::Cargo,
        &scripts::NPM,
        &scripts::PNPM,
        &scripts::YARN,
        &scripts::BUN,
        &vitest::Vitest,
        &jest::Jest,
        &mocha::Mocha,
        &node::Node,
        &pytest::Pytest,
        &unittest::Unittest,
        &tox::TOX,
        &tox::NOX,
        &go::Go,
        &maven::Maven,
        &gradle::Gradle,
        &ctest::Ctest,
        &dotnet::Dotnet,
        &rspec::Rspec,
        &minitest::Minitest,
        &phpunit::Phpunit,
        &mix::Mix,
        &prove::Prove,
        &just::Just,
        &make::Make,
    ]
}

/// Returns the runner that a command starts.
#[must_use]
pub fn runner_of(command: &[String]) -> Option<&'static dyn Runner> {
    let call = Call::of(command)?;
    runners().iter().find(|runner| runner.runs(&call)).copied()
}

/// Whether a tree has a gate for the tests of this language.
pub(crate) fn has_suite(view: &TreeView, suite: &str) -> bool {
    runners()
        .iter()
        .any(|runner| runner.suite() == suite && runner.detect(view).is_some())
}

/// Returns the gates of the tree at `root`.
///
/// # Errors
///
/// Fails when `root` cannot be listed, or when a manifest is too large to be read.
pub fn detect(root: &Path) -> Result<Vec<DetectedGate>, DetectError> {
    Ok(TreeView::read(root)?.gates())
}

impl TreeView {
    /// Returns the gates of this tree, one for each suite.
    #[must_use]
    pub fn gates(&self) -> Vec<DetectedGate> {
        let gate = |runner: &dyn Runner, found: Option<(Vec<String>, String)>| {
            found.map(|(command, why)| DetectedGate {
                id: runner.id().to_owned(),
                command,
                why,
            })
        };
        let gates: Vec<DetectedGate> = runners()
            .iter()
            .filter_map(|runner| gate(*runner, runner.detect(self)))
            .collect();
        if gates.is_empty() {
            return runners()
                .iter()
                .find_map(|runner| gate(*runner, runner.detect_alone(self)))
                .into_iter()
                .collect();
        }
        gates
    }
}

impl TestResults {
    /// Parses the results per test of a gate's command; `None` if its runner reported none.
    #[must_use]
    pub fn read(run: &GateRun) -> Option<Self> {
        let told = CommandOutput::of(run);
        let results = match told.runner {
            Some(runner) => runner.results(&told),
            None => format::any_stream(&told),
        };
        results.filter(|results| !results.tests.is_empty())
    }
}

/// Words of ours as a command.
pub(crate) fn command(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests;
