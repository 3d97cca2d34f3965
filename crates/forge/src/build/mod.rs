//! The step `build`: one attempt of an agent at a skill, on a copy of the project.
//!
//! How it works: under the skill's lock what an earlier build left half done is settled, the project is copied, the packet put together and
//! recorded with the attempt that begins. The agent works on the copy. Then the copy is compared with what it was, the changes are judged, and
//! the two files are brought to the project. However it ends, the attempt is ended in the ledger, with what the agent printed and with our own
//! diff of the two files.
//!
//! What always holds: what an agent says of itself decides nothing; an attempt that failed leaves the project as it was; a packet with a secret
//! is neither kept nor shown to anybody; a process that is killed leaves an attempt that the next step of the skill ends: as one that
//! succeeded where both files had come to the project, and else as aborted ([`settle_builds`]).

mod settle;
#[cfg(test)]
mod tests;
mod watch;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crucible_host::clock::Stopwatch;
use crucible_host::lock::LockError;
use crucible_ledger::{
    Ledger, LedgerError, Moment, NewSkillBuild, SkillArtifactKind, SkillBuildEnd, SkillBuildRow,
    SkillRow,
};
use crucible_model::{
    ByteLimit, Code, Digest, Finding, Level, PromptText, RepoPath, RepoPathError, Untrusted,
};
use crucible_patch::make_diff;
use crucible_repo::{LinkPolicy, TreeEditError, read_tree_file};
use crucible_sandbox::IsolationReceipt;
use crucible_secrets::{ProvidedValues, Scanner};
use serde_json::{Map, Value, json};

use crate::agent::{AgentEnd, AgentError, AgentOutcome, AgentTask, SkillAgent};
use crate::answer_form::AnswerForm;
use crate::context::ForgeContext;
use crate::failure::{FailureKind, KEY, SkillFailure};
use crate::name::SkillName;
use crate::packet::{PacketParts, build_packet};
use crate::paths::SkillPaths;
use crate::policy::MAX_POLICY_BYTES;
use crate::project::{ForgeProject, POLICY_FILE};
use crate::python::MAX_SKILL_BYTES;
use crate::research::{EscalationTrigger, needs_review, record_review, retry_material};
use crate::status::{SkillStep, StepRefused};
use crate::trust::Approval;
use crate::workspace::{
    BuiltFile, CopyBackError, NOT_DONE, Scope, SkillWorkspace, UNSEEN, WorkspaceError, check_built,
    check_scope, copy_back,
};

pub use settle::SettleError;
pub(crate) use settle::settle_builds;
use settle::{record_build_files, remove_build_record};
use watch::CopyWatch;
pub use watch::FileChange;

const COPY_BACK: Code = Code::new("forge-build-copy-back");
const NOT_ASKED: Code = Code::new("forge-build-not-asked");

/// How often the copy is looked at while an agent works.
const LOOK: Duration = Duration::from_millis(300);
/// The most files that are reported between two looks.
const MAX_CHANGES: usize = 50;

/// What is to be built, and by whom.
pub struct BuildRequest<'a> {
    /// The skill to build; it must have been proposed.
    pub name: &'a SkillName,
    /// Who writes it.
    pub agent: &'a dyn SkillAgent,
    /// How long the agent may work.
    pub timeout: Duration,
    /// How much it may write to the disk.
    pub disk: ByteLimit,
    /// The person who reviewed the failure before, if it was reviewed.
    pub review: Option<&'a Approval>,
}

/// Watches an attempt.
pub trait BuildObserver {
    /// Something that is worth a line.
    fn note(&mut self, line: &str);

    /// The agent works, since so long.
    fn working(&mut self, agent: &str, since: Duration);

    /// The agent did something to a file of its copy; the path may hold anything.
    fn touched(&mut self, path: &Path, what: FileChange);
}

/// An attempt that came to its end.
#[derive(Debug)]
pub struct SkillBuildReport {
    /// The attempt, as it began.
    pub build: SkillBuildRow,
    /// What came of it.
    pub outcome: SkillBuildOutcome,
    /// Our own diff of the skill and its test against what the project held, without secrets; empty if nothing differs.
    pub diff: Vec<u8>,
    /// The digest of the packet.
    pub packet: Digest,
    /// What the agent printed, without secrets: an artifact.
    pub log: Option<Digest>,
    /// The isolation of the agent; nothing if it ran elsewhere.
    pub receipt: Option<IsolationReceipt>,
    /// What was measured.
    pub facts: Map<String, Value>,
}

