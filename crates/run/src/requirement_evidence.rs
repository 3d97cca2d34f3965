//! What landed runs prove of the requirements of a spec.
//!
//! At a landing, the requirements of the run's own task are judged, and the matrix becomes an artifact of the run and a
//! digest in its signed statement. For a whole spec, all its landed runs count whose records verify and whose commits are
//! ancestors of the checked-out commit.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crucible_evidence::{
    EvidenceInput, EvidenceMatrix, LandedRun, NamedTest, RequirementTests, SpecFormat, SpecTask,
    TestOrigin, TestOutcome, evidence_findings, judge_evidence,
};
use crucible_ledger::Ledger;
use crucible_model::{ByteLimit, Code, Finding, Level, RepoPath, Verdict};
use crucible_repo::{CommitReader, Git, LandRequest, Oid, ProducedTree, RepoError};
use crucible_verify::{TestStatus, VerifyReport};

use crate::contract::RunRecord;
use crate::document;
use crate::error::RunError;
use crate::event_kind::{EventKind, full_gates_runs};
use crate::journal::Journal;
use crate::layout::{self, RunDir, full_gates_files};
use crate::state::RunState;
use crate::verify_record::verify_record;
use crate::world::World;

const RUN_REFUSED: Code = Code::new("evidence-run-refused");
const COMMIT_UNREACHED: Code = Code::new("evidence-commit-unreached");

/// The key of the event with the matrix of a landing.
const EVENT_KEY: &str = "evidence";
/// A file with tests is not larger.
const MAX_FILE: ByteLimit = ByteLimit(8 << 20);

/// A spec whose evidence is asked for.
#[derive(Debug, Clone, Copy)]
pub struct EvidenceRequest<'a> {
    /// The spec: its id, or the path of its folder in the repository.
    pub spec: &'a str,
    /// The format of the spec.
    pub format: SpecFormat,
    /// The requirements as they are now, in order.
    pub requirements: &'a [RequirementTests],
}

/// The evidence for a spec.
#[derive(Debug, Clone)]
pub struct SpecEvidence {
    /// The matrix.
    pub matrix: EvidenceMatrix,
    /// An error for each requirement that is not proven, and a warning for each landed run that does not count.
    pub verdict: Verdict,
}

/// Judges the requirements of a spec by the landed runs of the repository at `top`. Without a ledger there are no runs.
///
/// # Errors
///
/// Fails when the ledger or the repository cannot be read.
pub async fn spec_evidence(
    world: &World<'_>,
    top: &Path,
    ledger: Option<&Ledger>,
    request: EvidenceRequest<'_>,
) -> Result<SpecEvidence, RunError> {
    let git = world.repository(top).await?;
    let reader = CommitReader::open(world.sandbox.clone(), world.env, top)?;
    let head = git.tracked_state().await?.commit;
    let mut verdict = Verdict::default();
    let mut runs = match ledger {
        Some(ledger) => {
            landed_runs(world, &git, &reader, ledger, &head, request, &mut verdict).await?
        }
        None => Vec::new(),
    };
    runs.sort_by_key(|(landed, _)| *landed);
    let runs: Vec<LandedRun> = runs.into_iter().map(|(_, run)| run).collect();
    let defined = defined_at(&git, &head, request.requirements, &BTreeMap::new()).await?;
    let matrix = judge_evidence(&EvidenceInput {
        spec: request.spec,
        format: request.format,
        commit: head.as_str(),
        requirements: request.requirements,
        runs: &runs,
        defined: &defined,
    });
    verdict.merge(evidence_findings(&matrix));
    Ok(SpecEvidence { matrix, verdict })
}

/// Returns the tests of these requirements that the checked-out commit of the repository at `top` defines.
///
/// # Errors
///
/// Fails when the repository cannot be read.
pub async fn defined_tests(
    world: &World<'_>,
    top: &Path,
    requirements: &[RequirementTests],
) -> Result<BTreeSet<NamedTest>, RunError> {
    let git = world.repository(top).await?;
    let head = git.tracked_state().await?.commit;
    defined_at(&git, &head, requirements, &BTreeMap::new()).await
}

/// The landed runs of the spec that count, each with the position of its landing in the ledger.
async fn landed_runs(
    world: &World<'_>,
    git: &Git,
    reader: &CommitReader,
    ledger: &Ledger,
    head: &Oid,
    request: EvidenceRequest<'_>,
    verdict: &mut Verdict,
) -> Result<Vec<(u64, LandedRun)>, RunError> {
    let repo = git.top().to_string_lossy();
    let mut counted = Vec::new();
    for row in ledger.runs()? {
        if row.repo != repo || row.state != RunState::Landed.name() {
            continue;
        }
        // The ledger's own copy: the directory may be gone.
        let Some(record) = ledger
            .recorded_file(&row.id, layout::RUN)?
            .and_then(|bytes| document::read::<RunRecord>(&bytes).ok())
        else {
            continue;
        };
        let is_of_spec =
            |task: &&SpecTask| task.spec == request.spec && task.format == request.format;
        let Some(task) = record.task.as_ref().filter(is_of_spec) else {
            continue;
        };
        let dir = RunDir::of(&world.runs_root, &row.id);
        let checked = verify_record(world, &dir, ledger, None).await?;
        let first = checked
            .verdict
            .findings()
            .iter()
            .find(|finding| finding.level == Level::Error);
        let commit = match (first, checked.commit) {
            (None, Some(commit)) => commit,
            (first, _) => {
                let why = first.map_or_else(|| "it did not land".to_owned(), ToString::to_string);
                let hint = format!("its record does not verify, so it proves nothing: {why}");
                verdict.push(Finding::warning(RUN_REFUSED, row.id.as_str(), hint));
                continue;
            }
        };
        if !reader.is_ancestor(&commit, head).await? {
            let hint = format!("its commit {commit} is not in the history of {head}");
            verdict.push(Finding::warning(COMMIT_UNREACHED, row.id.as_str(), hint));
            continue;
        }
        let events = ledger.events(Some(&row.id))?;
        let landed = events
            .iter()
            .rfind(|event| event.event == EventKind::Landed.name())
            .map_or(0, |event| event.seq);
        let reports = reports(&dir, full_gates_runs(&events))?;
        let run = landed_run(&record, task, commit.as_str(), &reports);
        counted.push((landed, run));
    }
    Ok(counted)
}

