//! A trial: the gates on a private copy of the base, with or without a change.
//!
//! The copy is made from the work tree without secrets and special files, and completed with ignored files
//! that tests need (`gate_workspace`). The change is written into it byte for byte, as a landing would. The copy
//! is removed after the trial. The gates can write only to it, have no network, and see neither the original
//! nor any run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crucible_host::fs;
use crucible_model::{ByteLimit, Digest, Verdict};
use crucible_repo::{DirtyEntry, Git, Oid, Omission, SnapshotOptions, Untracked, snapshot};
use crucible_sandbox::{CONFINED_HOME, Strength, base_env, toolchain_env};
use crucible_verify::{
    Baseline, BehaviorCatalogCheck, FailureEvidence, Gate, GateEnd, GateId, GateInput, GateLevel,
    GateObserver, GateOrigin, GateOutcome, GateRun, GateSpec, JudgedRun, Normaliser, NotRunReason,
    PatchCheck, PlanCheck, ReportInput, ReportPaths, Requirements, TestStatus, TestTally,
    VerifyReport, cannot_compile, concerns_compiling, could_not_run, excerpt,
    failed_by_environment, judge_run, judge_run_after, judge_set, logs, may_show_progress, report,
    run_gates,
};

use crate::analysis::{Analysis, BehaviorCatalogue, GateResult};
use crate::attempt::AttemptOutcome;
use crate::canary::BrokenSources;
use crate::catalogue::{judge_changed, read_copy};
use crate::contract::{BehaviorFiles, Plan, PlanDocuments, RunRecord, check_behaviors};
use crate::error::RunError;
use crate::gate_workspace::{
    AT_ITS_OWN_PATH, GateWorkspace, PythonPaths, SurveyCache, by_tracked_path,
};
use crate::gatekeeper::{Change, Files};
use crate::journal::RunObserver;
use crate::layout::{self, RunDir};
use crate::other_world::OtherWorld;
use crate::plan_evidence::check_signature;
use crate::run_context::RunContext;

mod change;
mod changed_together;

pub(crate) use change::VariantFiles;
use change::{write_added, write_change, write_variant};
pub(crate) use changed_together::waiting_tests;

/// Where a repository's catalogue of behaviours begins.
pub(crate) use crate::contract::BEHAVIOR_INDEX;

/// The command that goes on with a run.
const ADVANCE: &str = "crucible run advance";

/// Bytes of one gate's output in a prompt.
const MAX_EXCERPT: ByteLimit = ByteLimit(3000);
/// The longest printed cause, in characters.
const MAX_CAUSE: usize = 300;
/// Bytes kept of each stream in the logs.
pub(crate) const MAX_LOG: ByteLimit = ByteLimit(4 * 1024 * 1024);

