//! A trial: the gates on a private copy of the base, with a change where there is one.
//!
//! The copy is made from the work tree without secrets and special files, the change is written into it byte for
//! byte as a landing would bring it to the work tree, and the copy is gone when the trial is over. The gates can write
//! to it and to nothing else, see no network, find no git directory in it, and see neither the original nor any run.

use std::path::Path;
use std::sync::{Arc, Mutex};

use crucible_host::fs;
use crucible_model::{ByteLimit, Code, Digest, Finding, RepoPath, Verdict};
use crucible_patch::FileMode;
use crucible_repo::{DirtyKind, Git, SnapshotOptions, Untracked, snapshot};
use crucible_sandbox::{CONFINED_HOME, base_env, toolchain_env};
use crucible_verify::{
    CommandGate, GateEnd, GateId, GateInput, GateLevel, GateObserver, GateOutcome, GateSetting, Normaliser,
    ReportInput, ReportPaths, Requirements, VerifyReport, excerpt, judge_run, logs, report, run_gates,
};

use crate::analysis::GateResult;
use crate::attempt::AttemptOutcome;
use crate::contract::{Plan, RunRecord, check_plan};
use crate::error::RunError;
use crate::gatekeeper::Change;
use crate::hidden::hidden;
use crate::journal::Witness;
use crate::layout::{self, RunDir};
use crate::world::World;

const CATALOGUE_UNCHECKED: Code = Code::new("run-behaviors-unchecked");

/// How much a prompt holds of what one gate printed.
const MAX_EXCERPT: ByteLimit = ByteLimit(3000);
/// How much of each stream is kept in the logs.
const MAX_LOG: ByteLimit = ByteLimit(4 * 1024 * 1024);

/// What came of a trial.
pub(crate) struct Trial {
    pub(crate) outcomes: Vec<GateOutcome>,
    pub(crate) results: Vec<GateResult>,
    /// The findings of the commands.
    pub(crate) verdict: Verdict,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    /// What was not copied, with the reason.
    pub(crate) left_out: Vec<String>,
    tree: Option<String>,
}

/// Copies the base into `room`, applies the change and runs every gate of the run.
pub(crate) async fn run(
    world: &World<'_>,
    git: &Git,
    record: &RunRecord,
    room: &Path,
    change: Option<&Change>,
    witness: &mut dyn Witness,
) -> Result<Trial, RunError> {
    let options = SnapshotOptions { untracked: Untracked::Leave, secret: Arc::new(secret_rule) };
    let copy = room.join("copy");
    let mut outcomes = Vec::new();
    let mut omitted = Vec::new();
    // Each gate gets a copy of its own: what one of them runs may be the model's code, which must not prepare the next.
    for gate in &record.settings.gates {
        fs::remove_dir_all(&copy)?;
        require_base(git, record).await?;
        omitted = snapshot(git, &copy, &options).await?.omitted;
        require_base(git, record).await?;
        if let Some(change) = change {
            write_change(&copy, change)?;
        }
        let env = environment(world);
        let mut masked = hidden(world, record, &env);
        masked.push(copy.join(".git/"));
        let setting = GateSetting {
            copy: copy.clone(),
            writable: Vec::new(),
            masked,
            env,
            strength: record.settings.sandbox,
            log_limit: MAX_LOG,
        };
        let observer = Told(Mutex::new(&mut *witness));
        let gate = [GateInput::Command(gate.clone())];
        outcomes.extend(run_gates(&world.sandbox, &gate, &setting, &observer).await);
    }
    let normaliser = Normaliser::new(&copy);
    let mut verdict = Verdict::default();
    let mut results = Vec::new();
    for outcome in &outcomes {
        let GateOutcome::Ran(gate) = outcome else { continue };
        let judged = judge_run(gate);
        let mut log = normaliser.apply(&gate.stdout.bytes);
        log.push_str(&normaliser.apply(&gate.stderr.bytes));
        let end = judged.errors().next().map_or_else(|| "passed".to_owned(), |finding| finding.hint.clone());
        results.push(GateResult {
            id: gate.id.to_string(),
            passed: judged.passes(),
            end: normaliser.apply(end.as_bytes()).trim_end().to_owned(),
            excerpt: excerpt(&log, MAX_EXCERPT),
        });
        verdict.merge(judged);
    }
    let printed = logs(&outcomes);
    Ok(Trial {
        results,
        verdict,
        stdout: printed.stdout,
        stderr: printed.stderr,
        left_out: omitted
            .iter()
            .map(|omission| format!("{:?}: {}", omission.path, omission.reason))
            .collect(),
        tree: change.map(|change| change.tree.tree.to_string()),
        outcomes,
    })
}

