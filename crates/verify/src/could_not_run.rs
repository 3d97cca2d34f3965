//! Tells a gate that could not run from one whose tests fail.
//!
//! A missing tool, a package that cannot be imported and a run without a test say nothing about the code. Before any change such a gate
//! ends the run, with its cause and with what helps. Pure.
//!
//! What always holds: a gate that passed, or one test of which passed, could run.

use crate::classify::missing_installation;
use crate::gate::{GateEnd, GateRun, NotStarted};
use crate::judge::no_tests_ran;
use crate::tally::TestTally;

/// Why a gate could not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CouldNotRun {
    /// The telling line of its output, or why it did not start.
    pub cause: String,
    /// One step that helps, without a full stop.
    pub remedy: String,
}

impl CouldNotRun {
    pub(crate) fn new(cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { cause: cause.into(), remedy: remedy.into() }
    }
}

/// Returns why a gate could not run; nothing where it ran.
#[must_use]
pub fn could_not_run(run: &GateRun) -> Option<CouldNotRun> {
    match &run.end {
        GateEnd::NotStarted { why: NotStarted::Sandbox, message } => {
            return Some(CouldNotRun::new(message, "run `crucible sandbox status` to see what is missing"));
        }
        GateEnd::NotStarted { message, .. } => {
            return Some(CouldNotRun::new(message, "install the program, or put it on PATH"));
        }
        GateEnd::Exited(0) => return None,
        _ => {}
    }
    if TestTally::read(run).runners.values().any(|counts| counts.passed > 0) {
        return None;
    }
    let (stdout, stderr) = (run.stdout.text(), run.stderr.text());
    missing_installation(run).or_else(|| {
        let module = stdout.lines().chain(stderr.lines()).find_map(missing_module);
        let named = |module: &str| {
            let cause = format!("ModuleNotFoundError: No module named '{module}'");
            CouldNotRun::new(cause, format!("install {module} for the Python that the gate starts"))
        };
        let untested = || CouldNotRun::new("no test ran", "check the command's arguments and its directory");
        module.map(named).or_else(|| no_tests_ran(&run.command, &stdout, &stderr).then(untested))
    })
}

/// The package that Python cannot import. A module inside of a package may be what the change is to bring.
fn missing_module(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("ModuleNotFoundError: No module named '")?;
    let (module, _) = rest.split_once('\'')?;
    (!module.is_empty() && !module.contains('.')).then_some(module)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::tests::run_of;

    fn cause(command: &str, code: i32, stdout: &str, stderr: &str) -> Option<String> {
        could_not_run(&run_of(command, GateEnd::Exited(code), stdout, stderr)).map(|found| found.cause)
    }

    #[test]
    fn gate_that_could_not_run_tells_its_cause() {
        let python = "E   ModuleNotFoundError: No module named 'pkg'\n1 error in 0.10s\n";
        for (command, code, stdout, stderr, expected) in [
            (
                "cargo test",
                1,
                "",
                "error: rustup could not choose a version of cargo to run\n",
                "rustup could not",
            ),
            ("pytest", 2, python, "", "No module named 'pkg'"),
            ("pytest", 5, "no tests ran in 0.01s\n", "", "no test ran"),
            ("npm test", 127, "", "sh: 1: jest: not found", "is missing"),
        ] {
            let found = cause(command, code, stdout, stderr).unwrap();
            assert!(found.contains(expected), "{command}: {found}");
        }
        let end = GateEnd::NotStarted { why: NotStarted::ToolMissing, message: "not found".into() };
        assert_eq!(could_not_run(&run_of("x", end, "", "")).unwrap().cause, "not found");
    }

    #[test]
    fn gate_whose_tests_fail_could_run() {
        let beside = "E   ModuleNotFoundError: No module named 'pkg'\n1 failed, 2 passed in 0.10s\n";
        let inside = "E   ModuleNotFoundError: No module named 'pkg.new'\n1 error in 0.10s\n";
        for (command, code, stdout) in [
            ("pytest", 1, beside),
            ("pytest", 2, inside),
            ("pytest", 0, "no tests ran in 0.01s\n"),
            ("sh check.sh", 1, "total is wrong"),
        ] {
            assert_eq!(cause(command, code, stdout, ""), None, "{command} {code}");
        }
    }
}
