//! The verification of a change: its gates beside their baseline, then the checks that the gates test the change.
//!
//! The order is fixed: the gates on the change, second runs of gates with new failures, the gates with the changed code broken
//! on purpose, small mistakes in the changed lines. Each step runs only if the change still passes.

use std::path::Path;

use crucible_model::{ByteLimit, Code, Finding, RepoPath};
use crucible_patch::{EXAMPLE_CHANGED, is_test_path};
use crucible_verify::{
    Baseline, CanaryOutcome, GateBefore, GateId, GateLevel, GateRun, NewSink, TestFilePolicy,
    VerifyReport, judge_run_after,
};

use crate::analysis::{Analysis, GateResult};
use crate::attempt::AttemptOutcome;
use crate::broken_change;
use crate::canary::{BrokenKind, CanaryContext, CanaryResult, run_canary};
use crate::error::RunError;
use crate::gate_workspace::PythonPaths;
use crate::gatekeeper::{Change, Files};
use crate::journal::RunObserver;
use crate::run_context::RunContext;
use crate::second_world;
use crate::strength;
use crate::trial::waiting_tests;
use crate::trial::{TrialContext, TrialInput, TrialResult, TrialSetup, VerifyContext, run};

const PASSED_BEFORE: Code = Code::new("run-gates-passed-before");

/// How much the changed files may hold in the base commit; the patch gate allows less.
const MAX_BASE: ByteLimit = ByteLimit(256 << 20);
/// The directory for copies of the second world, which runs beside the broken-change check.
const SECOND_ROOM: &str = "second";
/// The most sinks listed.
const MAX_SINKS: usize = 50;

/// Tests a change in `scratch_dir` and reports on it, for an attempt and for every later verification. Gates that
/// all passed before the change are noted as a finding.
pub(crate) async fn verify(
    world: &RunContext<'_>,
    by: VerifyContext<'_>,
    scratch_dir: &Path,
    change: &Change,
    outcome: &mut AttemptOutcome,
    observer: &mut dyn RunObserver,
) -> Result<(TrialResult, VerifyReport), RunError> {
    let full = before_full(world, by, scratch_dir, observer).await?;
    let mut gates = by.analysis.before();
    gates.extend(
        full.baseline
            .iter()
            .filter_map(GateResult::before)
            .map(|gate| full.proof.with_canary(gate)),
    );
    only_of_its_own_files(by.analysis, change, &mut gates);
    note_touched(by, change, &mut gates);
    let python_paths = full
        .proof
        .python_paths
        .iter()
        .chain(&by.analysis.python_paths);
    let python_paths: PythonPaths = python_paths
        .map(|(gate, path)| (gate.clone(), path.clone()))
        .collect();
    let base = TrialSetup {
        python_paths: &python_paths,
        ..TrialSetup::new(by.record, &by.analysis.gates, by.surveys)
    };
    let edits_tests = by.plan.names.iter().any(is_test_path);
    let tests = if edits_tests {
        TestFilePolicy::Editable
    } else {
        TestFilePolicy::Fixed
    };
    let names = by.plan.names.iter().map(RepoPath::as_str);
    let goal = std::iter::once(by.record.goal.as_str())
        .chain(names)
        .collect::<Vec<_>>()
        .join("\n");
    let changed = change
        .tree
        .changes
        .iter()
        .map(|changed| changed.path.to_string_lossy().into_owned());
    let changed: Vec<String> = changed.collect();
    let edited_examples: Vec<String> = outcome
        .findings
        .iter()
        .filter(|finding| finding.code == EXAMPLE_CHANGED)
        .map(|finding| finding.subject.clone())
        .collect();
    let waiting = waiting_tests(by.git, &by.record.base_commit, &gates).await;
    let waiting_names: Vec<String> = waiting.all.iter().cloned().collect();
    let base_files = base_files(by, change).await?;
    let sinks = new_sinks(change, &base_files);
    let baseline = Baseline {
        gates: &gates,
        tests,
        goal: &goal,
        changed_together: &waiting.commit_sets,
        waiting: &waiting_names,
        changed: &changed,
        edited_examples: &edited_examples,
        reruns: &[],
        broken: None,
        second_world: None,
        results_outside: by.record.settings.results_outside,
        strength: None,
        sinks: &sinks,
        sinks_need_approval: &by.record.settings.sinks_need_approval,
        accepted: &by.plan.accepts,
    };
    let tried = TrialContext {
        change,
        base_files: &base_files,
        baseline,
    };
    let mut trial = run(
        world,
        by.git,
        base,
        by.level,
        scratch_dir,
        TrialInput::Changed(&tried),
        observer,
    )
    .await?;
    trial.before = full.baseline;
    let reruns = rerun_flaky(world, by, base, scratch_dir, &tried, &trial, observer).await?;
    let baseline = Baseline {
        reruns: &reruns,
        ..baseline
    };
    if !reruns.is_empty() {
        trial.judge(Some(&baseline));
        trial.keep_output(&reruns);
    }
    let has_passed = trial.verdict.passes();
    let (broken, second_world) = if has_passed || trial.may_show_progress(&baseline) {
        // One at a time would take twice as long; each has its own copy.
        let elsewhere = scratch_dir.join(SECOND_ROOM);
        let second = second_world::check(world, by, base, &elsewhere, (&tried, &trial));
        let broken = broken_change::check(world, by, base, scratch_dir, &tried, &trial, observer);
        tokio::try_join!(broken, second)?
    } else {
        (None, None)
    };
    if let Some(second_world) = &second_world {
        observer.note(&format!("  {}", second_world::summary_line(second_world)));
    }
    if !has_passed && broken.is_some() {
        // Now it is known whether the added tests test the change.
        trial.judge(Some(&Baseline {
            broken: broken.as_ref(),
            ..baseline
        }));
    }
    let measured = match &broken {
        Some(broken) if has_passed || trial.verdict.passes() => {
            let on = (&tried, &trial, broken);
            strength::measure(world, by, base, scratch_dir, on, observer).await?
        }
        _ => None,
    };
    let baseline = Baseline {
        broken: broken.as_ref(),
        second_world: second_world.as_ref(),
        strength: measured.as_ref(),
        ..baseline
    };
    if broken.is_some() || second_world.is_some() {
        trial.judge(Some(&baseline));
    }
    if by
        .analysis
        .baseline
        .iter()
        .all(|gate| gate.passed || gate.set_aside.is_some())
    {
        let hint = "Every gate also passed before the change, so the gates show that nothing broke, not that the goal is reached.";
        outcome
            .findings
            .push(Finding::warning(PASSED_BEFORE, "the gates", hint));
        observer.note(&format!("  warning: {hint}"));
    }
    let report = trial.report(
        by.record,
        by.analysis.behaviors,
        by.plan,
        outcome,
        baseline,
        by.dir,
    )?;
    Ok((trial, report))
}

