//! The canary run: the gates on deliberately broken sources, before a model is called.
//!
//! A gate verifies a change only if it uses the changed files. Each gate of the attempts therefore runs once
//! on a copy in which every source file has a line that no programming language accepts. A gate with the same
//! result tests something else, such as an installed copy of the package. The line is at the top, outside any
//! comment or string. If the repository has no source file in a known language, its text files are replaced
//! by that line.
//!
//! A gate of a Python runner that notices nothing is run once more with `PYTHONPATH` leading to the copy. If
//! it then ends at least as well as before, and notices, it runs so from then on. A gate whose project has a build command
//! is run once more after it.
//!
//! What always holds: tests, configuration and the files of gates stay as they are (`broken`); only a private
//! copy is written to; a gate whose run can tell nothing is not run.

mod broken;

use std::path::Path;
use std::time::Duration;

use crucible_model::{RepoPath, counted};
use crucible_repo::{Git, TrackedFile};
use crucible_verify::{
    CanaryOutcome, GateBefore, GateLevel, GateRun, GateSpec, TestRunner, TestTally,
    can_canary_differ, could_not_run, judge_canary,
};
use serde::{Deserialize, Serialize};

use crate::analysis::GateResult;
use crate::error::RunError;
use crate::gate_workspace::{PYTHON_PATH, PythonPaths, is_mounted};
use crate::journal::RunObserver;
use crate::run_context::RunContext;
use crate::trial::{self, TrialInput, TrialResult, TrialSetup};
pub(crate) use broken::{BrokenSources, broken_source};

/// Additional time for a gate on broken sources, beyond twice its time.
const GRACE: Duration = Duration::from_secs(10);

/// What the gates showed on broken sources; a part of `artifacts/analysis.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CanaryReport {
    /// Which files were broken.
    pub broken: BrokenKind,
    /// How many files.
    pub files: u64,
    /// What each gate showed.
    pub gates: Vec<CanaryGate>,
}

/// Which files are broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BrokenKind {
    /// Source files in a known language.
    Sources,
    /// Text files, if there is no source file.
    Texts,
    /// Source files that gates run by name, if there are no others and broken texts made no difference. A
    /// gate that notices counts only for a change of such a file.
    Gates,
    /// None: everything is a test, configuration or a file of a gate.
    None,
}

/// What one gate showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CanaryGate {
    /// Which gate.
    pub id: String,
    /// What it showed.
    pub outcome: CanaryOutcome,
}

impl CanaryReport {
    /// What this gate showed.
    pub(crate) fn outcome(&self, gate: &str) -> CanaryOutcome {
        self.gates
            .iter()
            .find(|found| found.id == gate)
            .map(|found| found.outcome)
            .unwrap_or_default()
    }
}

/// What broken sources are tried on.
#[derive(Clone, Copy)]
pub(crate) struct CanaryContext<'b> {
    pub(crate) git: &'b Git,
    pub(crate) base: TrialSetup<'b>,
    /// Which set of gates was run before.
    pub(crate) level: GateLevel,
    pub(crate) room: &'b Path,
    pub(crate) gate_files: &'b [RepoPath],
}

/// What the runs on broken sources came to.
#[derive(Default)]
pub(crate) struct CanaryResult {
    /// Nothing where no gate was there.
    pub(crate) canary: Option<CanaryReport>,
    /// Which gates look in the copy for Python packages from now on.
    pub(crate) python_paths: PythonPaths,
    /// New results of these gates before any change; they replace the first ones.
    pub(crate) again: Vec<GateResult>,
    /// Gates that build first from now on.
    pub(crate) building: Vec<GateSpec>,
}

impl CanaryResult {
    /// Returns a gate's baseline with its canary result.
    pub(crate) fn with_canary(&self, before: GateBefore) -> GateBefore {
        let canary = self
            .canary
            .as_ref()
            .map(|canary| canary.outcome(&before.id))
            .unwrap_or_default();
        GateBefore { canary, ..before }
    }

