//! The step: a trusted skill is run, with exactly the approved bytes.
//!
//! The file is read once. The digest of what was read is compared with the promotion in the ledger, and those same bytes are handed to the
//! runner: what is put in the file's place afterwards is neither read nor run.
//!
//! A run takes no lock: it changes nothing of the skill, and two of them may go on side by side. Who builds over a trusted skill is refused
//! by the status, and a skill that is demoted meanwhile has no next run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crucible_ledger::{
    Ledger, LedgerError, Moment, NewSkillRun, PromotionRow, SideEffect, SkillRow, SkillRunOutcome,
    SkillStatus,
};
use crucible_model::{
    Code, Digest, ExitStatus, Finding, RepoPath, RepoPathError, Secret, Verdict, short_line,
};
use crucible_sandbox::{Captured, IsolationLevel, IsolationReceipt};
use crucible_secrets::Scanner;
use serde_json::{Value, json};

use super::{
    CallResult, LEFT_SOMETHING, RunnerError, SkillCall, SkillCode, SkillEnd, StagingError, execute,
    find_python, granted, staging,
};
use crate::context::ForgeContext;
use crate::grants::{Grants, GrantsError, SecretName};
use crate::io_schema::{IoSchema, IoSchemaError, IoSide};
use crate::name::SkillName;
use crate::paths::SkillPaths;
use crate::project::ForgeProject;
use crate::registry::{SkillRegistry, UnhashedPolicy};
use crate::status::SkillStep;
use crate::trust::{TrustError, demote_failing, read_skill_file};

/// The longest hint of a finding that quotes a skill, in characters.
const SHOWN: usize = 400;

/// What is to be run.
#[derive(Debug)]
pub struct RunRequest<'a> {
    /// Which skill.
    pub name: &'a SkillName,
    /// What goes in.
    pub input: &'a Value,
    /// How long it may take.
    pub timeout: Duration,
    /// What is done about an entry of the registry that has no digest.
    pub unhashed: UnhashedPolicy,
    /// The user's Python; none for `python3` of the `PATH`.
    pub python: Option<&'a Path>,
    /// Where the user's packages for skills lie.
    pub site_packages: &'a [PathBuf],
    /// After how many failures in a row the skill is demoted; zero for never.
    pub demote_after: u32,
}

/// What came of it.
#[derive(Debug)]
pub struct SkillRunReport {
    /// How it ended, as the ledger has it.
    pub outcome: SkillRunOutcome,
    /// What was found.
    pub verdict: Verdict,
    /// How the skill ended, where it ran. Where its result is not of its form, it is not in the report.
    pub end: Option<SkillEnd>,
    /// The digest of the bytes that ran, or would have; none where the file cannot be read.
    pub skill: Option<Digest>,
    /// The promotion that it was run by, or refused by.
    pub promotion: Option<u64>,
    /// What it printed.
    pub printed: Captured,
    /// How long it took.
    pub duration: Duration,
    /// The isolation in force, if it ran.
    pub receipt: Option<IsolationReceipt>,
}

impl SkillRunReport {
    /// Returns the result of the skill, if it gave one.
    #[must_use]
    pub fn result(&self) -> Option<&Value> {
        match &self.end {
            Some(SkillEnd::Returned(value)) => Some(value),
            Some(_) | None => None,
        }
    }

    /// Returns how the command ends.
    #[must_use]
    pub fn exit_status(&self) -> ExitStatus {
        match (self.outcome, &self.end) {
            (SkillRunOutcome::Succeeded, _) => ExitStatus::Success,
            (SkillRunOutcome::Failed, Some(SkillEnd::TimedOut)) => ExitStatus::TimedOut,
            (SkillRunOutcome::Failed, Some(SkillEnd::HoldsSecret { .. })) => {
                ExitStatus::SecretDetected
            }
            (SkillRunOutcome::Failed | SkillRunOutcome::Denied | SkillRunOutcome::Refused, _) => {
                ExitStatus::Refused
            }
        }
    }
}