/// What the gates run on.
#[derive(Clone, Copy)]
pub(crate) enum TrialInput<'t> {
    /// The base as it is.
    Base,
    /// The base with a change.
    Changed(&'t TrialContext<'t>),
    /// The base with broken sources.
    Broken(&'t BrokenSources),
    /// The base with a change, and these files different from it.
    Variant(&'t TrialContext<'t>, &'t VariantFiles),
    /// The base with a change, and these files as well.
    Added(&'t TrialContext<'t>, &'t VariantFiles),
}

/// What came of a trial.
pub(crate) struct TrialResult {
    pub(crate) outcomes: Vec<GateOutcome>,
    pub(crate) results: Vec<GateResult>,
    /// Findings of the commands, and errors of the behaviour catalogue.
    pub(crate) verdict: Verdict,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    /// What was not copied, with the reason.
    pub(crate) left_out: Vec<String>,
    /// Which set of gates was run.
    level: GateLevel,
    /// Results of the full set's gates without the change, if they ran for it.
    pub(crate) before: Vec<GateResult>,
    /// The behaviour catalogue after the change, read before any gate ran; absent without a copy.
    behaviors: Option<BehaviorFiles>,
    tree: Option<String>,
    /// Replaces the copy's path in the same way in every trial.
    normaliser: Normaliser,
}

/// What gates are run on, and how.
#[derive(Clone, Copy)]
pub(crate) struct TrialSetup<'b> {
    pub(crate) repo: &'b Path,
    /// The required commit of the unchanged work tree; absent if its current state is used.
    pub(crate) commit: Option<&'b Oid>,
    pub(crate) gates: &'b [GateSpec],
    pub(crate) sandbox: Strength,
    /// What earlier trials of the session found.
    pub(crate) surveys: &'b SurveyCache,
    /// Which gates look in the copy for Python packages.
    pub(crate) python_paths: &'b PythonPaths,
    /// Another world than the usual one.
    pub(crate) other: Option<&'b OtherWorld>,
    /// Places that gates and agents cannot read.
    pub(crate) withheld: &'b [PathBuf],
}

/// Where no gate does.
static NO_PYTHON_PATHS: PythonPaths = PythonPaths::new();

impl<'b> TrialSetup<'b> {
    /// The same without a run, of the work tree as it is.
    pub(crate) fn for_work_tree(
        git: &'b Git,
        gates: &'b [GateSpec],
        sandbox: Strength,
        surveys: &'b SurveyCache,
    ) -> Self {
        Self {
            repo: git.top(),
            commit: None,
            gates,
            sandbox,
            surveys,
            python_paths: &NO_PYTHON_PATHS,
            other: None,
            withheld: &[],
        }
    }

    /// The base of a run.
    pub(crate) fn new(
        record: &'b RunRecord,
        gates: &'b [GateSpec],
        surveys: &'b SurveyCache,
    ) -> Self {
        Self {
            repo: &record.repo,
            commit: Some(&record.base_commit),
            gates,
            sandbox: record.settings.sandbox,
            surveys,
            python_paths: &NO_PYTHON_PATHS,
            other: None,
            withheld: &record.settings.held_out.places,
        }
    }
}

/// A change, and the baseline of its gates.
pub(crate) struct TrialContext<'t> {
    pub(crate) change: &'t Change,
    /// The changed files as the base commit has them.
    pub(crate) base_files: &'t Files,
    pub(crate) baseline: Baseline<'t>,
}

/// What a change is verified against.
#[derive(Clone, Copy)]
pub(crate) struct VerifyContext<'y> {
    pub(crate) git: &'y Git,
    pub(crate) surveys: &'y SurveyCache,
    pub(crate) record: &'y RunRecord,
    pub(crate) dir: &'y RunDir,
    pub(crate) plan: &'y Plan,
    pub(crate) analysis: &'y Analysis,
    pub(crate) level: GateLevel,
}