/// Returns the changed files as the base commit has them.
pub(crate) async fn base_files(by: VerifyContext<'_>, change: &Change) -> Result<Files, RunError> {
    let paths: Vec<RepoPath> = change.tree.files_checked_out().into_keys().collect();
    let read = by.git.files_at(&by.record.base_commit, &paths, MAX_BASE);
    Ok(read.await?)
}

/// What the changed lines newly reach.
fn new_sinks(change: &Change, base_files: &Files) -> Vec<NewSink> {
    let after = change.tree.files_checked_out();
    let of_file = |(path, bytes): (&RepoPath, &Vec<u8>)| {
        let old = base_files.get(path).map(Vec::as_slice);
        crucible_patch::new_sinks(path, old, bytes)
    };
    after
        .iter()
        .flat_map(of_file)
        .take(MAX_SINKS)
        .map(|sink| NewSink {
            at: format!("{}:{}", sink.path, sink.line),
            kind: sink.kind.as_str().to_owned(),
            name: sink.name,
        })
        .collect()
}

/// Runs gates again whose only objection are new test failures, if no other gate refuses: the tests may be
/// flaky.
async fn rerun_flaky(
    world: &RunContext<'_>,
    by: VerifyContext<'_>,
    base: TrialSetup<'_>,
    scratch_dir: &Path,
    tried: &TrialContext<'_>,
    first: &TrialResult,
    observer: &mut dyn RunObserver,
) -> Result<Vec<GateRun>, RunError> {
    let judged: Vec<_> = first
        .gate_runs()
        .map(|run| (run, judge_run_after(run, &tried.baseline)))
        .collect();
    let suspects: Vec<&GateId> = judged
        .iter()
        .filter(|(_, judged)| judged.may_be_flaky())
        .map(|(run, _)| &run.id)
        .collect();
    // Every error is one of a suspect, or the change is refused whatever they do.
    let objections: usize = judged
        .iter()
        .map(|(_, judged)| judged.verdict.errors().count())
        .sum();
    let refused = judged
        .iter()
        .any(|(_, judged)| !judged.verdict.passes() && !judged.may_be_flaky());
    if suspects.is_empty() || refused || first.verdict.errors().count() > objections {
        return Ok(Vec::new());
    }
    let mut gates = base.gates.to_vec();
    gates.retain(|gate| suspects.contains(&&gate.id));
    observer.working(
        "verifier",
        "running gates with new failures again, to detect flaky tests",
    );
    let base = TrialSetup {
        gates: &gates,
        ..base
    };
    let second_trial_result = run(
        world,
        by.git,
        base,
        by.level,
        scratch_dir,
        TrialInput::Changed(tried),
        observer,
    )
    .await?;
    Ok(second_trial_result.gate_runs().cloned().collect())
}

