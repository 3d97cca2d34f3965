//! What landed runs prove of the requirements of a spec.
//!
//! All landed runs of the spec count whose records verify and whose commits are ancestors of the checked-out commit.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crucible_attest::SignedCommit;
use crucible_evidence::{
    EvidenceInput, EvidenceMatrix, LandedRun, NamedTest, RequirementTests, SpecFormat, SpecTask,
    evidence_findings, judge_evidence,
};
use crucible_ledger::Ledger;
use crucible_model::{Code, Finding, Level, Verdict};
use crucible_repo::{CommitReader, Git, Oid, ReadObject};

use crate::error::RunError;
use crate::event_kind::{EventKind, full_gates_runs};
use crate::landing_evidence::{defined_at, landed_run, reports};
use crate::layout::RunDir;
use crate::run_context::RunContext;
use crate::state::RunState;
use crate::verify_record::{recorded_start, verify_record};

const RUN_REFUSED: Code = Code::new("evidence-run-refused");
const COMMIT_UNREACHED: Code = Code::new("evidence-commit-unreached");
const CHANGE_UNDONE: Code = Code::new("evidence-change-undone");

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
    world: &RunContext<'_>,
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
    world: &RunContext<'_>,
    top: &Path,
    requirements: &[RequirementTests],
) -> Result<BTreeSet<NamedTest>, RunError> {
    let git = world.repository(top).await?;
    let head = git.tracked_state().await?.commit;
    defined_at(&git, &head, requirements, &BTreeMap::new()).await
}

/// Returns the commit by which a run's change is in the history of `head`: its own, or a rewritten one with the same tree
/// and parents. Those are what `attest carry` requires, and a run is evidence for nothing else of a commit.
async fn landed_in(
    reader: &CommitReader,
    commit: &Oid,
    head: &Oid,
) -> Result<Option<Oid>, RunError> {
    if reader.is_ancestor(commit, head).await? {
        return Ok(Some(commit.clone()));
    }
    let change = |read: &ReadObject| match read {
        ReadObject::Bytes(bytes) => {
            let commit = SignedCommit::parse(bytes)?;
            Some((commit.tree, commit.parents))
        }
        ReadObject::Missing | ReadObject::TooLarge => None,
    };
    let read = reader.read_commits(std::slice::from_ref(commit)).await?;
    let Some(own) = read.first().and_then(change) else {
        return Ok(None);
    };
    let bases: BTreeSet<Oid> = own.1.iter().filter_map(|oid| oid.parse().ok()).collect();
    let roots: Vec<Oid> = bases.iter().cloned().collect();
    let children = reader
        .children(&bases, &roots, std::slice::from_ref(head))
        .await?;
    let read = reader.read_commits(&children).await?;
    let mut pairs = children.into_iter().zip(read);
    Ok(pairs
        .find(|(_, read)| change(read).as_ref() == Some(&own))
        .map(|(child, _)| child))
}

/// The files that a commit changed and that have their earlier content again at `head`.
async fn undone_files(
    reader: &CommitReader,
    commit: &Oid,
    head: &Oid,
) -> Result<BTreeSet<String>, RunError> {
    let base = reader.resolve(&format!("{commit}^")).await?;
    let changed = reader.changed_files(base.as_ref(), commit).await?;
    let differing = reader.changed_files(base.as_ref(), head).await?;
    Ok(changed.difference(&differing).cloned().collect())
}

/// The landed runs of the spec that count, each with the position of its landing in the ledger.
async fn landed_runs(
    world: &RunContext<'_>,
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
        let events = ledger.events(Some(&row.id))?;
        let Some(record) = recorded_start(ledger, &events)? else {
            continue;
        };
        let is_of_spec =
            |task: &&SpecTask| task.spec == request.spec && task.format == request.format;
        let Some(task) = record.task.as_ref().filter(is_of_spec) else {
            continue;
        };
        let dir = RunDir::new(&world.runs_root, &row.id);
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
        let Some(commit) = landed_in(reader, &commit, head).await? else {
            let hint = format!(
                "neither its commit {commit} nor one with the same tree and parents is in the history of {head}; \
                 run the task again"
            );
            verdict.push(Finding::warning(COMMIT_UNREACHED, row.id.as_str(), hint));
            continue;
        };
        let undone = undone_files(reader, &commit, head).await?;
        if !undone.is_empty() {
            let files: Vec<&str> = undone.iter().map(String::as_str).collect();
            let hint = format!(
                "its change of {} is undone in {head}, so it proves nothing; land the change again",
                files.join(", ")
            );
            verdict.push(Finding::warning(CHANGE_UNDONE, row.id.as_str(), hint));
            continue;
        }
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
