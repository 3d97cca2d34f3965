//! Test runners: all knowledge about programs that run tests.
//!
//! A [`Runner`] describes one such program: how to detect it in a repository, its command, how to read its
//! results per test, which output means that it could not run, and the files that configure it.
//! Each runner is one file that implements the trait of `spec.rs`, and [`runners`] lists them. To add one, write
//! the file and add one line to that list.
//! Nothing here starts a process: [`detect`] looks at names and manifests, `prepare` changes the words of a
//! command before it runs, and [`TestResults::read`] and [`could_not_run`] read the output of a gate.
//!
//! Invariants: parsing takes linear time, is bounded by the captured output, and cannot fail. Names
//! of tests contain no directory of this machine, no duration and no address, so two runs of the same tests
//! have the same names.

mod ava;
mod call;
mod cargo;
mod chain;
mod command_output;
mod compiling;
mod could_not_run;
mod ctest;
mod deno;
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
pub use obstacle::NotRunReason;
pub use reporting::{ReportContext, ReportPlace, Reporting};
pub use spec::{Runner, RunnerFiles, Tool};
pub use tree_view::{DetectError, DetectedGate, TreeView};

pub(crate) use could_not_run::{missing_requirement, no_tests_ran};
pub(crate) use prepare::prepare;
pub(crate) use spec::command;

use spec::find_runner;

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
        &deno::Deno,
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
    find_runner(runners(), &Call::parse(command)?)
}

/// Returns the runner with this id, which may be that of script steps.
fn runner_by_id(id: &str) -> Option<&'static dyn Runner> {
    let script_steps: &'static dyn Runner = &chain::ScriptSteps;
    let mut known = runners().iter().copied().chain([script_steps]);
    known.find(|runner| runner.id() == id)
}

/// Returns the runner that reported, or else the one that the command starts.
fn runner_of_run(run: &GateRun) -> Option<&'static dyn Runner> {
    let named = run
        .report
        .as_ref()
        .and_then(|report| runner_by_id(&report.runner));
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
    /// Returns whether a package manager ran a script and no test runner reported results: what the script runs
    /// is unknown.
    pub(crate) fn is_unknown_script(run: &GateRun) -> bool {
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
        let output = CommandOutput::from_run(run);
        let results = match runner_of_run(run) {
            Some(runner) => runner.results(&output),
            None => format::any_stream(&output),
        };
        results.filter(|results| !results.tests.is_empty())
    }
}

#[cfg(test)]
mod tests;
