//! Runs gates on their own, on a copy of the current work tree, without a run or a model.
//!
//! Invariants: the repository does not change, nothing is recorded, and a gate that could not run is
//! distinguished from one that failed.

use std::time::Duration;

use crucible_host::WorkDir;
use crucible_host::fs::create_dir_all;
use crucible_model::{Code, Finding, Verdict, counted};
use crucible_repo::Git;
use crucible_sandbox::Strength;
use crucible_verify::{
    GateEnd, GateId, GateLevel, GateOutcome, GateRun, GateSpec, NotRunReason, TestStatus,
    TestTally, could_not_run, judge_run,
};

use crate::error::RunError;
use crate::gate_workspace::{SurveyCache, remedy_for_venv};
use crate::journal::RunObserver;
use crate::run_context::RunContext;
use crate::trial::{self, TrialSetup};

/// What the directories of such trials begin with, below [`RunContext::tmp`].
const PREFIX: &str = "gates-";
/// The most failed tests listed for one gate.
const MAX_FAILED: usize = 200;

/// What came of one gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateCheck {
    /// Which gate.
    pub id: GateId,
    /// Its command; for a detected gate that could not run, the one that took its place.
    pub command: Vec<String>,
    /// How it fares.
    pub state: GateState,
    /// How long it took.
    pub duration: Duration,
}

/// How a gate fares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateState {
    /// It passes.
    Passes,
    /// It ran, and it fails.
    Fails {
        /// How it ended.
        end: String,
        /// The failed tests if their runner names them; at most 200.
        tests: Vec<String>,
        /// What tells most in its output.
        excerpt: String,
    },
    /// It could not run, which proves nothing about the code.
    CouldNotRun {
        /// Why.
        cause: String,
        /// A step that helps; empty if the cause is enough.
        remedy: String,
    },
}

/// Runs these gates on copies of the work tree of `git`, uncommitted changes of tracked files included.
///
/// # Errors
///
/// Fails when the copy cannot be made.
pub async fn check_gates(
    world: &RunContext<'_>,
    git: Git,
    gates: &[GateSpec],
    sandbox: Strength,
    observer: &mut dyn RunObserver,
) -> Result<Vec<GateCheck>, RunError> {
    create_dir_all(&world.tmp)?;
    WorkDir::sweep(&world.tmp, PREFIX);
    let temp_dir = WorkDir::create(&world.tmp, PREFIX, "")?;
    let scratch = temp_dir.path().join("git");
    create_dir_all(&scratch)?;
    let git = git.with_scratch(scratch);
    // All of them run, whatever their level in a run.
    let gates: Vec<GateSpec> = gates
        .iter()
        .map(|gate| GateSpec {
            level: GateLevel::Lite,
            ..gate.clone()
        })
        .collect();
    let surveys = SurveyCache::default();
    let base = TrialSetup::for_work_tree(&git, &gates, sandbox, &surveys);
    let (trial, _) = trial::run_base(world, &git, base, temp_dir.path(), observer).await?;
    let runs = trial.outcomes.iter().filter_map(|outcome| match outcome {
        GateOutcome::Ran(run) => Some(run),
        GateOutcome::Judged { .. } => None,
    });
    let checked = runs.zip(&trial.results).map(|(run, result)| GateCheck {
        id: run.id.clone(),
        command: run.command.clone(),
        state: match state(run, &result.end, &result.excerpt) {
            GateState::CouldNotRun { cause, remedy } => GateState::CouldNotRun {
                cause,
                remedy: remedy_for_venv(world, git.top(), &remedy),
            },
            state => state,
        },
        duration: run.duration,
    });
    Ok(checked.collect())
}

fn state(run: &GateRun, end: &str, excerpt: &str) -> GateState {
    if let Some(NotRunReason { cause, remedy }) = could_not_run(run) {
        return GateState::CouldNotRun { cause, remedy };
    }
    let judged = judge_run(run);
    if judged.passes() {
        return GateState::Passes;
    }
    let failed = TestTally::read(run)
        .runners
        .values()
        .map(|counts| counts.failed)
        .sum::<u64>();
    let end = match &run.end {
        GateEnd::Exited(code) if failed > 0 => {
            format!("exit code {code}, {} failed", counted(failed, "test"))
        }
        GateEnd::Exited(code) => format!("exit code {code}"),
        _ => end.to_owned(),
    };
    GateState::Fails {
        end,
        tests: failed_tests(run),
        excerpt: excerpt.to_owned(),
    }
}

/// Returns the names of failed tests, if the runner reports per test.
fn failed_tests(run: &GateRun) -> Vec<String> {
    let failed = run
        .results
        .iter()
        .flat_map(|results| results.with_status(TestStatus::Failed));
    let names: Vec<&str> = failed.collect();
    // A group fails with one of its tests, and precedes its members in the list.
    let holds = |group: &str, next: Option<&&str>| {
        next.and_then(|next| next.strip_prefix(group))
            .is_some_and(|rest| rest.starts_with(" > "))
    };
    let tests = names
        .iter()
        .enumerate()
        .filter(|(at, name)| !holds(name, names.get(at + 1)));
    tests
        .take(MAX_FAILED)
        .map(|(_, name)| (*name).to_owned())
        .collect()
}

/// Returns a finding for each gate that does not pass.
#[must_use]
pub(crate) fn judge_checks(checks: &[GateCheck]) -> Verdict {
    let finding = |check: &GateCheck| match &check.state {
        GateState::Passes => None,
        GateState::Fails { end, .. } => Some(Finding::error(
            Code::new("verify-gate-failed"),
            check.id.as_str(),
            end.clone(),
        )),
        GateState::CouldNotRun { cause, remedy } => {
            let hint = if remedy.is_empty() {
                cause.clone()
            } else {
                format!("{cause}; {remedy}")
            };
            Some(Finding::error(
                Code::new("verify-gate-could-not-run"),
                check.id.as_str(),
                hint,
            ))
        }
    };
    Verdict::new(checks.iter().filter_map(finding).collect())
}