/// Why nothing was run, and nothing recorded.
#[derive(Debug, thiserror::Error)]
pub enum RunStepError {
    /// The ledger knows no such skill in this project.
    #[error("this project has no skill {name}")]
    Unknown {
        /// The name as given.
        name: SkillName,
        /// Whether the registry of the project names it.
        listed: RegistryListing,
    },
    /// What goes in does not fit.
    #[error("the input does not fit the schema of the skill {name}: {}", problems.join("; "))]
    Input {
        /// The skill that was to run.
        name: SkillName,
        /// What does not fit.
        problems: Vec<String>,
    },
    /// What the ledger has of the skill cannot be read.
    #[error(
        "what the ledger has of the skill {name} cannot be read: {why}; run `crucible ledger verify`"
    )]
    Record {
        /// The skill that was to run.
        name: SkillName,
        /// What is wrong.
        why: String,
    },
    /// It could not be started.
    #[error(transparent)]
    Runner(#[from] RunnerError),
    /// The ledger cannot be read or written.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// What an earlier run left half done cannot be settled.
    #[error(transparent)]
    Staging(#[from] StagingError),
    /// It could not be demoted.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// A name makes no path.
    #[error(transparent)]
    Path(#[from] RepoPathError),
}

/// Whether a project's registry names a skill that this machine's ledger does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegistryListing {
    /// It does; only the author of that file says so.
    InRegistry,
    /// It does not.
    Nowhere,
}

/// Runs a skill of this project. What ran or was refused is in the ledger when this returns; a run whose future is dropped is not.
///
/// # Errors
///
/// [`RunStepError`] when nothing was run; nothing is recorded then.
pub async fn run_skill(
    world: &ForgeContext<'_>,
    ledger: &mut Ledger,
    project: &ForgeProject,
    request: &RunRequest<'_>,
) -> Result<SkillRunReport, RunStepError> {
    let name = request.name;
    let registry = SkillRegistry::read(project);
    let Some(row) = ledger.skill(project.key(), name.as_str())? else {
        let listed = matches!(&registry, Ok(Some(registry)) if registry.names(name));
        let listed = if listed {
            RegistryListing::InRegistry
        } else {
            RegistryListing::Nowhere
        };
        return Err(RunStepError::Unknown {
            name: name.clone(),
            listed,
        });
    };
    let trust = ledger.skill_trust(project.key(), name.as_str())?;
    let paths = project.paths(name)?;
    let Taken {
        skill,
        bytes,
        mut verdict,
    } = take(project, name, &paths, row.status, trust.as_ref());
    if let Some(trust) = &trust {
        verdict.merge(SkillRegistry::judge(
            &registry,
            name,
            &paths,
            &row,
            trust,
            request.unhashed,
        ));
        verdict.merge(judge_test(
            name,
            &read_skill_file(project, &paths.test),
            trust,
        ));
    }
    let (Some(trust), Some(bytes), true) = (trust.as_ref(), bytes, verdict.passes()) else {
        let report = SkillRunReport {
            outcome: SkillRunOutcome::Refused,
            verdict,
            end: None,
            skill,
            promotion: trust.map(|row| row.event),
            printed: Captured::default(),
            duration: Duration::ZERO,
            receipt: None,
        };
        record(world, ledger, &row, &report)?;
        return Ok(report);
    };
    let unreadable = |why: String| RunStepError::Record {
        name: name.clone(),
        why,
    };
    let schema = IoSchema::from_value(row.io_schema.clone())
        .map_err(|error: IoSchemaError| unreadable(error.to_string()))?;
    let grants: Grants = serde_json::from_value(row.grants.clone())
        .map_err(|error| unreadable(error.to_string()))?;
    grants.check(row.side_effect).map_err(|error| match error {
        GrantsError::Place(refused) => RunnerError::from(refused).into(),
        error => unreadable(error.to_string()),
    })?;
    let problems = schema.problems(IoSide::Input, request.input);
    if !problems.is_empty() {
        return Err(RunStepError::Input {
            name: name.clone(),
            problems,
        });
    }
    let python = find_python(world, request.python).await?;
    let places: Vec<RepoPath> = grants.write_paths.iter().filter_map(granted).collect();
    staging::recover(project, &world.home, &paths, &places).await?;
    let code = SkillCode {
        paths,
        package: project.package().clone(),
        skill: bytes,
    };
    let ran = execute(
        world,
        &SkillCall {
            code: &code,
            class: row.side_effect,
            grants: &grants,
            secrets: secrets(world, &grants)?,
            input: request.input,
            timeout: request.timeout,
            project_root: project.root(),
            python: &python,
            site_packages: request.site_packages,
        },
    )
    .await?;
    let (mut outcome, found) = judge_run(name, row.side_effect, &schema, &ran);
    verdict.merge(found);
    if let (SkillRunOutcome::Succeeded, Some(staging)) = (outcome, &ran.staging)
        && let Err(error) = staging
            .copy_to_project(project, &world.home, &code.paths)
            .await
    {
        outcome = SkillRunOutcome::Failed;
        verdict.push(copy_failed_finding(name, &error));
    }
    let mut report = SkillRunReport {
        outcome,
        verdict,
        skill,
        promotion: Some(trust.event),
        printed: ran.printed,
        duration: ran.duration,
        receipt: Some(ran.receipt),
        end: Some(ran.end).filter(|end| {
            outcome == SkillRunOutcome::Succeeded || !matches!(end, SkillEnd::Returned(_))
        }),
    };
    record(world, ledger, &row, &report)?;
    if let Some(change) = demote_failing(world, ledger, project, name, trust, request.demote_after)?
    {
        let why = change.promotion.map(|row| row.reason).unwrap_or_default();
        let hint = format!(
            "It is trusted no more: {why}. Look into it, then `crucible skill verify {name}` and promote it again, or build it again."
        );
        report.verdict.push(Finding::warning(
            Code::new("forge-run-demoted"),
            name.to_string(),
            hint,
        ));
        report.verdict.merge(change.verdict);
    }
    Ok(report)
}

/// A skill's file as it was read, once.
struct Taken {
    /// The digest of what was read; none where nothing could be.
    skill: Option<Digest>,
    /// What may be run: the bytes of this digest. None if they are not approved.
    bytes: Option<Vec<u8>>,
    verdict: Verdict,
}

/// Reads the file of a skill, and returns its bytes if they are the approved ones.
fn take(
    project: &ForgeProject,
    name: &SkillName,
    paths: &SkillPaths,
    status: SkillStatus,
    trust: Option<&PromotionRow>,
) -> Taken {
    let read = read_skill_file(project, &paths.skill);
    let skill = read.as_deref().ok().map(Digest::compute);
    let verdict = judge_bytes(name, status, trust, &read, skill.as_ref());
    Taken {
        skill,
        bytes: read.ok().filter(|_| verdict.passes()),
        verdict,
    }
}

/// Whether the bytes that were read are approved.
fn judge_bytes(
    name: &SkillName,
    status: SkillStatus,
    trust: Option<&PromotionRow>,
    read: &Result<Vec<u8>, String>,
    digest: Option<&Digest>,
) -> Verdict {
    let refuse =
        |code: Code, hint: String| Verdict::new(vec![Finding::error(code, name.to_string(), hint)]);
    let Some(trust) = trust else {
        let why = match SkillStep::Run.check(name, status) {
            Ok(()) => format!("the skill {name} is not approved"),
            Err(refused) => {
                let messages = [Some(refused.to_string()), refused.hint()];
                messages
                    .into_iter()
                    .flatten()
                    .collect::<Vec<_>>()
                    .join("; ")
            }
        };
        return refuse(Code::new("forge-run-untrusted"), format!("Not run: {why}."));
    };
    match (read, digest) {
        (Ok(_), Some(digest)) if *digest == trust.skill => Verdict::default(),
        (Ok(_), digest) => refuse(
            Code::new("forge-run-changed"),
            format!(
                "Its file is not what {} answered for ({} now, {} then). Put that back, or demote it, verify what is there and promote that.",
                short_line(&trust.approved_by, 80),
                digest.map(Digest::short).unwrap_or_default(),
                trust.skill.short()
            ),
        ),
        (Err(why), _) => refuse(
            Code::new("forge-run-unreadable"),
            format!("Its file cannot be read: {why}. Put back what was promoted."),
        ),
    }
}

/// Whether the test is the approved one. It is not run with the skill, so another test is reported and refuses nothing.
fn judge_test(name: &SkillName, read: &Result<Vec<u8>, String>, trust: &PromotionRow) -> Verdict {
    let what = match read {
        Ok(bytes) if Digest::compute(bytes) == trust.test => return Verdict::default(),
        Ok(_) => "is not the one that was promoted with it".to_owned(),
        Err(why) => format!("cannot be read: {why}"),
    };
    let hint = format!(
        "The test of this skill {what}. Put back what was promoted, or demote the skill, verify it with its new test and promote that."
    );
    Verdict::new(vec![Finding::warning(
        Code::new("forge-run-test-changed"),
        name.to_string(),
        short_line(&hint, SHOWN),
    )])
}

/// What came of a run: how it counts, and why.
fn judge_run(
    name: &SkillName,
    class: SideEffect,
    schema: &IoSchema,
    ran: &CallResult,
) -> (SkillRunOutcome, Verdict) {
    let mut verdict = isolation(name, &ran.receipt);
    // A skill chose some of these words: what looks like a secret goes before anything is cut.
    let error = |code: Code, hint: String| {
        let hint = Scanner::builtin().redact(&hint).text;
        Finding::error(code, name.to_string(), short_line(&hint, SHOWN))
    };
    for left in &ran.left_behind {
        let path = Scanner::builtin().redact(&left.path).text;
        let (path, why) = (short_line(&path, SHOWN / 2), left.why.as_str());
        let hint = format!("It wrote or changed {path}: {why}. Nothing of what it wrote was kept.");
        verdict.push(error(Code::new("forge-run-left-behind"), hint));
    }
    let (mut outcome, finding) = match &ran.end {
        SkillEnd::Returned(value) => {
            let problems = schema.problems(IoSide::Output, value);
            if problems.is_empty() {
                return (SkillRunOutcome::Succeeded, verdict);
            }
            let hint = format!(
                "Its result does not fit its schema: {}",
                problems.join("; ")
            );
            (
                SkillRunOutcome::Failed,
                error(Code::new("forge-run-output"), hint),
            )
        }
        SkillEnd::Raised { kind, message, .. } => (
            SkillRunOutcome::Failed,
            error(
                Code::new("forge-run-raised"),
                format!("It raised {kind}: {message}"),
            ),
        ),
        SkillEnd::Denied { what } => {
            let hint = format!(
                "It tried what a skill of the class {} may not do: {what}",
                class.as_str()
            );
            (
                SkillRunOutcome::Denied,
                error(Code::new("forge-run-denied"), hint),
            )
        }
        SkillEnd::HoldsSecret { secret } => {
            let hint =
                format!("Its result holds the value of the secret {secret}, and is not given out.");
            (
                SkillRunOutcome::Failed,
                error(Code::new("forge-run-secret"), hint),
            )
        }
        SkillEnd::TimedOut => {
            let hint = format!(
                "It was ended after {:.1} s; give it more time with --timeout.",
                ran.duration.as_secs_f64()
            );
            (
                SkillRunOutcome::Failed,
                error(Code::new("forge-run-timeout"), hint),
            )
        }
        SkillEnd::Broken { why } => (
            SkillRunOutcome::Failed,
            error(
                Code::new("forge-run-no-result"),
                format!("It gave no result: {why}."),
            ),
        ),
    };
    verdict.push(finding);
    if outcome != SkillRunOutcome::Denied && !ran.left_behind.is_empty() {
        let hint = format!(
            "It tried what a skill of the class {} may not do: {LEFT_SOMETHING}",
            class.as_str()
        );
        verdict.push(error(Code::new("forge-run-denied"), hint));
        outcome = SkillRunOutcome::Denied;
    }
    (outcome, verdict)
}

/// What a skill wrote did not come to the project, so its run failed.
fn copy_failed_finding(name: &SkillName, error: &StagingError) -> Finding {
    let message = Scanner::builtin()
        .redact(&error.to_string())
        .text
        .into_owned();
    let hint = format!("Nothing of what it wrote was kept: {message}.");
    Finding::error(
        Code::new("forge-run-not-kept"),
        name.to_string(),
        short_line(&hint, SHOWN),
    )
}

/// What did not stand around a run.
fn isolation(name: &SkillName, receipt: &IsolationReceipt) -> Verdict {
    if receipt.level == IsolationLevel::Full {
        return Verdict::default();
    }
    let missing: Vec<String> = receipt
        .missing
        .iter()
        .map(|missing_layer| missing_layer.layer.to_string())
        .collect();
    let hint = format!(
        "It ran without complete isolation ({}), so nothing kept it to its class. Set [sandbox] strength to required.",
        missing.join(", ")
    );
    Verdict::new(vec![Finding::warning(
        Code::new("forge-run-walls"),
        name.to_string(),
        hint,
    )])
}

/// The granted secrets, from the environment that the command began with.
fn secrets(
    world: &ForgeContext<'_>,
    grants: &Grants,
) -> Result<Vec<(SecretName, Secret)>, RunnerError> {
    let value = |name: &SecretName| match world.env.get(name.as_str()) {
        Some(value) if !value.is_empty() => Ok((name.clone(), Secret::new(value.to_owned()))),
        Some(_) | None => Err(RunnerError::SecretMissing { name: name.clone() }),
    };
    grants.secrets.iter().map(value).collect()
}

fn record(
    world: &ForgeContext<'_>,
    ledger: &mut Ledger,
    row: &SkillRow,
    report: &SkillRunReport,
) -> Result<(), LedgerError> {
    // A skill chose some of these words.
    let findings: Vec<Finding> = report
        .verdict
        .findings()
        .iter()
        .map(|finding| {
            let hint = Scanner::builtin().redact(&finding.hint).text.into_owned();
            Finding {
                hint,
                ..finding.clone()
            }
        })
        .collect();
    ledger.record_skill_run(&NewSkillRun {
        moment: Moment::now(world.clock),
        proposal: row.id,
        promotion: report.promotion,
        skill: report.skill.unwrap_or_else(|| Digest::compute(b"")),
        outcome: report.outcome,
        findings: json!(findings),
        duration_ms: u64::try_from(report.duration.as_millis()).unwrap_or(u64::MAX),
    })
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests exchange files by hand")]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn promoted(skill: &[u8]) -> PromotionRow {
        PromotionRow {
            event: 7,
            proposal: 1,
            verification: Some(1),
            from: SkillStatus::Verified,
            to: SkillStatus::Trusted,
            approved_by: "Ada".to_owned(),
            reason: "read".to_owned(),
            skill: Digest::compute(skill),
            test: Digest::compute(b"test"),
            at: "2026-01-02T03:04:05Z".parse().unwrap(),
        }
    }

    struct Setup {
        _room: tempfile::TempDir,
        project: ForgeProject,
        name: SkillName,
        paths: SkillPaths,
        file: PathBuf,
    }

    impl Setup {
        fn new() -> Self {
            let temp_dir = tempfile::tempdir().unwrap();
            let root = temp_dir.path().canonicalize().unwrap();
            let project = ForgeProject::new(
                root.clone(),
                Digest::compute(b"p"),
                "skillset".parse().unwrap(),
            );
            let name: SkillName = "word_count".parse().unwrap();
            let paths = project.paths(&name).unwrap();
            let file = root.join(paths.skill.as_str());
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            Self {
                _room: temp_dir,
                project,
                name,
                paths,
                file,
            }
        }

        fn take(&self, trust: Option<&PromotionRow>) -> Taken {
            let status = if trust.is_some() {
                SkillStatus::Trusted
            } else {
                SkillStatus::Verified
            };
            take(&self.project, &self.name, &self.paths, status, trust)
        }

        fn codes(&self, trust: Option<&PromotionRow>) -> Vec<String> {
            let taken = self.take(trust);
            assert_eq!(taken.bytes.is_some(), taken.verdict.passes());
            taken
                .verdict
                .errors()
                .map(|finding| finding.code.to_string())
                .collect()
        }
    }

    #[test]
    fn only_approved_bytes_may_run() {
        let (setup, trust) = (Setup::new(), promoted(b"good"));
        assert_eq!(setup.codes(Some(&trust)), ["forge-run-unreadable"]);
        std::fs::write(&setup.file, "good").unwrap();
        assert!(setup.codes(Some(&trust)).is_empty());
        assert_eq!(setup.codes(None), ["forge-run-untrusted"]);
        std::fs::write(&setup.file, "good ").unwrap();
        assert_eq!(setup.codes(Some(&trust)), ["forge-run-changed"]);
        let elsewhere = setup.file.with_extension("txt");
        std::fs::rename(&setup.file, &elsewhere).unwrap();
        std::fs::write(&elsewhere, "good").unwrap();
        std::os::unix::fs::symlink(&elsewhere, &setup.file).unwrap();
        assert_eq!(setup.codes(Some(&trust)), ["forge-run-unreadable"]);
        std::fs::remove_file(&setup.file).unwrap();
        std::fs::write(&setup.file, vec![b'#'; 10 << 20]).unwrap();
        assert_eq!(setup.codes(Some(&trust)), ["forge-run-unreadable"]);
    }

    /// Exchanges the file while it is read, in one step and byte by byte, until each of both contents was met so often.
    fn exchange(meetings: u32) {
        let (good, evil) = (b"good ".repeat(2_000), b"evil ".repeat(2_000));
        let (setup, trust) = (Setup::new(), promoted(&good));
        std::fs::write(&setup.file, &good).unwrap();
        let over = AtomicBool::new(false);
        let (mut taken, mut refused, mut wrong) = (0_u32, 0_u32, false);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                let temporary = setup.file.with_extension("new");
                for round in 0_u32.. {
                    if over.load(Ordering::Relaxed) {
                        break;
                    }
                    let bytes = if round % 2 == 0 { &evil } else { &good };
                    if round % 4 < 2 {
                        std::fs::write(&temporary, bytes).unwrap();
                        std::fs::rename(&temporary, &setup.file).unwrap();
                    } else {
                        std::fs::write(&setup.file, bytes).unwrap();
                    }
                }
            });
            while !wrong && (taken <= meetings || refused <= meetings) {
                match setup.take(Some(&trust)).bytes {
                    Some(bytes) => {
                        wrong |= bytes != good;
                        taken += 1;
                    }
                    None => refused += 1,
                }
            }
            over.store(true, Ordering::Relaxed);
        });
        assert!(!wrong, "other bytes were taken");
    }

    #[test]
    fn swapped_file_never_yields_other_bytes() {
        exchange(5);
    }

    mod slow {
        #[test]
        fn repeatedly_swapped_file_never_yields_other_bytes() {
            super::exchange(100);
        }
    }
}
