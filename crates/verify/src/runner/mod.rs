//! Test runners: all knowledge about programs that run tests.
//!
//! A [`Runner`] says how it is detected in a repository, which command runs it, how it reports test by test
//! and how that is read, when its output means that it could not run, and which files of a repository steer
//! it. Each runner is one file that implements the trait of `spec.rs`; [`runners`] lists them all. Adding one is
//! one file and one line there.
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
mod obstacle;
mod phpunit;
mod prepare;
mod prove;
mod pytest;
mod python;
mod recipe;
mod reporting;
mod rspec;
mod scripts;
mod spec;
mod steps;
mod tox;
mod tree_view;
mod unittest;
mod vitest;

use std::path::Path;

use crate::gate::GateRun;
use crate::results::TestResults;

pub use call::Call;
pub use command_output::CommandOutput;
pub use compiling::{cannot_compile, concerns_compiling};
pub use could_not_run::could_not_run;
pub use obstacle::CouldNotRun;
pub use reporting::{ReportContext, ReportPlace, Reporting};
pub use spec::{Runner, RunnerFiles, Tool};
pub use tree_view::{DetectError, DetectedGate, TreeView};

pub(crate) use could_not_run::{missing_requirement, no_tests_ran};
pub(crate) use prepare::prepare;
pub(crate) use spec::command;

use spec::first_started;

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

/// Returns how to install the program of a gate's command; `None` for a program that no runner knows.
#[must_use]
pub fn install_hint(command: &[String]) -> Option<&'static str> {
    let tool = runner_of(command)?.tool();
    let program = command.first()?.rsplit('/').next()?;
    let is_own =
        program == tool.program || program.starts_with("python") && tool.program == "python3";
    is_own.then_some(tool.install)
}

/// Returns the runner that a command starts.
#[must_use]
pub(crate) fn runner_of(command: &[String]) -> Option<&'static dyn Runner> {
    first_started(runners(), &Call::of(command)?)
}

/// Returns the runner of a gate's name.
fn runner_named(id: &str) -> Option<&'static dyn Runner> {
    let of_steps: &'static dyn Runner = &chain::ScriptSteps;
    let mut known = runners().iter().copied().chain([of_steps]);
    known.find(|runner| runner.id() == id)
}

/// Returns the runner that reported, or else the one that the command starts.
fn runner_of_run(run: &GateRun) -> Option<&'static dyn Runner> {
    let named = run
        .report
        .as_ref()
        .and_then(|report| runner_named(&report.runner));
    named.or_else(|| runner_of(&run.command))
}

/// Returns the gates of the tree at `root`.
///
/// # Errors
///
/// Fails when `root` cannot be listed, or when a manifest is too large to be read.
pub fn detect(root: &Path) -> Result<Vec<DetectedGate>, DetectError> {
    Ok(TreeView::read(root, runners())?.gates())
}

impl TestResults {
    /// Returns whether a package manager ran a script of which neither the runner nor the steps report: what else it runs
    /// is unknown.
    pub(crate) fn is_of_unknown_script(run: &GateRun) -> bool {
        let reported_by = run.report.as_ref().map(|report| report.runner.as_str());
        runner_of(&run.command).is_some_and(|runner| {
            runner.suite() == "javascript"
                && runner.calls_others()
                && reported_by.is_none_or(|id| id == runner.id())
        })
    }

    /// Parses the results per test of a gate's command; `None` if its runner reported none.
    #[must_use]
    pub fn read(run: &GateRun) -> Option<Self> {
        let output = CommandOutput::of(run);
        let results = match runner_of_run(run) {
            Some(runner) => runner.results(&output),
            None => format::any_stream(&output),
        };
        results.filter(|results| !results.tests.is_empty())
    }
}

#[cfg(test)]
mod tests;