    /// Reports which gates do not count; returns the first of them if none counts.
    pub(crate) fn report_uncounted<'t>(
        &self,
        before: &'t TrialResult,
        observer: &mut dyn RunObserver,
    ) -> Option<&'t GateRun> {
        let outcome = |run: &GateRun| {
            self.canary
                .as_ref()
                .map(|canary| canary.outcome(run.id.as_str()))
                .unwrap_or_default()
        };
        for run in before.gate_runs() {
            match outcome(run) {
                CanaryOutcome::Unnoticed => observer.note(&format!(
                    "  note: gate {} has the same result on deliberately broken sources; it does not count for a change",
                    run.id
                )),
                CanaryOutcome::Off => observer.note(&format!(
                    "  warning: gate {} counts without a canary run, because `canary = false` is set",
                    run.id
                )),
                CanaryOutcome::Noticed | CanaryOutcome::Unknown => {}
            }
        }
        let counts = |run: &GateRun| outcome(run).counts() && !before.is_set_aside(&run.id);
        let any_counts = before.gate_runs().any(counts);
        before
            .gate_runs()
            .find(|run| !any_counts && !outcome(run).counts())
    }
}

/// Returns the error if no gate counts.
pub(crate) fn unaffected(run: &GateRun) -> RunError {
    RunError::GateUnaffected {
        gate: run.id.to_string(),
        command: run.command_line(),
        remedy: remedy(run),
    }
}

/// Runs the gates of `before` on broken sources, and returns which of them count for a change.
///
/// # Errors
///
/// Fails when the copy cannot be made.
pub(crate) async fn run_canary(
    world: &RunContext<'_>,
    on: CanaryContext<'_>,
    before: &TrialResult,
    observer: &mut dyn RunObserver,
) -> Result<CanaryResult, RunError> {
    let tracked = on.git.tracked_files().await?;
    let mut broken = BrokenSources::choose(&tracked, on.gate_files);
    if broken.kind == BrokenKind::None {
        observer.note(
            "  note: all files are tests, configuration or gate files, so the canary run is not possible",
        );
    }
    let mut gates = outcomes(world, on, &broken, before, observer).await?;
    let has_noticed = |gates: &[CanaryGate]| {
        gates
            .iter()
            .any(|gate| gate.outcome == CanaryOutcome::Noticed)
    };
    let own = BrokenSources::of_gates(&tracked, on.gate_files)
        .filter(|_| broken.kind == BrokenKind::Texts);
    if let Some(own) = own.filter(|_| !gates.iter().any(|gate| gate.outcome.counts())) {
        let of_own = outcomes(world, on, &own, before, observer).await?;
        if has_noticed(&of_own) {
            (broken, gates) = (own, of_own);
        }
    }
    let mut proof = CanaryResult::default();
    if is_mounted(world, on.base.sandbox) {
        look_in_copy(
            world,
            on,
            &tracked,
            (&broken, &mut gates),
            before,
            &mut proof,
            observer,
        )
        .await?;
    }
    build_first(
        world,
        on,
        (&broken, &mut gates),
        before,
        &mut proof,
        observer,
    )
    .await?;
    let is_set_aside = |gate: &CanaryGate| {
        before
            .gate_runs()
            .any(|run| run.id.as_str() == gate.id && before.is_set_aside(&run.id))
    };
    for gate in gates
        .iter()
        .filter(|gate| gate.outcome == CanaryOutcome::Unknown)
    {
        if broken.kind != BrokenKind::None && !is_set_aside(gate) {
            observer.note(&format!(
                "  note: no test of gate {} passes before any change, so a canary run proves nothing; the gate counts",
                gate.id
            ));
        }
    }
    proof.canary = Some(CanaryReport {
        broken: broken.kind,
        files: broken.files.len() as u64,
        gates,
    });
    Ok(proof)
}