/// Refuses to go on when the repository is no longer at the run's base: what would be read or tried now is not what the
/// run speaks of.
pub(crate) async fn require_base(git: &Git, record: &RunRecord) -> Result<(), RunError> {
    let moved = git.head().await?.commit != record.base_commit;
    let dirty = || async {
        Ok::<_, RunError>(git.status().await?.iter().any(|entry| entry.kind != DirtyKind::Untracked))
    };
    if moved || dirty().await? {
        return Err(RunError::RepositoryChanged { base: record.base_commit.to_string() });
    }
    Ok(())
}

impl Trial {
    /// A gate that could not be started at all, with the reason.
    pub(crate) fn unusable(&self) -> Option<(String, String)> {
        self.outcomes.iter().find_map(|outcome| match outcome {
            GateOutcome::Ran(run) => match &run.end {
                GateEnd::NotStarted { message, .. } => Some((run.id.to_string(), message.clone())),
                _ => None,
            },
            GateOutcome::Judged { .. } => None,
        })
    }

    /// The verify report of an attempt: the repository's commands, and the gates that Crucible judges itself.
    pub(crate) fn report(
        &self,
        record: &RunRecord,
        plan: &Plan,
        number: u64,
        outcome: &AttemptOutcome,
        dir: &RunDir,
    ) -> Result<VerifyReport, RunError> {
        let mut outcomes = self.outcomes.clone();
        let judged = |name: &str, verdict: Verdict| -> Result<GateOutcome, RunError> {
            let id = gate_id(name, dir)?;
            Ok(GateOutcome::Judged { id, verdict })
        };
        outcomes.push(judged("plan_check", check_plan(plan, &[], &plan.results))?);
        outcomes.push(judged("patch_check", Verdict::new(outcome.findings.clone()))?);
        outcomes.push(judged("behavior_catalog_check", catalogue(&record.repo))?);
        let declared = plan.gates.iter().map(|gate| gate_id(gate, dir)).collect::<Result<Vec<_>, _>>()?;
        Ok(report(&ReportInput {
            gate: GateLevel::Lite,
            iteration: number,
            max_iterations: record.settings.max_iterations,
            outcomes: &outcomes,
            requirements: Requirements { declared: &declared, command_gate: CommandGate::Required },
            paths: ReportPaths {
                plan: Some(layout::PLAN.to_owned()),
                patch: Some(layout::PATCH.to_owned()),
                ..ReportPaths::default()
            },
            plan_digest: Some(Digest::of(&dir.read(layout::PLAN)?)),
            patch_digest: outcome.patch,
            tree: self.tree.clone(),
        }))
    }
}

/// Passes what the gates do on to the witness.
struct Told<'w>(Mutex<&'w mut dyn Witness>);

impl GateObserver for Told<'_> {
    fn started(&self, gate: &GateInput) {
        if let (GateInput::Command(spec), Ok(mut witness)) = (gate, self.0.lock()) {
            witness.working("verifier", &format!("gate {} is running: {}", spec.id, spec.command.join(" ")));
        }
    }

    fn finished(&self, _: &GateOutcome) {}
}

fn gate_id(name: &str, dir: &RunDir) -> Result<GateId, RunError> {
    name.parse().map_err(|_| dir.malformed(layout::PLAN, "a gate's name is none"))
}

/// What every gate sees of the environment: where tools are, a private home, and nothing of the user.
fn environment(world: &World<'_>) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    let mut env = base_env(world.env);
    env.extend(toolchain_env(world.env));
    env.push(("HOME".into(), CONFINED_HOME.into()));
    env.push(("CI".into(), "true".into()));
    env.push(("CARGO_TERM_COLOR".into(), "never".into()));
    env.push(("NO_COLOR".into(), "1".into()));
    env
}

/// Writes the files of a change into the copy, exactly as a landing brings them to the work tree.
fn write_change(copy: &Path, change: &Change) -> Result<(), RunError> {
    let after = change.tree.files_checked_out();
    for changed in &change.tree.changes {
        let target = copy.join(&changed.path);
        match changed.new_mode {
            None => fs::remove_file(&target)?,
            Some(mode) => {
                let path = changed.path.to_str().and_then(|path| path.parse::<RepoPath>().ok());
                let Some(bytes) = path.and_then(|path| after.get(&path)) else {
                    continue;
                };
                if let Some(parent) = target.parent() {
                    fs::create_dir_all(parent)?;
                }
                fs::write_atomic(&target, bytes)?;
                fs::set_mode(&target, if mode == FileMode::Executable { 0o755 } else { 0o644 })?;
            }
        }
    }
    Ok(())
}

fn secret_rule(path: &Path) -> Option<String> {
    crucible_secrets::is_secret_file(&path.to_string_lossy())
        .then(|| "its name says that it holds secrets".to_owned())
}

fn catalogue(repo: &Path) -> Verdict {
    if !repo.join("docs/behaviors/INDEX.md").is_file() {
        return Verdict::default();
    }
    let hint = "This repository has a behaviour catalogue, which is not checked yet.";
    Verdict::new(vec![Finding::warning(CATALOGUE_UNCHECKED, "docs/behaviors/INDEX.md", hint)])
}