/// What came of an attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum SkillBuildOutcome {
    /// Both files are in the project.
    Built {
        /// The digest of the skill's file.
        skill: Digest,
        /// The digest of its test.
        test: Digest,
        /// What deserves a look.
        findings: Vec<Finding>,
    },
    /// It came to nothing, and the project is as it was.
    Failed(SkillFailure),
}

/// Why no attempt was made, or why its outcome is unknown.
#[derive(Debug, thiserror::Error)]
pub enum SkillBuildError {
    /// The project has no such skill.
    #[error("this project has no skill {name}")]
    Unknown {
        /// The name as given.
        name: SkillName,
    },
    /// It stands elsewhere.
    #[error(transparent)]
    Step(#[from] StepRefused),
    /// A person has to look at what failed before.
    #[error(
        "a person has to look at what failed before {name} is tried again: {}",
        names(triggers)
    )]
    NeedsReview {
        /// The skill with the failed attempt.
        name: SkillName,
        /// Why.
        triggers: Vec<EscalationTrigger>,
    },
    /// The packet looks as if it held a secret, which is not shown.
    #[error(
        "the packet of the attempt holds what looks like a secret ({rule}); nothing was sent or kept"
    )]
    SecretInPacket {
        /// By which rule.
        rule: String,
    },
    /// Another process works on the skill.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The ledger cannot be used.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The project cannot be copied, or the copy not be looked at.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// A file of the project cannot be read.
    #[error(transparent)]
    Read(#[from] TreeEditError),
    /// What an earlier build left cannot be settled.
    #[error(transparent)]
    Unsettled(#[from] SettleError),
    /// The agent could not be asked; the attempt is recorded as failed.
    #[error(transparent)]
    Agent(AgentError),
    /// A name makes no path.
    #[error(transparent)]
    Path(#[from] RepoPathError),
}

fn names(triggers: &[EscalationTrigger]) -> String {
    let names: Vec<&str> = triggers.iter().map(|trigger| trigger.as_str()).collect();
    names.join(", ")
}

/// Makes one attempt.
///
/// # Errors
///
/// [`SkillBuildError`]. A failed attempt is an outcome, not an error.
pub async fn build_skill(
    world: &ForgeContext<'_>,
    project: &ForgeProject,
    ledger: &mut Ledger,
    request: &BuildRequest<'_>,
    witness: &mut dyn BuildObserver,
) -> Result<SkillBuildReport, SkillBuildError> {
    let BuildRequest { name, agent, .. } = *request;
    let _alone = project.lock(&world.home, name, "crucible skill build")?;
    settle_builds(world, project, ledger, name)?;
    let skill = ledger
        .skill(project.key(), name.as_str())?
        .ok_or_else(|| SkillBuildError::Unknown { name: name.clone() })?;
    SkillStep::Build.check(name, skill.status)?;
    let paths = project.paths(name)?;
    check_review(world, ledger, &skill, request)?;
    let workspace = SkillWorkspace::make(world, project).await?;
    tell_copy(&workspace, witness);
    if agent.form() == AnswerForm::WritesFiles {
        // Agents that look into git find one; nothing of it counts later.
        if let Err(error) = workspace.with_git(world).await {
            witness.note(&format!("the agent's copy has no git: {error}"));
        }
    }
    let (build, packet) = begin(world, project, ledger, &skill, request, &workspace, &paths)?;
    let attempt = Attempt {
        world,
        project,
        request,
        workspace: &workspace,
        paths: &paths,
        build,
    };
    attempt.carry_out(ledger, &packet, witness).await
}

/// Settles the attempts at a skill that an interrupted command left running ([`settle_builds`]).
///
/// # Errors
///
/// Fails when another process works on the skill, or the ledger cannot be written.
pub fn settle_interrupted(
    world: &ForgeContext<'_>,
    project: &ForgeProject,
    ledger: &mut Ledger,
    name: &SkillName,
) -> Result<(), SkillBuildError> {
    let _alone = project.lock(&world.home, name, "crucible skill build")?;
    Ok(settle_builds(world, project, ledger, name)?)
}

/// Refuses another attempt while a person has to look at what failed before; records that one did.
fn check_review(
    world: &ForgeContext<'_>,
    ledger: &mut Ledger,
    skill: &SkillRow,
    request: &BuildRequest<'_>,
) -> Result<(), SkillBuildError> {
    if let Some(review) = request.review {
        record_review(
            ledger,
            skill,
            review.by(),
            review.reason(),
            Moment::now(world.clock),
        )?;
    }
    let triggers = needs_review(ledger, skill)?;
    if triggers.is_empty() {
        return Ok(());
    }
    Err(SkillBuildError::NeedsReview {
        name: request.name.clone(),
        triggers,
    })
}

fn tell_copy(workspace: &SkillWorkspace, witness: &mut dyn BuildObserver) {
    let left_out = u64::try_from(workspace.omitted().len())
        .unwrap_or(u64::MAX)
        .saturating_add(workspace.more_omitted());
    witness.note(&format!(
        "copied {} bytes of the project, {left_out} paths left out",
        workspace.bytes()
    ));
}

/// Puts the packet together and begins the attempt with it.
fn begin(
    world: &ForgeContext<'_>,
    project: &ForgeProject,
    ledger: &mut Ledger,
    skill: &SkillRow,
    request: &BuildRequest<'_>,
    workspace: &SkillWorkspace,
    paths: &SkillPaths,
) -> Result<(SkillBuildRow, PromptText), SkillBuildError> {
    let BuildRequest { name, agent, .. } = *request;
    let previous = retry_material(ledger, skill)?;
    let policy_path: RepoPath = POLICY_FILE.parse()?;
    let policy = text_of(project.root(), &policy_path, MAX_POLICY_BYTES as u64)?;
    let standing = match agent.form() {
        AnswerForm::WritesFiles | AnswerForm::StandsAlready => Vec::new(),
        AnswerForm::AnswersWithFiles => {
            let mut standing = Vec::new();
            for path in paths.files() {
                if let Some(text) = text_of(workspace.root(), path, MAX_SKILL_BYTES as u64)? {
                    standing.push((path.as_str().to_owned(), text));
                }
            }
            standing
        }
    };
    let new = NewSkillBuild {
        moment: Moment::now(world.clock),
        proposal: skill.id,
        agent: agent.name(),
    };
    let mut packet = None;
    let build = ledger.begin_skill_build(&new, |row| {
        let text = build_packet(&PacketParts {
            name,
            package: project.package(),
            paths,
            skill,
            attempt: row.attempt,
            form: agent.form(),
            policy,
            standing,
            previous,
        });
        if let Some(found) = Scanner::builtin().scan(text.as_str().as_bytes()).first() {
            return Err(SkillBuildError::SecretInPacket {
                rule: found.rule.to_string(),
            });
        }
        let bytes = text.as_str().as_bytes().to_vec();
        packet = Some(text);
        Ok(bytes)
    })?;
    let packet = packet.ok_or_else(|| LedgerError::Unreadable {
        what: "the packet of an attempt".to_owned(),
    })?;
    Ok((build, packet))
}

/// The text of a file below `root`; nothing if it does not exist or is not text.
fn text_of(root: &Path, path: &RepoPath, most: u64) -> Result<Option<Untrusted>, SkillBuildError> {
    match read_tree_file(root, path, LinkPolicy::Refuse, ByteLimit(most)) {
        Ok(read) => Ok(read
            .bytes
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .map(Untrusted::new)),
        Err(TreeEditError::Blocked { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// An attempt that began.
struct Attempt<'a> {
    world: &'a ForgeContext<'a>,
    project: &'a ForgeProject,
    request: &'a BuildRequest<'a>,
    workspace: &'a SkillWorkspace,
    paths: &'a SkillPaths,
    build: SkillBuildRow,
}

impl Attempt<'_> {
    /// Lets the agent work, judges what it left, and ends the attempt.
    async fn carry_out(
        self,
        ledger: &mut Ledger,
        packet: &PromptText,
        witness: &mut dyn BuildObserver,
    ) -> Result<SkillBuildReport, SkillBuildError> {
        let ran = match self.work(packet, witness).await {
            Ok(ran) => ran,
            Err(error) => {
                let what = Scanner::builtin()
                    .redact(&error.to_string())
                    .text
                    .into_owned();
                let hint = "The agent could not be asked. Fix that, and build again.";
                let finding = Finding::error(NOT_ASKED, what, hint);
                let failure = SkillFailure {
                    kind: FailureKind::BuildError,
                    findings: vec![finding],
                    facts: Map::new(),
                    log: None,
                };
                self.end(ledger, &SkillBuildOutcome::Failed(failure))?;
                return Err(SkillBuildError::Agent(error));
            }
        };
        let log = match ran.log.as_slice() {
            [] => None,
            log => Some(self.keep(ledger, SkillArtifactKind::BuildLog, log)?),
        };
        let (mut outcome, files) = self.judge(&ran)?;
        let diff = self.diff(&files)?;
        if !diff.is_empty() {
            self.keep(ledger, SkillArtifactKind::PatchSummary, &diff)?;
        }
        if let SkillBuildOutcome::Built { skill, test, .. } = outcome
            && let Err(error) = self.bring([skill, test], &files)
        {
            let what = Scanner::builtin()
                .redact(&error.to_string())
                .text
                .into_owned();
            let hint = "The project is as it was. Put right what is in the way, and build again.";
            outcome = SkillBuildOutcome::Failed(SkillFailure {
                kind: FailureKind::BuildError,
                findings: vec![Finding::error(COPY_BACK, what, hint)],
                facts: Map::new(),
                log: None,
            });
        }
        if let SkillBuildOutcome::Failed(failure) = &mut outcome {
            failure.facts = ran.facts.clone();
            failure.log = log;
        }
        self.end(ledger, &outcome)?;
        remove_build_record(self.project, &self.world.home, self.paths);
        Ok(SkillBuildReport {
            build: self.build,
            outcome,
            diff,
            packet: Digest::compute(packet.as_str().as_bytes()),
            log,
            receipt: ran.receipt,
            facts: ran.facts,
        })
    }

    /// Puts both files, which have these digests, into the project.
    fn bring(&self, digests: [Digest; 2], files: &[BuiltFile]) -> Result<(), CopyBackError> {
        let home = &self.world.home;
        record_build_files(self.project, home, self.paths, &self.build, digests)?;
        copy_back(self.project, home, self.paths, files).map(drop)
    }

    /// Waits for the agent, and tells what it does meanwhile.
    async fn work(
        &self,
        packet: &PromptText,
        witness: &mut dyn BuildObserver,
    ) -> Result<AgentOutcome, AgentError> {
        let BuildRequest {
            agent,
            timeout,
            disk,
            ..
        } = *self.request;
        let task = AgentTask {
            world: self.world,
            workspace: self.workspace,
            paths: self.paths,
            packet,
            timeout,
            disk,
        };
        let name = agent.name();
        let mut watch = CopyWatch::on(self.workspace.root());
        let since = Stopwatch::start();
        if agent.form() != AnswerForm::StandsAlready {
            witness.working(&name, Duration::ZERO);
        }
        let mut work = agent.work(&task);
        let ran = loop {
            tokio::select! {
                ran = &mut work => break ran,
                () = tokio::time::sleep(LOOK) => {
                    tell_news(&mut watch, witness);
                    witness.working(&name, since.elapsed());
                }
            }
        };
        tell_news(&mut watch, witness);
        ran
    }

    /// Judges what the agent left; with the two files where they can be read as they were judged.
    fn judge(
        &self,
        ran: &AgentOutcome,
    ) -> Result<(SkillBuildOutcome, Vec<BuiltFile>), SkillBuildError> {
        let changes = match self.workspace.changes() {
            Ok(changes) => changes,
            // An agent that closes its copy has failed, and is counted among those that did.
            Err(error) => {
                let what = Scanner::builtin()
                    .redact(&error.to_string())
                    .text
                    .into_owned();
                let unseen = Finding::error(
                    UNSEEN,
                    what,
                    "The copy cannot be read, so the agent's changes are unknown.",
                );
                return Ok(self.came_to(ran, vec![unseen], Vec::new()));
            }
        };
        let at_first = |path: &&RepoPath| self.workspace.initial_digest(path).is_some();
        let current_paths: Vec<&RepoPath> =
            self.paths.files().into_iter().filter(at_first).collect();
        let form = self.request.agent.form();
        let scope = check_scope(
            &changes,
            &Scope {
                paths: self.paths,
                existing: &current_paths,
                form,
            },
        );
        let mut findings = scope.findings().to_vec();
        let mut files = Vec::new();
        match self.workspace.built(self.paths, &changes) {
            // Where something else was found, what there is of the two files is shown all the same.
            Ok(built) => files = built,
            // That a file is missing is told already, but not that the project has it.
            Err(error)
                if has_errors(&findings) && !matches!(error, CopyBackError::LeftOut { .. }) => {}
            Err(error) => {
                let hint = "The project is as it was.";
                findings.push(Finding::error(COPY_BACK, error.to_string(), hint));
            }
        }
        findings.extend(check_built(&files).findings().iter().cloned());
        let keys = ProvidedValues::new(&self.request.agent.keys());
        for file in files.iter().filter(|file| keys.are_in(&file.bytes)) {
            let hint = "The file holds a key that the agent was handed. Nothing of it was kept; look at what the agent read.";
            findings.push(Finding::error(KEY, file.path.as_str(), hint));
        }
        if findings.iter().any(|found| found.code == KEY) {
            files.clear();
        }
        Ok(self.came_to(ran, findings, files))
    }

    /// What came of it by how the agent ended and what was found in what it left.
    fn came_to(
        &self,
        ran: &AgentOutcome,
        findings: Vec<Finding>,
        files: Vec<BuiltFile>,
    ) -> (SkillBuildOutcome, Vec<BuiltFile>) {
        let failed = |kind, findings| {
            SkillBuildOutcome::Failed(SkillFailure {
                kind,
                findings,
                facts: Map::new(),
                log: None,
            })
        };
        let digest = |path: &RepoPath| {
            files
                .iter()
                .find(|file| file.path == *path)
                .map(|file| file.digest)
        };
        let outcome = match &ran.end {
            AgentEnd::TimedOut(finding) => failed(FailureKind::Timeout, led_by(finding, findings)),
            AgentEnd::Failed(finding) => failed(FailureKind::BuildError, led_by(finding, findings)),
            AgentEnd::Done if has_errors(&findings) => failed(FailureKind::GateViolation, findings),
            AgentEnd::Done => match (digest(&self.paths.skill), digest(&self.paths.test)) {
                (Some(skill), Some(test)) => SkillBuildOutcome::Built {
                    skill,
                    test,
                    findings,
                },
                _ => failed(FailureKind::Unknown, findings),
            },
        };
        (outcome, files)
    }

    /// Our own diff of what was built against what the project holds, without secrets. Empty where a file is not text.
    fn diff(&self, files: &[BuiltFile]) -> Result<Vec<u8>, SkillBuildError> {
        let mut before = BTreeMap::new();
        let mut after = BTreeMap::new();
        for file in files {
            after.insert(file.path.clone(), file.bytes.clone());
            let limit = ByteLimit(MAX_SKILL_BYTES as u64);
            match read_tree_file(self.project.root(), &file.path, LinkPolicy::Refuse, limit) {
                Ok(read) => drop(
                    read.bytes
                        .map(|bytes| before.insert(file.path.clone(), bytes)),
                ),
                Err(TreeEditError::Blocked { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let diff = make_diff(&before, &after).unwrap_or_default();
        let (diff, _) = Scanner::builtin().redact_bytes(&diff);
        Ok(diff)
    }

    fn keep(
        &self,
        ledger: &mut Ledger,
        kind: SkillArtifactKind,
        bytes: &[u8],
    ) -> Result<Digest, LedgerError> {
        let moment = Moment::now(self.world.clock);
        ledger.keep_skill_artifact(
            self.build.proposal,
            Some(self.build.id),
            kind,
            bytes,
            moment,
        )
    }

    fn end(&self, ledger: &mut Ledger, outcome: &SkillBuildOutcome) -> Result<(), LedgerError> {
        let end = match outcome {
            SkillBuildOutcome::Built { skill, test, .. } => SkillBuildEnd::Succeeded {
                skill: *skill,
                test: *test,
            },
            SkillBuildOutcome::Failed(failure) => SkillBuildEnd::Failed(
                serde_json::to_value(failure).unwrap_or_else(|_| json!({ "kind": "UNKNOWN" })),
            ),
        };
        ledger.end_skill_build(&self.build, Moment::now(self.world.clock), &end)
    }
}

/// Why the agent did not finish, and what it left nevertheless. That its files are missing follows from that and is not reported.
fn led_by(end: &Finding, findings: Vec<Finding>) -> Vec<Finding> {
    let left = findings
        .into_iter()
        .filter(|found| !NOT_DONE.contains(&found.code));
    std::iter::once(end.clone()).chain(left).collect()
}

fn has_errors(findings: &[Finding]) -> bool {
    findings.iter().any(|found| found.level == Level::Error)
}

fn tell_news(watch: &mut CopyWatch, witness: &mut dyn BuildObserver) {
    let news = watch.news();
    for (path, what) in news.iter().take(MAX_CHANGES) {
        witness.touched(path, *what);
    }
    if let Some(more) = news.len().checked_sub(MAX_CHANGES).filter(|more| *more > 0) {
        witness.note(&format!("and {more} more files"));
    }
}