/// What each gate of `before` shows on these broken files, sorted by name.
async fn outcomes(
    world: &RunContext<'_>,
    on: CanaryContext<'_>,
    broken: &BrokenSources,
    before: &TrialResult,
    observer: &mut dyn RunObserver,
) -> Result<Vec<CanaryGate>, RunError> {
    let run_of = |gate: &GateSpec| before.gate_runs().find(|run| run.id == gate.id);
    let mut shown: Vec<CanaryGate> = before
        .gate_runs()
        .map(|run| {
            let is_off = on
                .base
                .gates
                .iter()
                .any(|gate| gate.id == run.id && !gate.canary.is_on());
            let outcome = if is_off {
                CanaryOutcome::Off
            } else {
                CanaryOutcome::Unknown
            };
            CanaryGate {
                id: run.id.to_string(),
                outcome,
            }
        })
        .collect();
    shown.sort_by(|a, b| a.id.cmp(&b.id));
    let mut gates = on.base.gates.to_vec();
    gates.retain_mut(|gate| {
        let telling = run_of(gate).filter(|run| gate.canary.is_on() && can_canary_differ(run));
        let limit = telling.map(|run| run.duration.saturating_mul(2).saturating_add(GRACE));
        gate.timeout = gate.timeout.min(limit.unwrap_or_default());
        telling.is_some()
    });
    if gates.is_empty() || broken.kind == BrokenKind::None {
        return Ok(shown);
    }
    let files = counted(broken.files.len() as u64, "file");
    observer.working(
        "verifier",
        &format!("canary run: running the gates with {files} deliberately broken"),
    );
    let base = TrialSetup {
        gates: &gates,
        ..on.base
    };
    let trial = trial::run(
        world,
        on.git,
        base,
        on.level,
        on.room,
        TrialInput::Broken(broken),
        observer,
    )
    .await?;
    for after in trial.gate_runs() {
        let known = shown.iter_mut().find(|gate| gate.id == after.id.as_str());
        if let (Some(gate), Some(run)) = (known, before.gate_runs().find(|run| run.id == after.id))
        {
            gate.outcome = judge_canary(run, after);
        }
    }
    Ok(shown)
}

/// Runs the Python gates that noticed nothing again, with the copy's directories before installed packages.
async fn look_in_copy(
    world: &RunContext<'_>,
    on: CanaryContext<'_>,
    tracked: &[TrackedFile],
    (broken, shown): (&BrokenSources, &mut [CanaryGate]),
    before: &TrialResult,
    proof: &mut CanaryResult,
    observer: &mut dyn RunObserver,
) -> Result<(), RunError> {
    let is_unnoticed = |gate: &GateSpec| {
        let id = gate.id.as_str();
        shown.iter().any(|canary_gate| canary_gate.id == id && canary_gate.outcome == CanaryOutcome::Unnoticed)
            && before.gate_runs().any(|run| run.id == gate.id && is_python(run))
            // What the user set counts.
            && !gate.env.contains_key(PYTHON_PATH)
    };
    let gates: Vec<GateSpec> = on
        .base
        .gates
        .iter()
        .filter(|gate| is_unnoticed(gate))
        .cloned()
        .collect();
    if gates.is_empty() || broken.kind != BrokenKind::Sources {
        return Ok(());
    }
    let paths: PythonPaths = gates
        .iter()
        .map(|gate| (gate.id.to_string(), places(gate, tracked)))
        .collect();
    let on = CanaryContext {
        base: TrialSetup {
            gates: &gates,
            python_paths: &paths,
            ..on.base
        },
        ..on
    };
    observer.working(
        "verifier",
        "running Python gates that test an installed copy again, with PYTHONPATH set",
    );
    let rerun = trial::run(
        world,
        on.git,
        on.base,
        on.level,
        on.room,
        TrialInput::Base,
        observer,
    )
    .await?;
    for gate in outcomes(world, on, broken, &rerun, observer).await? {
        let run_in = |trial: &'_ TrialResult| {
            trial
                .gate_runs()
                .find(|run| run.id.as_str() == gate.id)
                .cloned()
        };
        let (Some(first), Some(second)) = (run_in(before), run_in(&rerun)) else {
            continue;
        };
        // As on broken sources: its result must stay the same and no test may be lost.
        let is_as_good = judge_canary(&first, &second) == CanaryOutcome::Unnoticed;
        let Some(path) = paths
            .get(&gate.id)
            .filter(|_| is_as_good && gate.outcome == CanaryOutcome::Noticed)
        else {
            continue;
        };
        shown
            .iter_mut()
            .filter(|shown| shown.id == gate.id)
            .for_each(|shown| shown.outcome = gate.outcome);
        observer.note(&format!(
            "  note: gate {} tested an installed copy of the package; it now runs with PYTHONPATH={}",
            gate.id,
            path.join(":")
        ));
        proof.again.extend(
            rerun
                .results
                .iter()
                .filter(|result| result.id == gate.id)
                .cloned(),
        );
        proof.python_paths.insert(gate.id, path.clone());
    }
    Ok(())
}