/// Copies the base into `scratch_dir`, applies the change and runs every gate of this set. Without a change, the
/// full set means the gates that the lite set leaves out.
pub(crate) async fn run(
    world: &RunContext<'_>,
    git: &Git,
    base: TrialSetup<'_>,
    level: GateLevel,
    scratch_dir: &Path,
    copied: TrialInput<'_>,
    observer: &mut dyn RunObserver,
) -> Result<TrialResult, RunError> {
    let change = match copied {
        TrialInput::Changed(tried)
        | TrialInput::Variant(tried, _)
        | TrialInput::Added(tried, _) => Some(tried),
        TrialInput::Base | TrialInput::Broken(_) => None,
    };
    // Gates print the real path; behind a link it would not be recognised as the copy's.
    let copy = std::fs::canonicalize(scratch_dir)
        .unwrap_or_else(|_| scratch_dir.to_owned())
        .join("copy");
    let reports = copy.with_file_name("reports");
    let mut outcomes = Vec::new();
    let mut omitted = Vec::new();
    let mut left_out = Vec::new();
    let mut gate_world = None;
    let mut behaviors = None;
    // Each gate gets its own copy: it may run the model's code, which must not prepare the next one.
    let belongs = |gate: &&GateSpec| match level {
        GateLevel::Lite => gate.level.is_lite(),
        GateLevel::Full => change.is_some() || !gate.level.is_lite(),
    };
    for gate in base.gates.iter().filter(belongs) {
        fs::remove_dir_all(&copy)?;
        require_commit(git, base.commit).await?;
        omitted = copy_base(git, &copy).await?;
        let surveyed = match gate_world.take() {
            Some(surveyed) => surveyed,
            None => GateWorkspace::survey(world, git, base).await?,
        };
        left_out = surveyed.complete_copy(git, &copy).await?;
        if !surveyed.is_mounted() && matches!(copied, TrialInput::Base) && outcomes.is_empty() {
            observer.note(AT_ITS_OWN_PATH);
        }
        let surveyed = gate_world.insert(surveyed);
        require_commit(git, base.commit).await?;
        if let Some(tried) = change {
            write_change(&copy, tried.change)?;
        }
        if let TrialInput::Variant(_, files) = copied {
            write_variant(&copy, files)?;
        } else if let TrialInput::Added(_, files) = copied {
            write_added(&copy, files)?;
        } else if let TrialInput::Broken(broken) = copied {
            broken.write(&copy)?;
        } else if behaviors.is_none() {
            behaviors = Some(read_copy(git, &copy, change.map(|tried| tried.change)).await?);
        }
        let setting = surveyed.setting(&gate.id, &copy, &reports)?;
        let observer = GateProgress(Mutex::new(&mut *observer));
        let gate = [GateInput::Command(gate.clone())];
        outcomes.extend(run_gates(&world.sandbox, &gate, &setting, &observer).await);
    }
    let catalogue = behaviors.as_ref().map(check_behaviors).unwrap_or_default();
    if let (None, Some(first)) = (change, catalogue.errors().next()) {
        observer.note(&format!(
            "  warning: the behaviour catalogue is invalid before any change ({} {}), so no change can be verified; see `crucible behaviors check`",
            first.code, first.subject
        ));
    }
    let printed = logs(&outcomes);
    let mut trial = TrialResult {
        level,
        before: Vec::new(),
        results: Vec::new(),
        verdict: Verdict::default(),
        stdout: printed.stdout,
        stderr: printed.stderr,
        left_out: omitted
            .iter()
            .map(|omission| format!("{:?}: {}", omission.path, omission.reason))
            .chain(left_out)
            .collect(),
        behaviors,
        tree: change.map(|tried| tried.change.tree.tree.to_string()),
        outcomes,
        normaliser: Normaliser::new(&copy).also(git.top(), "<copy>"),
    };
    trial.judge(change.map(|tried| &tried.baseline));
    Ok(trial)
}

/// Runs the gates on a copy of the base as it is. A detected gate that could not run is tried with its other commands;
/// the first
/// of them that runs tests takes its place. Returns the gates as they are used from then on.
pub(crate) async fn run_base(
    world: &RunContext<'_>,
    git: &Git,
    base: TrialSetup<'_>,
    scratch_dir: &Path,
    observer: &mut dyn RunObserver,
) -> Result<(TrialResult, Vec<GateSpec>), RunError> {
    let mut trial = run_unchanged(world, git, base, scratch_dir, observer).await?;
    let mut gates = base.gates.to_vec();
    for gate in &mut gates {
        let ran = trial.gate_runs().find(|run| run.id == gate.id);
        let Some(missing) = ran.and_then(could_not_run) else {
            continue;
        };
        for command in gate.alternatives.clone() {
            let tried = GateSpec {
                command,
                ..gate.clone()
            };
            let base = TrialSetup {
                gates: std::slice::from_ref(&tried),
                ..base
            };
            let second_trial_result =
                run_unchanged(world, git, base, scratch_dir, observer).await?;
            let runs_tests = |run: &GateRun| could_not_run(run).is_none() && run.results.is_some();
            if second_trial_result.gate_runs().any(runs_tests) {
                let cause = beginning(&trial.normaliser.apply(missing.cause.as_bytes()));
                observer.note(&format!(
                    "  gate {} runs `{}`, because `{}` could not run: {cause}",
                    gate.id,
                    tried.command_line(),
                    gate.command_line()
                ));
                trial.replace_outcomes(second_trial_result.outcomes);
                *gate = tried;
                break;
            }
        }
    }
    Ok((trial, gates))
}

async fn run_unchanged(
    world: &RunContext<'_>,
    git: &Git,
    base: TrialSetup<'_>,
    scratch_dir: &Path,
    observer: &mut dyn RunObserver,
) -> Result<TrialResult, RunError> {
    let (level, copied) = (GateLevel::Lite, TrialInput::Base);
    run(world, git, base, level, scratch_dir, copied, observer).await
}

