//! The step that verifies a skill: every gate on one copy of the project, each recorded as it ends.
//!
//! [`SkillVerification::prepare`] takes the lock, reads the two files once, finds the programs and copies the project: whatever is missing
//! for a verdict is reported before anything is recorded. [`SkillVerification::run`] asks the gates. Where it is interrupted,
//! [`SkillVerification::abort`] says so in the ledger; where the process is killed, the next step says it.
//!
//! What always holds: the digests that are recorded are those of the bytes that were judged, and what happens to the project meanwhile
//! changes nothing about them; a skill is verified when every gate passed, and else it is built, as before.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crucible_host::clock::Stopwatch;
use crucible_host::fs::{FsError, read_beneath};
use crucible_host::lock::{Lock, LockError};
use crucible_ledger::{
    Ledger, LedgerError, Moment, NewVerification, SkillArtifactKind, SkillBuildRow,
    SkillBuildStatus, SkillGateRow, SkillRow, SkillStatus, VerificationEnd, VerificationLevel,
    VerificationRow,
};
use crucible_model::{
    ByteLimit, CanonicalError, Code, Digest, Finding, RepoPath, RepoPathError, Verdict,
    to_canonical_json,
};
use crucible_repo::{Omission, WorkspaceChange};
use serde_json::{Value, json};

use crate::build::{SettleError, settle_builds};
use crate::context::ForgeContext;
use crate::examples::HeldOutExample;
use crate::gates::{
    ForgeGate, GATE_TIMED_OUT, GATES, GateError, GateExamples, GateSite, GateSource, SkillGate,
    SkillGateOutcome, SkillTools, ToolsMissing, bounded,
};
use crate::grants::Grants;
use crate::io_schema::IoSchema;
use crate::name::SkillName;
use crate::paths::SkillPaths;
use crate::policy::SkillPolicy;
use crate::project::{ForgeProject, PolicyReadError};
use crate::runner::{RunnerError, find_python};
use crate::status::{SkillStep, StepRefused};
use crate::workspace::{SkillWorkspace, WorkspaceError};

/// What is read of a file. A gate says that it is too large long before.
const MAX_READ: ByteLimit = ByteLimit(16 << 20);
/// The form of the report.
const FORM: &str = "skill-verification-report.v1";
/// The most paths that were left out of the copy that the report names.
const MAX_OMITTED: usize = 50;

/// What is verified, and how.
#[derive(Debug, Clone, Copy)]
pub struct VerifyRequest<'a> {
    /// Which skill.
    pub name: &'a SkillName,
    /// How much.
    pub level: VerificationLevel,
    /// The directory in which ruff, mypy and pytest are looked for before the `PATH`.
    pub tools: Option<&'a Path>,
    /// The Python that held-out examples run by; `python3` of the `PATH` where none is named.
    pub python: Option<&'a Path>,
    /// Where it finds modules that are not its own.
    pub site_packages: &'a [PathBuf],
    /// How long each gate's program may take.
    pub timeout: Duration,
}

/// Hears how the gates fare.
pub trait SkillGateObserver {
    /// A gate begins.
    fn started(&self, gate: SkillGate);

    /// A gate has ended.
    fn ended(&self, outcome: &SkillGateOutcome);
}