/// Runs the gates that noticed nothing again, each after a command that may build what its tests run.
async fn build_first(
    world: &RunContext<'_>,
    on: CanaryContext<'_>,
    (broken, shown): (&BrokenSources, &mut [CanaryGate]),
    before: &TrialResult,
    proof: &mut CanaryResult,
    observer: &mut dyn RunObserver,
) -> Result<(), RunError> {
    if broken.kind != BrokenKind::Sources {
        return Ok(());
    }
    for gate in on.base.gates {
        let unnoticed = shown.iter_mut().find(|canary_gate| {
            canary_gate.id == gate.id.as_str() && canary_gate.outcome == CanaryOutcome::Unnoticed
        });
        let Some(unnoticed) = unnoticed else {
            continue;
        };
        for build in &gate.builds {
            let tried = GateSpec {
                setup: gate.setup.iter().chain([build]).cloned().collect(),
                builds: Vec::new(),
                ..gate.clone()
            };
            let on = CanaryContext {
                base: TrialSetup {
                    gates: std::slice::from_ref(&tried),
                    ..on.base
                },
                ..on
            };
            observer.working(
                "verifier",
                &format!("running gate {} again after `{}`", gate.id, build.join(" ")),
            );
            let rerun = trial::run(
                world,
                on.git,
                on.base,
                on.level,
                on.room,
                TrialInput::Base,
                observer,
            )
            .await?;
            let ran = |trial: &TrialResult| {
                let run = trial.gate_runs().find(|run| run.id == gate.id)?;
                let tests = TestTally::read(run)
                    .runners
                    .values()
                    .map(|counts| counts.ran())
                    .sum();
                could_not_run(run).is_none().then_some::<u64>(tests)
            };
            // It must not lose tests.
            if ran(&rerun).is_none_or(|tests| Some(tests) < ran(before)) {
                continue;
            }
            let outcomes = outcomes(world, on, broken, &rerun, observer).await?;
            let has_noticed = outcomes
                .iter()
                .any(|shown| shown.outcome == CanaryOutcome::Noticed);
            if has_noticed {
                unnoticed.outcome = CanaryOutcome::Noticed;
                observer.note(&format!(
                    "  note: gate {} tested what an earlier build left; it now runs `{}` first",
                    gate.id,
                    build.join(" ")
                ));
                proof.again.extend(rerun.results);
                proof.building.push(tried);
                break;
            }
        }
    }
    Ok(())
}

/// Returns the possible directories of a gate's packages, from the top.
fn places(gate: &GateSpec, tracked: &[TrackedFile]) -> Vec<String> {
    let own = gate
        .cwd
        .as_ref()
        .map(|cwd| (format!("{cwd}/src"), cwd.to_string()));
    let places = own
        .into_iter()
        .flat_map(|(src, top)| [src, top])
        .chain(["src".into(), ".".into()]);
    let holds =
        |place: &String| place == "." || tracked.iter().any(|file| file.path.starts_with(place));
    places.filter(holds).collect()
}

/// Returns what makes a gate test the sources.
fn remedy(run: &GateRun) -> String {
    let own = format!(
        "or set a command that uses the sources: `[gates.{}] command = [...]` in .crucible/config.toml",
        run.id
    );
    if is_python(run) {
        format!("install the package in place with `pip install -e .`, {own}")
    } else {
        format!(
            "build the package in the gate with `[gates.{}] setup = [...]`, {own}",
            run.id
        )
    }
}

/// Whether Python runs its tests.
fn is_python(run: &GateRun) -> bool {
    let runners = TestTally::read(run).runners;
    run.command
        .iter()
        .any(|word| word.contains("python") || word.contains("pytest"))
        || [TestRunner::Pytest, TestRunner::Unittest]
            .iter()
            .any(|runner| runners.contains_key(runner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedy_fits_the_gate() {
        let run = |command: &str| GateRun {
            id: "tests".parse().unwrap(),
            command: command.split(' ').map(str::to_owned).collect(),
            end: crucible_verify::GateEnd::Exited(0),
            duration: Duration::ZERO,
            stdout: crucible_sandbox::Captured::default(),
            stderr: crucible_sandbox::Captured::default(),
            report: None,
            isolation: None,
            results: None,
        };
        assert!(remedy(&run("python3 -m pytest")).contains("pip install -e ."));
        assert!(remedy(&run("make test")).contains("[gates.tests] setup"));
    }
}