/// Copies the tracked files of the work tree, without secrets and special files; returns what was left out.
pub(crate) async fn copy_base(git: &Git, copy: &Path) -> Result<Vec<Omission>, RunError> {
    let options = SnapshotOptions {
        untracked: Untracked::Leave,
        secret: Arc::new(by_tracked_path),
    };
    Ok(snapshot(git, copy, &options).await?.omitted)
}

/// Names a path that differs from the last commit; with the reason if `git status` does not show it.
pub(crate) fn describe_change(changed: &DirtyEntry) -> String {
    let hidden = changed
        .kind
        .hidden()
        .map(|why| format!(" ({why})"))
        .unwrap_or_default();
    format!("{:?}{hidden}", changed.path)
}

/// Fails if the repository is no longer at the run's base, because reading and testing would use another
/// state.
pub(crate) async fn require_base(git: &Git, record: &RunRecord) -> Result<(), RunError> {
    require_commit(git, Some(&record.base_commit)).await
}

/// The same for a commit; any state is accepted without one.
async fn require_commit(git: &Git, commit: Option<&Oid>) -> Result<(), RunError> {
    let Some(base) = commit else { return Ok(()) };
    let now = git.tracked_state().await?;
    if now.commit == *base && now.changed.is_empty() {
        return Ok(());
    }
    match now.changed.first() {
        Some(first) if now.commit == *base => {
            let (count, first) = (now.changed.len(), describe_change(first));
            Err(RunError::BaseDirty {
                count,
                first,
                then: ADVANCE,
            })
        }
        _ => Err(RunError::RepositoryChanged {
            base: base.to_string(),
            then: ADVANCE,
        }),
    }
}

/// Converts an error into "the repository has changed" if the base commit no longer exists.
pub(crate) async fn explain_base_error(
    git: &Git,
    record: &RunRecord,
    failed: RunError,
) -> RunError {
    match git.commit_object(&record.base_commit).await {
        Ok(None) => RunError::RepositoryChanged {
            base: record.base_commit.to_string(),
            then: ADVANCE,
        },
        Ok(Some(_)) | Err(_) => failed,
    }
}

impl TrialResult {
    /// Excludes the gates that prove nothing about a change: those with a compiler error unrelated to the
    /// goal, and detected gates that could not run.
    ///
    /// # Errors
    ///
    /// Fails if a configured gate could not run, or if no other gate is left.
    pub(crate) fn set_aside(
        &mut self,
        specs: &[GateSpec],
        goal: &str,
        observer: &mut dyn RunObserver,
    ) -> Result<(), RunError> {
        let is_found = |run: &GateRun| {
            specs
                .iter()
                .any(|spec| spec.id == run.id && spec.origin == GateOrigin::Found)
        };
        let mut aside = Vec::new();
        for run in self.gate_runs() {
            let set_aside_reason = |found: NotRunReason| {
                (
                    beginning(&self.normaliser.apply(found.cause.as_bytes())),
                    found.remedy,
                )
            };
            // A gate without tests can still be one: its compiler has judged the change.
            let lacking = could_not_run(run)
                .filter(|_| run.end != GateEnd::Exited(0))
                .map(set_aside_reason);
            let broken = || {
                cannot_compile(run)
                    .map(set_aside_reason)
                    .filter(|(cause, _)| !concerns_compiling(goal, cause))
            };
            let has_to_run = lacking.is_some() && !is_found(run);
            if let Some((cause, remedy)) = lacking.or_else(broken) {
                let (gate, command) = (run.id.to_string(), run.command_line());
                let error = RunError::GateCouldNotRun {
                    gate,
                    command,
                    cause,
                    remedy,
                };
                if has_to_run {
                    return Err(error);
                }
                aside.push((run.id.clone(), error));
            }
        }
        if aside.len() == self.results.len()
            && let Some((_, error)) = aside.drain(..).next()
        {
            return Err(error);
        }
        for (id, error) in aside {
            let RunError::GateCouldNotRun {
                gate,
                cause,
                remedy,
                ..
            } = error
            else {
                continue;
            };
            observer.note(&format!(
                "  warning: gate {gate} does not count for a change: {cause}; {remedy}"
            ));
            let result = self
                .results
                .iter_mut()
                .find(|result| result.id == id.as_str());
            if let Some(result) = result {
                result.set_aside = Some(cause);
            }
        }
        Ok(())
    }