/// Why nothing was verified.
#[derive(Debug, thiserror::Error)]
pub enum VerifyStepError {
    /// The ledger knows no such skill in this project.
    #[error("this project has no skill {name}")]
    Unknown {
        /// The name as given.
        name: SkillName,
    },
    /// Another process works on it.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// What a killed build left cannot be settled.
    #[error(transparent)]
    Unsettled(#[from] SettleError),
    /// The skill is not where it can be verified.
    #[error(transparent)]
    Step(#[from] StepRefused),
    /// One of the two files cannot be read.
    #[error("{source}; a skill is a module and its test, both plain files")]
    File {
        /// Which.
        path: RepoPath,
        /// Why not.
        source: FsError,
    },
    /// Programs are missing.
    #[error(transparent)]
    Tools(#[from] ToolsMissing),
    /// The operator's rules cannot be taken.
    #[error(transparent)]
    Policy(#[from] PolicyReadError),
    /// The project cannot be copied.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// There is no Python for the examples.
    #[error(transparent)]
    Python(#[from] RunnerError),
    /// A gate could not be asked. The verification is recorded as aborted.
    #[error("the gate {} could not run: {source}", gate.as_str())]
    Obstacle {
        /// Which gate.
        gate: SkillGate,
        /// Why not.
        source: GateError,
    },
    /// What the ledger has of the skill is not what Crucible writes.
    #[error(
        "the record of the skill {name} cannot be read: {why}; `crucible ledger verify` says more"
    )]
    Record {
        /// The skill with the unreadable record.
        name: SkillName,
        /// What is wrong.
        why: String,
    },
    /// The database does not take it.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A name makes no path.
    #[error(transparent)]
    Path(#[from] RepoPathError),
    /// A number has no canonical form.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
}

/// What came of a verification.
#[derive(Debug)]
pub struct VerificationResult {
    /// Whether the skill is verified, and everything that was found, in the order of the gates.
    pub verdict: Verdict,
    /// What each gate said.
    pub gates: Vec<SkillGateOutcome>,
    /// The row of it as it began: its number, and the digests of what was judged.
    pub row: VerificationRow,
    /// Where the skill stands now.
    pub status: SkillStatus,
    /// The report: an artifact.
    pub report: Digest,
}

impl VerificationResult {
    /// Whether the time of a gate was over.
    #[must_use]
    pub fn timed_out(&self) -> bool {
        self.verdict
            .findings()
            .iter()
            .any(|finding| finding.code == GATE_TIMED_OUT)
    }
}

/// A verification that has everything it needs.
pub struct SkillVerification<'a> {
    world: &'a ForgeContext<'a>,
    project: &'a ForgeProject,
    request: VerifyRequest<'a>,
    paths: SkillPaths,
    row: SkillRow,
    build: SkillBuildRow,
    grants: Grants,
    io_schema: IoSchema,
    policy: SkillPolicy,
    skill: GateSource,
    test: GateSource,
    examples: Option<GateExamples>,
    tools: SkillTools,
    workspace: SkillWorkspace,
    begun: Option<VerificationRow>,
    _lock: Lock,
}

impl<'a> SkillVerification<'a> {
    /// Gets everything ready: the lock of the skill, its two files, the programs, the copy. Nothing is recorded, but what came of a build that
    /// was killed.
    ///
    /// # Errors
    ///
    /// [`VerifyStepError`] says what is missing.
    pub async fn prepare(
        world: &'a ForgeContext<'a>,
        ledger: &mut Ledger,
        project: &'a ForgeProject,
        request: VerifyRequest<'a>,
    ) -> Result<Self, VerifyStepError> {
        let name = request.name;
        let lock = project.lock(&world.home, name, "crucible skill verify")?;
        let unknown = || VerifyStepError::Unknown { name: name.clone() };
        settle_builds(world, project, ledger, name)?;
        let paths = project.paths(name)?;
        let row = ledger
            .skill(project.key(), name.as_str())?
            .ok_or_else(unknown)?;
        SkillStep::Verify.check(name, row.status)?;
        let record = |why: String| VerifyStepError::Record {
            name: name.clone(),
            why,
        };
        let build = ledger.skill_builds(row.id)?.pop();
        let build = build
            .filter(|build| build.status == SkillBuildStatus::Succeeded)
            .ok_or_else(|| record("its newest attempt did not succeed".to_owned()))?;
        let grants: Grants = serde_json::from_value(row.grants.clone())
            .map_err(|error| record(error.to_string()))?;
        let io_schema = IoSchema::from_value(row.io_schema.clone())
            .map_err(|error| record(error.to_string()))?;
        let policy = project.policy()?.unwrap_or_default();
        let read = |path: &RepoPath| match read_beneath(project.root(), path.as_str(), MAX_READ) {
            Ok(bytes) => Ok(GateSource::new(path, bytes)),
            Err(source) => Err(VerifyStepError::File {
                path: path.clone(),
                source,
            }),
        };
        let (skill, test) = (read(&paths.skill)?, read(&paths.test)?);
        let examples = match held_out(ledger, &row, &io_schema).map_err(record)? {
            None => None,
            Some(examples) => {
                let python = find_python(world, request.python).await?;
                Some(GateExamples {
                    examples,
                    python,
                    site_packages: request.site_packages.to_vec(),
                })
            }
        };
        let tools = SkillTools::find(world, request.tools).await?;
        let workspace = SkillWorkspace::make(world, project).await?;
        for source in [&skill, &test] {
            workspace.put(&source.path, &source.bytes)?;
        }
        Ok(Self {
            world,
            project,
            request,
            paths,
            row,
            build,
            grants,
            io_schema,
            policy,
            skill,
            test,
            examples,
            tools,
            workspace,
            begun: None,
            _lock: lock,
        })
    }

    /// The programs that the gates are made of.
    #[must_use]
    pub const fn tools(&self) -> &SkillTools {
        &self.tools
    }

    /// What the copy does not have of the project.
    #[must_use]
    pub fn omitted(&self) -> &[Omission] {
        self.workspace.omitted()
    }

    /// Asks every gate and records each as it ends, then the report and the end.
    ///
    /// # Errors
    ///
    /// [`VerifyStepError`], after which the verification is recorded as aborted where it was begun and the ledger takes it.
    pub async fn run(
        &mut self,
        ledger: &mut Ledger,
        observer: &dyn SkillGateObserver,
    ) -> Result<VerificationResult, VerifyStepError> {
        let verified = self.ask_all(ledger, observer).await;
        match &verified {
            Ok(_) => self.begun = None,
            // What stopped it is what is told.
            Err(_) => drop(self.abort(ledger)),
        }
        verified
    }

    /// Records that the verification was interrupted, where it was begun and has not ended.
    ///
    /// # Errors
    ///
    /// Fails when the ledger does not take it; the next step says it then.
    pub fn abort(&mut self, ledger: &mut Ledger) -> Result<(), LedgerError> {
        match self.begun.take() {
            Some(row) => ledger.end_verification(&row, self.now(), VerificationEnd::Aborted),
            None => Ok(()),
        }
    }

    async fn ask_all(
        &mut self,
        ledger: &mut Ledger,
        observer: &dyn SkillGateObserver,
    ) -> Result<VerificationResult, VerifyStepError> {
        let before = self.workspace.changes()?;
        let gates: Vec<&dyn ForgeGate> = GATES
            .into_iter()
            .filter(|gate| gate.applies(&self.site()))
            .collect();
        let row = ledger.begin_verification(&NewVerification {
            moment: self.now(),
            proposal: self.row.id,
            build: self.build.id,
            level: self.request.level,
            required: gates
                .iter()
                .map(|gate| gate.id().as_str().to_owned())
                .collect(),
            skill: self.skill.digest,
            test: self.test.digest,
        })?;
        self.begun = Some(row.clone());
        let site = self.site();
        let mut outcomes = Vec::new();
        for gate in gates {
            let id = gate.id();
            observer.started(id);
            let watch = Stopwatch::start();
            let mut answer = gate
                .run(&site)
                .await
                .map_err(|source| VerifyStepError::Obstacle { gate: id, source })?;
            if gate.runs_tests() {
                answer
                    .verdict
                    .merge(touched(&before, &self.workspace.changes()?));
            }
            let verdict = bounded(&answer.verdict);
            let log_digest = if answer.log.is_empty() {
                None
            } else {
                Some(ledger.put_artifact("GATE_LOG", &answer.log)?)
            };
            let outcome = SkillGateOutcome {
                gate: id,
                verdict,
                duration: watch.elapsed(),
                facts: answer.facts,
                log: log_digest,
            };
            ledger.record_skill_gate(&row, self.now(), &outcome.row())?;
            observer.ended(&outcome);
            outcomes.push(outcome);
        }
        let mut verdict = self.same_as_built();
        for outcome in &outcomes {
            verdict.merge(outcome.verdict.clone());
        }
        let report = to_canonical_json(&self.report(&row, &outcomes, &verdict))?;
        let kind = SkillArtifactKind::VerificationReport;
        let report = ledger.keep_skill_artifact(
            self.row.id,
            Some(self.build.id),
            kind,
            &report,
            self.now(),
        )?;
        let (end, status) = match verdict.passes() {
            true => (VerificationEnd::Passed, SkillStatus::Verified),
            false => (VerificationEnd::Failed, SkillStatus::Built),
        };
        ledger.end_verification(&row, self.now(), end)?;
        Ok(VerificationResult {
            verdict,
            gates: outcomes,
            row,
            status,
            report,
        })
    }

    fn now(&self) -> Moment {
        Moment::now(self.world.clock)
    }

    fn site(&self) -> GateSite<'_> {
        GateSite {
            world: self.world,
            name: self.request.name,
            package: self.project.package(),
            paths: &self.paths,
            class: self.row.side_effect,
            grants: &self.grants,
            policy: &self.policy,
            skill: &self.skill,
            test: &self.test,
            copy: self.workspace.root(),
            scratch: self.workspace.scratch(),
            tools: &self.tools,
            timeout: self.request.timeout,
            level: self.request.level,
            io_schema: &self.io_schema,
            examples: self.examples.as_ref(),
        }
    }

    /// Whether these are the files that the attempt made. Others are verified too: it is what is verified that is promoted.
    fn same_as_built(&self) -> Verdict {
        let mut verdict = Verdict::default();
        for (source, built) in [
            (&self.skill, self.build.skill),
            (&self.test, self.build.test),
        ] {
            if built != Some(source.digest) {
                verdict.push(Finding::warning(
                    Code::new("forge-not-as-built"),
                    source.path.to_string(),
                    "The file was changed after the build. What is verified, and can be promoted, is the file as it is now.",
                ));
            }
        }
        verdict
    }

    fn report(
        &self,
        row: &VerificationRow,
        outcomes: &[SkillGateOutcome],
        verdict: &Verdict,
    ) -> Value {
        let tools: Vec<Value> = self
            .tools
            .all()
            .map(|tool| json!({ "name": tool.name, "version": tool.version }))
            .to_vec();
        let omitted = self.workspace.omitted();
        let named: Vec<Value> = omitted
            .iter()
            .take(MAX_OMITTED)
            .map(|left| json!({ "path": left.path.to_string_lossy(), "why": left.reason.to_string() }))
            .collect();
        json!({
            "schema_version": FORM, "name": self.row.name, "verification": row.id, "build": row.build, "level": row.level,
            "skill_digest": row.skill, "test_digest": row.test, "side_effect_class": self.row.side_effect,
            "started_at": row.started_at, "tools": tools, "verdict": verdict.outcome(), "findings": verdict.findings(),
            "gates": outcomes.iter().map(SkillGateOutcome::document).collect::<Vec<_>>(),
            "left_out": { "count": omitted.len() as u64 + self.workspace.more_omitted(), "paths": named },
            "sandbox": self.world.strength.as_str(),
        })
    }
}

impl SkillGateOutcome {
    /// The outcome as documents show it.
    #[must_use]
    pub fn document(&self) -> Value {
        json!({
            "gate": self.gate, "verdict": self.verdict.outcome(), "duration_ms": self.millis(), "findings": self.verdict.findings(),
            "facts": self.facts, "log": self.log,
        })
    }

    /// How long it took, in milliseconds.
    #[must_use]
    pub fn millis(&self) -> u64 {
        u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX)
    }

    fn row(&self) -> SkillGateRow {
        SkillGateRow {
            gate: self.gate.as_str().to_owned(),
            passed: self.verdict.passes(),
            duration_ms: self.millis(),
            findings: json!(self.verdict.findings()),
            log: self.log,
        }
    }
}

/// The held-out examples of a skill; nothing where it has none.
fn held_out(
    ledger: &Ledger,
    row: &SkillRow,
    schema: &IoSchema,
) -> Result<Option<Vec<HeldOutExample>>, String> {
    let artifacts = ledger
        .skill_artifacts(row.id)
        .map_err(|error| error.to_string())?;
    for artifact in artifacts.iter().filter(|artifact_row| {
        artifact_row.kind == SkillArtifactKind::Note && artifact_row.build.is_none()
    }) {
        let bytes = ledger
            .artifact(&artifact.digest)
            .map_err(|error| error.to_string())?;
        let bytes = bytes.ok_or_else(|| format!("the artifact {} is gone", artifact.digest))?;
        let examples =
            HeldOutExample::parse_stored(&bytes, schema).map_err(|error| error.to_string())?;
        if examples.is_some() {
            return Ok(examples);
        }
    }
    Ok(None)
}

/// What the tests changed in the copy, which complete isolation prevents.
fn touched(before: &[WorkspaceChange], after: &[WorkspaceChange]) -> Verdict {
    let mut verdict = Verdict::default();
    for change in after.iter().filter(|change| !before.contains(change)) {
        verdict.push(Finding::error(
            Code::new("forge-copy-changed"),
            change.path.to_string_lossy(),
            "Something that the gates ran changed the project around the skill. Write below tmp_path in a test.",
        ));
    }
    for change in before
        .iter()
        .filter(|change| !after.iter().any(|now| now.path == change.path))
    {
        verdict.push(Finding::error(
            Code::new("forge-copy-changed"),
            change.path.to_string_lossy(),
            "Something that the gates ran changed the files that are verified. Write below tmp_path in a test.",
        ));
    }
    verdict
}
