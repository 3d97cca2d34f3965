//! What a run proves of the requirements of its own task: judged at its landing, from its verify reports.
//!
//! The matrix becomes an artifact of the run and a digest in its signed statement.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;

use crucible_evidence::{
    EvidenceInput, LandedRun, NamedTest, RequirementTests, SpecTask, TestOrigin, TestOutcome,
    judge_evidence,
};
use crucible_model::{ByteLimit, RepoPath};
use crucible_patch::defines_test;
use crucible_repo::{Git, LandRequest, Oid, ProducedTree, RepoError};
use crucible_verify::{TestStatus, VerifyReport};

use crate::contract::RunRecord;
use crate::error::RunError;
use crate::event_kind::{EventKind, full_gates_runs};
use crate::journal::Journal;
use crate::layout::{self, RunDir, full_gates_files};

/// The key of the event with the matrix of a landing.
pub(crate) const EVIDENCE_KEY: &str = "evidence";
/// A file with tests is not larger.
const MAX_FILE: ByteLimit = ByteLimit(8 << 20);

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
    if journal.has(EVIDENCE_KEY) {
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
        EVIDENCE_KEY,
        layout::EVIDENCE,
    )?;
    let counts = matrix.counts;
    journal.observer()?.note(&format!(
        "  requirements of {}: {} proven, {} partial, {} without evidence",
        task.task, counts.proven, counts.partial, counts.none
    ));
    journal.commit()
}

/// The reports that a landing relies on: of the attempt, and of the gates of level `full` if they ran.
pub(crate) fn reports(dir: &RunDir, full: u64) -> Result<Vec<VerifyReport>, RunError> {
    let mut reports = vec![dir.read_json(layout::VERIFY_REPORT)?];
    if full > 0 {
        let [path, ..] = full_gates_files(full);
        reports.push(dir.read_json(&path)?);
    }
    Ok(reports)
}

pub(crate) fn landed_run(
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
pub(crate) async fn defined_at(
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
        let is_defined = |content: Vec<u8>| {
            let defines = defines_test(&test.file, &content, &test.name);
            defines.unwrap_or_else(|| test.is_in(&content))
        };
        if content.is_some_and(is_defined) {
            defined.insert(test.clone());
        }
    }
    Ok(defined)
}

fn some<K, V>((key, value): (K, V)) -> (K, Option<V>) {
    (key, Some(value))
}
