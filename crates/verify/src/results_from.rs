//! Which process decides the results of a gate. Pure.
//!
//! Most runners load the tested code into the process that reports: that code can report what it likes. Some start each test
//! as a process of its own and decide by its exit code in a process without tested code. There one test cannot
//! answer for another, although it can still end itself with success.

use crucible_model::{Code, Finding, Verdict};
use serde::{Deserialize, Serialize};

use crate::gate::{GateId, GateRun};
use crate::runner::runner_of;

/// The process that decides results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultsFrom {
    /// One that runs no tested code; each test is a process of its own.
    RunnerProcess,
    /// One that runs tested code, or one of which nothing is known.
    TestedProcess,
}

/// Whether a gate must take its results from a process without tested code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResultsPolicy {
    /// It need not; the report says where they come from.
    #[default]
    Off,
    /// One gate that counts must.
    Required,
}

impl ResultsPolicy {
    /// Every policy, by its name in settings.
    pub const NAMES: [(&'static str, Self); 2] = [("off", Self::Off), ("required", Self::Required)];

    /// Returns whether this is the default.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Where the results of one gate come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateResultsFrom {
    /// Which gate.
    pub gate: GateId,
    /// The process.
    pub from: ResultsFrom,
}

/// Returns where the results of a gate come from.
#[must_use]
pub fn results_from(run: &GateRun) -> ResultsFrom {
    match runner_of(&run.command) {
        Some(runner) if runner.decides_outside() => ResultsFrom::RunnerProcess,
        Some(_) | None => ResultsFrom::TestedProcess,
    }
}

/// Refuses a change if none of these gates, which count, takes its results from a process without tested code.
#[must_use]
pub fn judge_results_from<'r>(
    mut runs: impl Iterator<Item = &'r GateRun>,
    policy: ResultsPolicy,
) -> Verdict {
    let mut verdict = Verdict::default();
    let is_outside = |run: &GateRun| results_from(run) == ResultsFrom::RunnerProcess;
    if policy == ResultsPolicy::Required && !runs.any(is_outside) {
        verdict.push(Finding::error(
            Code::new("verify-results-not-outside"),
            "gates",
            "the results of every gate come from a process that runs tested code, and `[run] results_outside` requires another; use `cargo nextest run` or `ctest`",
        ));
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::GateEnd;
    use crate::judge::tests::run_of;

    fn run(command: &str) -> GateRun {
        run_of(command, GateEnd::Exited(0), "", "")
    }

    #[test]
    fn process_per_test_runner_decides_outside_tested_code() {
        for command in [
            "cargo nextest run",
            "cargo nextest r --all",
            "ctest --test-dir build",
        ] {
            assert_eq!(results_from(&run(command)), ResultsFrom::RunnerProcess);
        }
        for command in [
            "cargo test",
            "pytest",
            "python3 -m unittest",
            "node --test",
            "go test ./...",
            "npm test",
            "sh check.sh",
            "make test",
        ] {
            assert_eq!(
                results_from(&run(command)),
                ResultsFrom::TestedProcess,
                "{command}"
            );
        }
    }

    #[test]
    fn policy_requires_one_gate_outside() {
        let runs = |commands: &[&str]| -> Vec<GateRun> {
            commands.iter().map(|command| run(command)).collect()
        };
        let passes =
            |commands: &[&str], policy| judge_results_from(runs(commands).iter(), policy).passes();
        assert!(passes(&["pytest"], ResultsPolicy::Off));
        assert!(!passes(&["pytest", "sh check.sh"], ResultsPolicy::Required));
        assert!(!passes(&[], ResultsPolicy::Required));
        assert!(passes(
            &["pytest", "cargo nextest run"],
            ResultsPolicy::Required
        ));
    }
}