    /// Whether a gate was set aside.
    pub(crate) fn is_set_aside(&self, gate: &GateId) -> bool {
        self.results
            .iter()
            .any(|result| result.id == gate.as_str() && result.set_aside.is_some())
    }

    /// Puts later outcomes of gates in place of the first ones, and judges them.
    fn replace_outcomes(&mut self, later: Vec<GateOutcome>) {
        for later in later {
            if let Some(first) = self
                .outcomes
                .iter_mut()
                .find(|first| first.id() == later.id())
            {
                *first = later;
            }
        }
        let printed = logs(&self.outcomes);
        (self.stdout, self.stderr) = (printed.stdout, printed.stderr);
        self.judge(None);
    }

    /// Puts later results of gates in place of the first ones.
    pub(crate) fn replace_results(&mut self, later: &[GateResult]) {
        for result in &mut self.results {
            if let Some(later) = later.iter().find(|later| later.id == result.id) {
                result.clone_from(later);
            }
        }
    }

    /// The commands that were run.
    pub(crate) fn gate_runs(&self) -> impl Iterator<Item = &GateRun> {
        self.outcomes.iter().filter_map(|outcome| match outcome {
            GateOutcome::Ran(run) => Some(run.as_ref()),
            GateOutcome::Judged { .. } => None,
        })
    }

    /// Judges the gates, compared with their earlier results if there is a change.
    pub(crate) fn judge(&mut self, baseline: Option<&Baseline<'_>>) {
        let judge = |run: &GateRun| match baseline {
            Some(baseline) => judge_run_after(run, baseline),
            None => JudgedRun {
                verdict: judge_run(run),
                tests: None,
            },
        };
        let judged: Vec<(&GateRun, JudgedRun)> =
            self.gate_runs().map(|run| (run, judge(run))).collect();
        let results = judged
            .iter()
            .map(|(run, judged)| self.result(run, judged))
            .collect();
        let mut verdict = Verdict::default();
        judged
            .iter()
            .for_each(|(_, judged)| verdict.merge(judged.verdict.clone()));
        if let Some(baseline) = baseline {
            verdict.merge(judge_set(
                judged.iter().map(|(run, judged)| (*run, judged)),
                baseline,
            ));
        }
        // The next attempt treats it like a failed command.
        let catalogue = self
            .behaviors
            .as_ref()
            .map(check_behaviors)
            .unwrap_or_default();
        catalogue
            .errors()
            .for_each(|finding| verdict.push(finding.clone()));
        (self.results, self.verdict) = (results, verdict);
    }

    fn result(&self, run: &GateRun, judged: &JudgedRun) -> GateResult {
        let mut log = self.normaliser.apply(&run.stdout.bytes);
        log.push_str(&self.normaliser.apply(&run.stderr.bytes));
        let end = match judged.verdict.errors().next() {
            Some(first) => first.hint.clone(),
            None if run.end == GateEnd::Exited(0) => "passed".to_owned(),
            None if cannot_compile(run).is_some() || could_not_run(run).is_some() => {
                "cannot run before or after the change".to_owned()
            }
            None => "passed: every failing test is flaky or failed before the change".to_owned(),
        };
        GateResult {
            id: run.id.to_string(),
            passed: judged.verdict.passes(),
            end: self.normaliser.apply(end.as_bytes()).trim_end().to_owned(),
            excerpt: excerpt(&log, MAX_EXCERPT),
            tally: Some(TestTally::read(run)),
            results: run.results.clone(),
            by_environment: !judged.verdict.passes() && failed_by_environment(run, &log),
            set_aside: None,
            failure: (!judged.verdict.passes()).then(|| {
                let mut failure = FailureEvidence::read(&log);
                failure.add_tests(
                    run.results
                        .iter()
                        .flat_map(|results| results.with_status(TestStatus::Failed)),
                );
                failure
            }),
        }
    }

    /// Returns whether the broken-change check can still show that a change makes progress.
    pub(crate) fn may_show_progress(&self, baseline: &Baseline<'_>) -> bool {
        let tests = self
            .gate_runs()
            .filter_map(|run| judge_run_after(run, baseline).tests);
        let tests: Vec<_> = tests.collect();
        may_show_progress(&self.verdict, tests.iter())
    }

