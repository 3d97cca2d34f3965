//! From an answer to a patch that may be tried: the patch gate of a run.
//!
//! The answer becomes a proposal, the proposal becomes bytes of files, the bytes become the canonical patch. The
//! patch is judged twice: as text against the policy, and on the tree it makes in a temporary index, which must be
//! the very change the text states. Only a change that passes both is handed on, and only its bytes are tried.

use std::collections::BTreeMap;

use crucible_model::{Finding, Outcome, RepoPath, Untrusted, Verdict};
use crucible_patch::{Policy, Proposal, apply, make_diff, parse, read_answer};
use crucible_repo::{Git, ProducedTree, agrees};
use crucible_secrets::Scanner;

use crate::contract::{Plan, RunRecord};
use crate::error::RunError;

/// File contents by path.
pub(crate) type Files = BTreeMap<RepoPath, Vec<u8>>;

/// What the patch gate made of an answer.
pub(crate) struct Judged {
    /// The patch, where the answer amounts to one.
    pub(crate) patch: Option<Vec<u8>>,
    /// What was found.
    pub(crate) verdict: Verdict,
    /// What to try; there only when the verdict passes.
    pub(crate) change: Option<Change>,
}

/// A change that was let through.
pub(crate) struct Change {
    /// The canonical patch.
    pub(crate) patch: Vec<u8>,
    /// The tree it makes.
    pub(crate) tree: ProducedTree,
}

impl Judged {
    pub(crate) fn refused(finding: Finding) -> Self {
        Self { patch: None, verdict: Verdict::new(vec![finding]), change: None }
    }
}

/// Whether an answer holds a secret. What the record holds of it is redacted already.
pub(crate) fn holds_secret(answer: &Untrusted) -> bool {
    answer.as_str().contains("[secret:") || !Scanner::builtin().scan(answer.as_str().as_bytes()).is_empty()
}

/// The policy that a plan and the run's limits amount to.
pub(crate) fn policy(record: &RunRecord, plan: &Plan) -> Policy {
    Policy {
        deny_prefixes: plan.scope_deny.clone(),
        max_files: record.patch.max_files,
        max_added_lines: record.patch.max_added_lines,
        named: plan.names.clone(),
        ..Policy::within(plan.scope_allow.clone())
    }
}

/// Judges an answer against the plan.
///
/// # Errors
///
/// Only what keeps the judge from judging; a bad answer is a verdict.
pub(crate) async fn judge(git: &Git<'_>, record: &RunRecord, plan: &Plan, answer: &Untrusted) -> Result<Judged, RunError> {
    let editable: Vec<RepoPath> = plan.scope_allow.iter().filter_map(|scope| scope.to_string().parse().ok()).collect();
    let proposal = match read_answer(record.edit_format, answer, &editable) {
        Ok(proposal) => proposal,
        Err(error) => return Ok(Judged::refused(error.finding())),
    };
    let paths = match touched(&proposal) {
        Ok(paths) => paths,
        Err(finding) => return Ok(Judged::refused(finding)),
    };
    let before = base_contents(git, record, &paths).await?;
    let after = match apply(&proposal, &before) {
        Ok(after) => after,
        Err(error) => return Ok(Judged { patch: diff_of(&proposal), ..Judged::refused(error.finding()) }),
    };
    let bytes = match &proposal {
        Proposal::Diff(bytes) => bytes.clone(),
        Proposal::Edits(_) => match make_diff(&before, &after) {
            Ok(bytes) => bytes,
            Err(error) => return Ok(Judged::refused(error.finding())),
        },
    };
    judge_patch(git, &record.base_commit, &policy(record, plan), bytes, &before, &after).await
}

/// Judges a patch that was let through before, in the same way.
pub(crate) async fn judge_again(git: &Git<'_>, record: &RunRecord, plan: &Plan, patch: &[u8]) -> Result<Judged, RunError> {
    let proposal = Proposal::Diff(patch.to_vec());
    let paths = match touched(&proposal) {
        Ok(paths) => paths,
        Err(finding) => return Ok(Judged::refused(finding)),
    };
    let before = base_contents(git, record, &paths).await?;
    match apply(&proposal, &before) {
        Ok(after) => judge_patch(git, &record.base_commit, &policy(record, plan), patch.to_vec(), &before, &after).await,
        Err(error) => Ok(Judged::refused(error.finding())),
    }
}

/// Judges a patch as text and on the tree it makes from `base`.
pub(crate) async fn judge_patch(
    git: &Git<'_>,
    base: &str,
    policy: &Policy,
    bytes: Vec<u8>,
    before: &Files,
    after: &Files,
) -> Result<Judged, RunError> {
    let patch = match parse(&bytes) {
        Ok(patch) => patch,
        Err(error) => return Ok(Judged { patch: Some(bytes), ..Judged::refused(error.finding()) }),
    };
    let mut verdict = crucible_patch::judge(&patch, policy, before, after);
    if verdict.outcome() == Outcome::Fail {
        return Ok(Judged { patch: Some(bytes), verdict, change: None });
    }
    let tree = match git.tree_after_patch(base, &bytes).await {
        Ok(tree) => tree,
        Err(error) => match error.patch_finding() {
            Some(finding) => return Ok(Judged { patch: Some(bytes), ..Judged::refused(finding) }),
            None => return Err(error.into()),
        },
    };
    verdict.merge(agrees(&patch, &tree, after));
    let change = verdict.passes().then(|| Change { patch: bytes.clone(), tree });
    Ok(Judged { patch: Some(bytes), verdict, change })
}

/// What files at the base hold; those that are not there are left out.
async fn base_contents(git: &Git<'_>, record: &RunRecord, paths: &[RepoPath]) -> Result<Files, RunError> {
    let mut files = Files::new();
    for path in paths {
        if let Some(bytes) = git.file_at(&record.base_commit, path).await? {
            files.insert(path.clone(), bytes);
        }
    }
    Ok(files)
}

fn touched(proposal: &Proposal) -> Result<Vec<RepoPath>, Finding> {
    let mut paths = match proposal {
        Proposal::Edits(edits) => edits.iter().map(|edit| edit.path.clone()).collect(),
        Proposal::Diff(bytes) => match parse(bytes) {
            Ok(patch) => patch.paths().into_iter().cloned().collect::<Vec<_>>(),
            Err(error) => return Err(error.finding()),
        },
    };
    paths.sort();
    paths.dedup();
    Ok(paths)
}

fn diff_of(proposal: &Proposal) -> Option<Vec<u8>> {
    match proposal {
        Proposal::Diff(bytes) => Some(bytes.clone()),
        Proposal::Edits(_) => None,
    }
}