/// The reports that a landing relies on: of the attempt, and of the gates of level `full` if they ran.
fn reports(dir: &RunDir, full: u64) -> Result<Vec<VerifyReport>, RunError> {
    let mut reports = vec![dir.read_json(layout::VERIFY_REPORT)?];
    if full > 0 {
        let [path, ..] = full_gates_files(full);
        reports.push(dir.read_json(&path)?);
    }
    Ok(reports)
}

fn landed_run(
    record: &RunRecord,
    task: &SpecTask,
    commit: &str,
    reports: &[VerifyReport],
) -> LandedRun {
    let serves = task.requirements.iter();
    LandedRun {
        run: record.run_id.clone(),
        commit: commit.to_owned(),
        serves: serves
            .map(|requirement| (requirement.id.clone(), requirement.text))
            .collect(),
        outcomes: outcomes(reports),
    }
}

/// The worst outcome of each named test in these reports.
fn outcomes(reports: &[VerifyReport]) -> BTreeMap<String, (TestOutcome, TestOrigin)> {
    let mut outcomes: BTreeMap<String, (TestOutcome, TestOrigin)> = BTreeMap::new();
    for report in reports {
        let unaffected: BTreeSet<&str> = report
            .broken_change
            .iter()
            .flat_map(|check| &check.gates)
            .flat_map(|gate| &gate.unaffected)
            .map(String::as_str)
            .collect();
        for row in &report.named_tests {
            let outcome = match row.status {
                TestStatus::Passed if unaffected.contains(row.name.as_str()) => {
                    TestOutcome::Unaffected
                }
                TestStatus::Passed => TestOutcome::Passed,
                TestStatus::Skipped | TestStatus::Failed => TestOutcome::Failed,
            };
            let origin = match row.before {
                Some(_) => TestOrigin::Existing,
                None => TestOrigin::Added,
            };
            let worst = outcomes
                .entry(row.name.clone())
                .or_insert((outcome, origin));
            *worst = (worst.0.max(outcome), worst.1.max(origin));
        }
    }
    outcomes
}

/// The tests of the requirements that their files define: as `changed` has them, else as the commit has them.
async fn defined_at(
    git: &Git,
    commit: &Oid,
    requirements: &[RequirementTests],
    changed: &BTreeMap<RepoPath, Option<Vec<u8>>>,
) -> Result<BTreeSet<NamedTest>, RunError> {
    let mut defined = BTreeSet::new();
    for test in requirements.iter().flat_map(|row| &row.tests) {
        let content = match changed.get(&test.file) {
            Some(content) => content.clone(),
            None => {
                let paths = std::slice::from_ref(&test.file);
                match git.files_at(commit, paths, MAX_FILE).await {
                    Ok(mut files) => files.remove(&test.file),
                    Err(RepoError::TooLarge { .. }) => None,
                    Err(error) => return Err(error.into()),
                }
            }
        };
        if content.is_some_and(|content| test.is_in(&content)) {
            defined.insert(test.clone());
        }
    }
    Ok(defined)
}

/// Judges the requirements of the run's task by the run itself, before its commit is made, and records the matrix.
pub(crate) async fn record_evidence(
    dir: &RunDir,
    record: &RunRecord,
    git: &Git,
    request: &LandRequest<'_>,
    produced: &ProducedTree,
    journal: &mut Journal<'_>,
) -> Result<(), RunError> {
    let Some(task) = &record.task else {
        return Ok(());
    };
    if journal.has(EVENT_KEY) {
        return Ok(());
    }
    let commit = git.commit_before_landing(request).await?;
    let mut after: BTreeMap<_, _> = produced.files_after().into_iter().map(some).collect();
    for change in &produced.changes {
        let path = RepoPath::from_bytes(change.path.as_os_str().as_bytes());
        if let Ok(path) = path {
            after.entry(path).or_insert(None);
        }
    }
    let defined = defined_at(git, request.base, &task.requirements, &after).await?;
    let reports = reports(dir, full_gates_runs(journal.events()?))?;
    let run = landed_run(record, task, commit.as_str(), &reports);
    let matrix = judge_evidence(&EvidenceInput {
        spec: &task.spec,
        format: task.format,
        commit: commit.as_str(),
        requirements: &task.requirements,
        runs: &[run],
        defined: &defined,
    });
    dir.write_json_recorded(layout::EVIDENCE, &matrix)?;
    journal.record_file(
        "crucible",
        EventKind::EvidenceJudged,
        EVENT_KEY,
        layout::EVIDENCE,
    )?;
    let counts = matrix.counts;
    journal.observer()?.note(&format!(
        "  requirements of {}: {} proven, {} partial, {} without evidence",
        task.task, counts.proven, counts.partial, counts.none
    ));
    journal.commit()
}

fn some<K, V>((key, value): (K, V)) -> (K, Option<V>) {
    (key, Some(value))
}
