//! Which run a commit says it is the change of, and the rule that a run has one change. Pure.
//!
//! A run lands one commit, and the approvals of its plan are for that one. Its signer could make others, with the same run,
//! base and approvals. An approval names the base, so all of them are children of one commit, and the caller finds them.

use crucible_model::{Code, Finding, RunId};

use crate::note::{lines, payload_of, read_line};
use crate::policy::Policy;
use crate::statement::Statement;

const RUN_REPEATED: Code = Code::new("attest-run-repeated");
const CLAIM_UNREADABLE: Code = Code::new("attest-claim-unreadable");

/// A commit with what the first statement of its note says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunUse {
    /// The commit.
    pub commit: String,
    /// The run.
    pub run: RunId,
    /// The commit that the change was made on.
    pub base: String,
    /// The commit that landed: the one that a carried statement names, else `commit`.
    pub original: String,
    /// The tree of the change. A carried statement names a commit that nobody needs to have, so its name alone is no change.
    pub tree: String,
}

impl RunUse {
    /// The text of a claim: what landed, and with which tree.
    #[must_use]
    pub fn claim(&self) -> String {
        format!("{} {}", self.original, self.tree)
    }
}

/// Returns the run that the note of a commit names, if a signer of the policy signed its first statement. Any
/// other note does not count: anyone who may push could refuse a landed commit with one.
#[must_use]
pub fn signed_run_use(policy: &Policy, commit: &str, note: &[u8]) -> Option<RunUse> {
    read_line(policy, commit, lines(note).first()?).ok()?;
    run_use(commit, note)
}

/// Returns the run that the note of a commit names, without any verification; `None` if the note has no statement about
/// the commit.
#[must_use]
pub fn run_use(commit: &str, note: &[u8]) -> Option<RunUse> {
    let statement = Statement::parse(&payload_of(note)?).ok()?;
    if statement.digest("commit", "gitCommit") != Some(commit) {
        return None;
    }
    let tree = statement.digest("tree", "gitTree")?.to_owned();
    let change = statement.change().ok()?;
    Some(RunUse {
        commit: commit.to_owned(),
        run: change.run,
        base: change.base,
        original: change
            .carried_from
            .map_or_else(|| commit.to_owned(), |from| from.commit),
        tree,
    })
}

/// Returns an error if another of these commits is another change of the same run.
#[must_use]
pub fn judge_repeated_runs(used: &RunUse, all: &[RunUse]) -> Option<Finding> {
    let other = all
        .iter()
        .find(|other| other.run == used.run && other.claim() != used.claim())?;
    let hint = format!(
        "its run {} has another change, {}; a run and the approvals of its plan count for one",
        used.run, other.commit
    );
    Some(Finding::error(RUN_REPEATED, used.commit.as_str(), hint))
}

/// Returns an error if the run was claimed for another change: one that the door admitted, whether or not it landed.
#[must_use]
pub fn judge_run_claim(used: &RunUse, claimed: &str) -> Option<Finding> {
    let commit = claimed.split(' ').next().unwrap_or_default();
    if commit.is_empty() {
        return Some(unreadable_run_claim(used, "it names no commit"));
    }
    let hint = format!(
        "the door has admitted the commit {commit:?} for its run {}; push that one, or make the change in a new run",
        used.run
    );
    (used.claim() != claimed).then(|| Finding::error(RUN_REPEATED, used.commit.as_str(), hint))
}

/// Returns the error for a claim that cannot be read. Which change has the run is then unknown, so none is admitted.
#[must_use]
pub fn unreadable_run_claim(used: &RunUse, why: &str) -> Finding {
    let hint = format!(
        "the claim of its run is unreadable: {why}; on the server, move crucible/runs/{} of the repository away if no \
         change of the run landed, else write a file with the line `COMMIT TREE` of the change there",
        used.run
    );
    Finding::error(CLAIM_UNREADABLE, used.commit.as_str(), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_has_one_change() {
        let used = |commit: &str, run: &str, original: &str| RunUse {
            commit: commit.to_owned(),
            run: format!("20261127-093000-{run}").parse().unwrap(),
            base: "b".to_owned(),
            original: original.to_owned(),
            tree: "t".to_owned(),
        };
        let all = [
            used("one", "abcdef", "one"),
            used("two", "abcdef", "one"),
            used("three", "fedcba", "three"),
        ];
        for one in &all {
            assert_eq!(
                judge_repeated_runs(one, &all),
                None,
                "a carried commit is the same change"
            );
        }
        let other = used("four", "abcdef", "four");
        let finding = judge_repeated_runs(&other, &all).unwrap();
        assert_eq!(finding.code.as_str(), "attest-run-repeated");
        assert_eq!(finding.subject, "four");
        assert!(judge_repeated_runs(&all[1], &[other]).is_some());
        assert_eq!(
            judge_run_claim(&all[1], "one t"),
            None,
            "a claim names the commit that landed"
        );
        for claimed in ["two t", "one u", "one", ""] {
            assert!(judge_run_claim(&all[1], claimed).is_some(), "{claimed:?}");
        }
        let empty = judge_run_claim(&all[1], "").unwrap();
        assert_eq!(empty.code.as_str(), "attest-claim-unreadable");
        assert!(empty.to_string().contains("names no commit"), "{empty}");
        let mut carried = all[1].clone();
        carried.tree = "u".to_owned();
        assert!(judge_repeated_runs(&carried, &all).is_some());
    }
}
