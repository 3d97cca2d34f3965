//! Detects a gate that could not run: a tool, a package or a toolchain is missing, or there was no test.
//!
//! Such a gate proves nothing about a change, so it neither passes nor fails. Invariants: once a test
//! finished, the gate ran. Repository code that does not compile, and an import of a single test module, are
//! failures of the repository.

use super::{CommandOutput, NotRunReason, Runner, runner_of, runner_of_run, runners};
use crate::gate::{GateEnd, GateRun, NotStarted};
use crate::results::{TestResults, TestStatus};

/// The remedy for a gate without a test.
const NO_TESTS: &str =
    "name the command that runs the tests: `crucible run start --test \"COMMAND\"`";

/// Returns why a gate's command could not run; `None` if it ran, passed or not, or if its end is ambiguous.
#[must_use]
pub fn could_not_run(run: &GateRun) -> Option<NotRunReason> {
    match &run.end {
        GateEnd::NotStarted { why, message } => Some(NotRunReason {
            cause: message.clone(),
            remedy: match (why, runner_of_run(run)) {
                (NotStarted::Sandbox, _) => "run `crucible sandbox status`".to_owned(),
                (NotStarted::ToolMissing, Some(runner)) => runner.tool().install.to_owned(),
                (NotStarted::ToolMissing, None) => {
                    format!(
                        "install {:?}",
                        run.command.first().map_or("", String::as_str)
                    )
                }
                (NotStarted::Setup, _) => {
                    format!("correct it, then try `crucible gates --run {}`", run.id)
                }
                (NotStarted::EmptyCommand, _) => NO_TESTS.to_owned(),
            },
        }),
        GateEnd::Exited(code) => {
            let output = CommandOutput::from_run(run);
            let nothing = || nothing_ran(&output).then(|| no_tests(run));
            if *code == 0 {
                nothing()
            } else {
                obstacle(&output).or_else(nothing)
            }
        }
        GateEnd::Signalled(_)
        | GateEnd::TimedOut { .. }
        | GateEnd::OutputLimit
        | GateEnd::DiskLimit { .. } => None,
    }
}

/// Whether a command that ended well ran no test at all.
pub(crate) fn no_tests_ran(run: &GateRun) -> bool {
    run.end == GateEnd::Exited(0) && nothing_ran(&CommandOutput::from_run(run))
}

fn no_tests(run: &GateRun) -> NotRunReason {
    NotRunReason {
        cause: format!("`{}` ran no test", run.command_line()),
        remedy: NO_TESTS.to_owned(),
    }
}

/// Returns the runners that may have printed the output: the one that reported, the one that was started, and every
/// runner if none was started or that one calls others.
fn candidates<'t>(output: &'t CommandOutput<'_>) -> impl Iterator<Item = &'static dyn Runner> + 't {
    let started = runner_of(&output.run.command);
    let is_open = started.is_none_or(|runner| runner.calls_others());
    let known = runner_of_run(output.run).into_iter().chain(started);
    known.chain(runners().iter().copied().filter(move |_| is_open))
}

fn nothing_ran(output: &CommandOutput<'_>) -> bool {
    let runners = &output.tally().runners;
    if runners
        .values()
        .any(|counts| counts.ran() > 0 || counts.skipped > 0)
    {
        return false;
    }
    let has_sign = |sign: &str| {
        output
            .lines()
            .any(|line| line.trim_start_matches([' ', '=', '\t']).starts_with(sign))
    };
    if candidates(output).any(|runner| runner.nothing_ran().iter().any(|sign| has_sign(sign))) {
        return true;
    }
    // A program that is not a runner may print a runner's counts, for example a build that tests one of its
    // tools.
    let is_known = runner_of_run(output.run).is_some();
    let mut kinds = candidates(output)
        .filter(|_| is_known)
        .filter_map(|runner| runner.counts());
    runners.values().all(|counts| counts.unfinished == 0)
        && kinds.any(|kind| runners.contains_key(&kind))
}

/// Returns what a gate's command lacks and no change of a source file can add; `None` if it passed or only
/// had no test.
pub(crate) fn missing_requirement(run: &GateRun) -> Option<NotRunReason> {
    matches!(run.end, GateEnd::Exited(code) if code != 0)
        .then(|| obstacle(&CommandOutput::from_run(run)))
        .flatten()
}

fn obstacle(output: &CommandOutput<'_>) -> Option<NotRunReason> {
    let counts = || output.tally().runners.values();
    let passed = |results: TestResults| results.with_status(TestStatus::Passed).next().is_some();
    if counts().any(|counts| counts.passed > 0) || TestResults::read(output.run).is_some_and(passed)
    {
        return None;
    }
    let signs = |runner: &dyn Runner| {
        let match_sign = |(sign, remedy): &(&str, &str)| {
            Some(NotRunReason::quoting(output.line_with(sign)?, *remedy))
        };
        runner
            .signs()
            .iter()
            .filter(|_| !output.has_finished_test())
            .find_map(match_sign)
    };
    candidates(output)
        .find_map(|runner| runner.obstacle(output).or_else(|| signs(runner)))
        .or_else(|| super::python::missing_module_of_command(output))
}
