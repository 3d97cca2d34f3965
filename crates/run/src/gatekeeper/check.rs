//! `crucible patch check`: the patch gate on its own.
//!
//! It judges like a run: as text, and by what git makes of it. Only the complete tree is not built, because
//! it is not needed here and costs the most in a large repository.

use crucible_model::{ByteLimit, Outcome, RepoPath, Verdict};
use crucible_patch::{Patch, Policy, Proposal, apply, judge_paths, parse};
use crucible_repo::{Git, ProducedChanges, RepoError, check_changes_agreement};

use super::{
    judge_trees, may_read, names_apart, not_applicable, not_applied, spares_guarded, too_large,
};
use crate::error::RunError;

/// The gate's result for a patch.
pub(super) struct CheckedPatch {
    /// What was found.
    pub(super) verdict: Verdict,
    /// What it changes; there only when the verdict passes.
    pub(super) changes: Option<ProducedChanges>,
}

impl CheckedPatch {
    fn refused(verdict: Verdict) -> Self {
        Self {
            verdict,
            changes: None,
        }
    }
}

/// Judges a patch against a policy, on the commit checked out when `git` was opened.
///
/// # Errors
///
/// Fails when the repository cannot be read; problems of the patch are in the verdict.
pub async fn check_patch(git: &Git, policy: &Policy, patch: &[u8]) -> Result<Verdict, RunError> {
    Ok(check(git, policy, patch).await?.verdict)
}

pub(super) async fn check(
    git: &Git,
    policy: &Policy,
    bytes: &[u8],
) -> Result<CheckedPatch, RunError> {
    let base = &git.opened_at().commit;
    let patch = match parse(bytes) {
        Ok(patch) => patch,
        Err(error) => return Ok(CheckedPatch::refused(Verdict::new(vec![error.finding()]))),
    };
    let paths: Vec<_> = patch.paths().into_iter().cloned().collect();
    let proposal = Proposal::Diff(bytes.to_vec());
    let places = judge_paths(&proposal, policy);
    let limit = match may_read(&places, &paths) {
        Ok(limit) => limit,
        Err(refusal) => return Ok(CheckedPatch::refused(refusal)),
    };
    // None needs another. The one that reads and judges comes last: git answers the others meanwhile.
    let (spared, apart, judged) = tokio::join!(
        spares_guarded(git, policy, &patch),
        names_apart(git, base, &patch),
        try_out(git, policy, &patch, bytes, &paths, (places, limit))
    );
    let (mut verdict, produced) = match judged? {
        Tried::Refused(verdict) => return Ok(CheckedPatch::refused(verdict)),
        Tried::Made { verdict, produced } => (verdict, produced),
    };
    verdict.merge(
        judge_trees(
            git,
            base,
            policy,
            &patch,
            &produced.changes,
            &produced.after,
        )
        .await?,
    );
    verdict.merge(spared);
    verdict.merge(apart?);
    let changes = verdict.passes().then_some(produced);
    Ok(CheckedPatch { verdict, changes })
}

/// What became of a patch that was judged as text and given to git.
enum Tried {
    Refused(Verdict),
    Made {
        verdict: Verdict,
        produced: ProducedChanges,
    },
}

/// Judges the patch as text and, unless refused, by what git makes of it. Its paths were already judged.
async fn try_out(
    git: &Git,
    policy: &Policy,
    patch: &Patch,
    bytes: &[u8],
    paths: &[RepoPath],
    (places, limit): (Verdict, ByteLimit),
) -> Result<Tried, RunError> {
    let (before, index) = match git.patch_index(&git.opened_at().commit, paths, limit).await {
        Ok(there) => there,
        Err(error) => return Ok(Tried::Refused(too_large(places, error)?)),
    };
    let after = match apply(&Proposal::Diff(bytes.to_vec()), &before) {
        Ok(after) => after,
        Err(error) => {
            let finding = not_applied(git, &git.opened_at().commit, &error).await?;
            return Ok(Tried::Refused(Verdict::new(vec![finding])));
        }
    };
    let mut verdict = crucible_patch::judge(patch, policy, &before, &after);
    if verdict.outcome() == Outcome::Fail {
        return Ok(Tried::Refused(verdict));
    }
    let produced = match git.changes_after_patch(index, bytes).await {
        Ok(produced) => produced,
        Err(RepoError::PatchRefused { detail }) => {
            return Ok(Tried::Refused(Verdict::new(vec![not_applicable(&detail)])));
        }
        Err(error) => return Ok(Tried::Refused(too_large(verdict, error)?)),
    };
    verdict.merge(check_changes_agreement(bytes, patch, &before, &produced));
    Ok(Tried::Made { verdict, produced })
}