    /// Keeps what second runs printed.
    pub(crate) fn keep_output(&mut self, reruns: &[GateRun]) {
        let outcomes: Vec<GateOutcome> = reruns
            .iter()
            .map(|run| GateOutcome::Ran(Box::new(run.clone())))
            .collect();
        let printed = logs(&outcomes);
        self.stdout.extend_from_slice(&printed.stdout);
        self.stderr.extend_from_slice(&printed.stderr);
    }

    /// The verify report of an attempt: the repository's commands, and the gates that Crucible judges itself.
    pub(crate) fn report(
        &self,
        record: &RunRecord,
        behaviors: BehaviorCatalogue,
        plan: &Plan,
        outcome: &AttemptOutcome,
        baseline: Baseline<'_>,
        dir: &RunDir,
    ) -> Result<VerifyReport, RunError> {
        let mut outcomes = self.outcomes.clone();
        let judged = |name: &str, verdict: Verdict| -> Result<GateOutcome, RunError> {
            let id = gate_id(name, dir)?;
            Ok(GateOutcome::Judged { id, verdict })
        };
        let known = self
            .behaviors
            .as_ref()
            .map(BehaviorFiles::ids)
            .unwrap_or_default();
        outcomes.push(judged(PlanCheck.id(), judge_plan(plan, &known, dir)?)?);
        outcomes.push(judged(
            PatchCheck.id(),
            Verdict::new(outcome.findings.clone()),
        )?);
        if let Some(after) = &self.behaviors {
            outcomes.push(judged(
                BehaviorCatalogCheck.id(),
                judge_changed(behaviors, after),
            )?);
        }
        let declared = plan
            .gates
            .iter()
            .map(|gate| gate_id(gate, dir))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(report(&ReportInput {
            gate: self.level,
            iteration: outcome.round(),
            max_iterations: record.settings.max_iterations,
            outcomes: &outcomes,
            requirements: Requirements {
                declared: &declared,
                baseline,
            },
            named_tests: &record.named_tests(),
            paths: ReportPaths {
                plan: Some(layout::PLAN.to_owned()),
                patch: Some(layout::PATCH.to_owned()),
                ..ReportPaths::default()
            },
            plan_digest: Some(Digest::compute(&dir.read(layout::PLAN)?)),
            patch_digest: outcome.patch,
            tree: self.tree.clone(),
        }))
    }
}

/// Saves the gates' output, and returns the digests. The ledger gets only these, so the files are on disk
/// when this returns; an empty one is known by its digest.
pub(crate) fn keep_logs(
    dir: &RunDir,
    logs: [(&str, &[u8]); 2],
) -> Result<BTreeMap<String, Digest>, RunError> {
    let mut digests = BTreeMap::new();
    for (path, bytes) in logs {
        digests.insert(path.to_owned(), dir.write_recorded(path, bytes)?);
    }
    let holding: Vec<&str> = logs
        .iter()
        .filter(|(_, bytes)| !bytes.is_empty())
        .map(|(path, _)| *path)
        .collect();
    dir.flush(&holding)?;
    Ok(digests)
}

/// Passes the gates' progress to the observer.
struct GateProgress<'w>(Mutex<&'w mut dyn RunObserver>);

impl GateObserver for GateProgress<'_> {
    fn started(&self, gate: &GateInput) {
        if let (GateInput::Command(spec), Ok(mut observer)) = (gate, self.0.lock()) {
            observer.working(
                "verifier",
                &format!("gate {} is running: {}", spec.id, spec.command.join(" ")),
            );
        }
    }

    fn finished(&self, _: &GateOutcome) {}
}

/// The first line of a cause, as long as a person reads it.
fn beginning(cause: &str) -> String {
    cause
        .lines()
        .next()
        .unwrap_or_default()
        .trim_end()
        .chars()
        .take(MAX_CAUSE)
        .collect()
}

fn gate_id(name: &str, dir: &RunDir) -> Result<GateId, RunError> {
    name.parse()
        .map_err(|_| dir.malformed(layout::PLAN, "invalid gate name"))
}