/// Results of the full set's gates without the change, if they ran for it.
#[derive(Default)]
struct BeforeFull {
    baseline: Vec<GateResult>,
    proof: CanaryResult,
}

/// Runs the gates that no attempt runs on an unchanged copy of the base and on broken sources: their
/// baseline, and whether they count. The results of the others are in the run's analysis.
async fn before_full(
    world: &RunContext<'_>,
    by: VerifyContext<'_>,
    scratch_dir: &Path,
    observer: &mut dyn RunObserver,
) -> Result<BeforeFull, RunError> {
    if by.level != GateLevel::Full
        || by
            .record
            .settings
            .gates
            .iter()
            .all(|gate| gate.level.is_lite())
    {
        return Ok(BeforeFull::default());
    }
    observer.working(
        "verifier",
        "running the gates of level `full` before the change, to compare with",
    );
    let base = TrialSetup::new(by.record, &by.analysis.gates, by.surveys);
    let mut before = run(
        world,
        by.git,
        base,
        by.level,
        scratch_dir,
        TrialInput::Base,
        observer,
    )
    .await?;
    for gate in before.results.iter().filter(|gate| !gate.passed) {
        observer.note(&format!(
            "  gate {} also fails without the change: {}",
            gate.id, gate.end
        ));
    }
    let on = CanaryContext {
        git: by.git,
        base,
        level: by.level,
        room: scratch_dir,
        gate_files: &by.analysis.gate_files,
    };
    let proof = run_canary(world, on, &before, observer).await?;
    proof.report_uncounted(&before, observer);
    before.replace_results(&proof.again);
    Ok(BeforeFull {
        baseline: before.results,
        proof,
    })
}

/// A gate that noticed only a broken file of its own tests only changes of such a file.
fn only_of_its_own_files(analysis: &Analysis, change: &Change, gates: &mut [GateBefore]) {
    let is_of_gates = analysis
        .canary
        .as_ref()
        .is_some_and(|canary| canary.broken == BrokenKind::Gates);
    let touches = |path: &RepoPath| {
        change
            .tree
            .changes
            .iter()
            .any(|changed| changed.path.to_str() == Some(path.as_str()))
    };
    if is_of_gates && !analysis.gate_files.iter().any(touches) {
        let noticed = gates
            .iter_mut()
            .filter(|gate| gate.canary == CanaryOutcome::Noticed);
        noticed.for_each(|gate| gate.canary = CanaryOutcome::Unnoticed);
    }
}

/// Records for each gate which of its own files the change modifies, if a person or the goal named them.
fn note_touched(by: VerifyContext<'_>, change: &Change, gates: &mut [GateBefore]) {
    let Analysis {
        gate_files,
        gate_files_of,
        ..
    } = by.analysis;
    for gate in gates {
        let own = gate_files_of.get(&gate.id).unwrap_or(gate_files);
        let touched = change
            .tree
            .changes
            .iter()
            .filter_map(|changed| changed.path.to_str());
        let is_own = |path: &&str| {
            own.iter().any(|file| file.as_str() == *path)
                && by.plan.names.iter().any(|name| name.as_str() == *path)
        };
        gate.touched = touched.filter(is_own).map(str::to_owned).collect();
    }
}