/// Returns the environment of every gate and every command that serves a role: the tools, a private home, and
/// nothing of the user.
pub(crate) fn environment(world: &RunContext<'_>) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    let mut env = base_env(world.env);
    env.extend(toolchain_env(world.env));
    env.push(("HOME".into(), CONFINED_HOME.into()));
    // No setting of colours: the tests of a program that has colours would see it.
    env.push(("CI".into(), "true".into()));
    env
}

/// Judges the plan as it was signed: with its reasons and expected results, against the behaviours that there are, and
/// by
/// the signature of its very text.
fn judge_plan(plan: &Plan, behaviors: &[String], dir: &RunDir) -> Result<Verdict, RunError> {
    let text = |path| dir.has(path).then(|| dir.read_text(path)).transpose();
    let (reasons, results) = (text(layout::REASONS)?, text(layout::EXPECTED_RESULTS)?);
    let documents = PlanDocuments {
        plan,
        reasons: reasons.as_deref(),
        results: results.as_deref(),
        behaviors,
    };
    let mut verdict = documents.check();
    verdict.merge(check_signature(dir, plan.render().as_bytes())?);
    Ok(verdict)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crucible_sandbox::{Captured, Extent};
    use crucible_verify::VerifyResult;

    use super::*;
    use crate::attempt::{AttemptEnd, AttemptVersion};
    use crate::contract::{Review, Signature, SignatureVersion, required_gates};
    use crate::gatekeeper::tests::record;

    fn plan() -> Plan {
        let gates: Vec<&str> = required_gates().collect();
        let text = format!(
            "Status: SIGNED\nScope-Allow: src/a.py\nScope-Deny:\nNames:\nGates: {}\nStop: verified\nBudgets: 1\n\
             Behaviors:\nResults: R001\n",
            gates.join(", ")
        );
        Plan::parse(&text).unwrap()
    }

    /// A run's directory with a plan that is signed, and these expected results.
    fn signed(dir: &RunDir, plan: &Plan, results: &str) {
        let digest = dir.write(layout::PLAN, plan.render().as_bytes()).unwrap();
        dir.write(layout::EXPECTED_RESULTS, results.as_bytes())
            .unwrap();
        dir.write(layout::REASONS, b"- R001: because\n").unwrap();
        let mut reviews = BTreeMap::new();
        for path in [layout::REVIEW_CONTRACT, layout::REVIEW_COST] {
            let review = Review::from_verdict("r", digest, &Verdict::default());
            reviews.insert(
                path.to_owned(),
                dir.write(path, review.render().as_bytes()).unwrap(),
            );
        }
        let signature = Signature {
            schema_version: SignatureVersion::V1,
            plan: digest,
            reviews,
        };
        dir.write_json(layout::SIGNATURE, &signature).unwrap();
    }

    fn codes(verdict: &Verdict) -> Vec<&str> {
        verdict
            .findings()
            .iter()
            .map(|finding| finding.code.as_str())
            .collect()
    }

    const RESULTS: &str =
        "## R001\nAcceptance: x\nEvidence: artifacts/verify_report.json\nRelated-Gates: lite\n";

    #[test]
    fn plan_check_includes_documents_and_signature() {
        let temp_dir = tempfile::tempdir().unwrap();
        let dir = RunDir::from_path(temp_dir.path().to_owned());
        let plan = plan();
        let finding_codes = |plan: &Plan| {
            let verdict = judge_plan(plan, &[], &dir).unwrap();
            codes(&verdict)
                .into_iter()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        signed(&dir, &plan, RESULTS);
        assert_eq!(finding_codes(&plan), [""; 0]);
        signed(&dir, &plan, &RESULTS.replace("R001", "R002"));
        assert_eq!(
            finding_codes(&plan),
            ["plan-id-unresolved", "plan-reason-unresolved"]
        );
        signed(&dir, &plan, &RESULTS.replace("lite", "other"));
        assert_eq!(finding_codes(&plan), ["plan-result-gate"]);
        signed(&dir, &plan, RESULTS);
        fs::remove_file(&dir.path(layout::REASONS)).unwrap();
        assert_eq!(finding_codes(&plan), ["plan-document-missing"]);
        signed(&dir, &plan, RESULTS);
        let wider = Plan {
            scope_allow: vec!["src/".parse().unwrap()],
            ..plan.clone()
        };
        assert_eq!(finding_codes(&wider), ["plan-unsigned"]);
        assert_eq!(
            judge_plan(&wider, &[], &dir).unwrap(),
            check_signature(&dir, wider.render().as_bytes()).unwrap(),
            "a run and `plan check` say the same"
        );
        dir.write(layout::REVIEW_COST, b"Verdict: BLOCK\n").unwrap();
        assert_eq!(finding_codes(&plan), ["plan-unsigned"]);
        signed(&dir, &plan, RESULTS);
        fs::remove_file(&dir.path(layout::SIGNATURE)).unwrap();
        assert_eq!(finding_codes(&plan), ["plan-unsigned"]);
    }

    #[test]
    fn plan_behaviour_must_be_in_patched_catalogue() {
        let temp_dir = tempfile::tempdir().unwrap();
        let dir = RunDir::from_path(temp_dir.path().to_owned());
        let plan = Plan {
            behaviors: vec!["B001".to_owned()],
            ..plan()
        };
        signed(&dir, &plan, RESULTS);
        assert_eq!(
            codes(&judge_plan(&plan, &[], &dir).unwrap()),
            ["plan-id-unresolved"]
        );
        assert!(
            judge_plan(&plan, &["B001".to_owned()], &dir)
                .unwrap()
                .passes()
        );
    }

    #[test]
    fn catalogue_gate_must_run() {
        let temp_dir = tempfile::tempdir().unwrap();
        let dir = RunDir::from_path(temp_dir.path().to_owned());
        let plan = plan();
        signed(&dir, &plan, RESULTS);
        let nothing = || Captured {
            bytes: Vec::new(),
            total: 0,
            extent: Extent::Whole,
        };
        let ran = GateRun {
            id: "tests".parse().unwrap(),
            command: vec!["true".to_owned()],
            end: GateEnd::Exited(0),
            duration: std::time::Duration::ZERO,
            stdout: nothing(),
            stderr: nothing(),
            report: None,
            isolation: None,
            results: None,
        };
        let outcome = AttemptOutcome {
            schema_version: AttemptVersion::V1,
            number: 1,
            end: AttemptEnd::Refused,
            round: None,
            chosen_from: None,
            asked_for: None,
            read_as: None,
            answer: Digest::compute(b"a"),
            patch: None,
            again: None,
            findings: Vec::new(),
            output: String::new(),
        };
        let record = record(temp_dir.path(), &[&["true"]]);
        let reported = |before, behaviors| {
            let trial = TrialResult {
                level: GateLevel::Lite,
                before: Vec::new(),
                outcomes: vec![GateOutcome::Ran(Box::new(ran.clone()))],
                normaliser: Normaliser::default(),
                results: Vec::new(),
                verdict: Verdict::default(),
                stdout: Vec::new(),
                stderr: Vec::new(),
                left_out: Vec::new(),
                behaviors,
                tree: None,
            };
            let report = trial
                .report(&record, before, &plan, &outcome, Baseline::default(), &dir)
                .unwrap();
            let kinds: Vec<String> = report
                .failures
                .iter()
                .map(|failure| failure.kind.clone())
                .collect();
            let executed: Vec<String> = report
                .executed_gates
                .iter()
                .map(GateId::to_string)
                .collect();
            (report.result, executed, kinds)
        };
        let all = [
            "lite",
            "plan_check",
            "patch_check",
            "behavior_catalog_check",
            "tests",
        ]
        .map(str::to_owned);
        let none = || Some(BehaviorFiles::default());
        assert_eq!(
            reported(BehaviorCatalogue::Absent, none()),
            (VerifyResult::Pass, all.to_vec(), vec![])
        );
        let (result, executed, kinds) = reported(BehaviorCatalogue::Unchecked, none());
        assert_eq!(
            (result, executed, kinds),
            (
                VerifyResult::Fail,
                all.to_vec(),
                vec!["behaviors-taken-away".into()]
            )
        );
        let (result, executed, kinds) = reported(BehaviorCatalogue::Absent, None);
        assert_eq!(result, VerifyResult::Fail);
        assert!(!executed.contains(&all[3]) && kinds == ["verify-gate-not-executed"]);
    }
}
