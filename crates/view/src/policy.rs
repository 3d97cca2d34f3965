//! Which past runs would pass a policy, judged from their records.

use std::path::Path;

use crucible_ledger::{Ledger, LedgerError};
use crucible_model::RunId;
use crucible_run::{ReplayPolicy, RuleAnswer, RuleResult, documents, existing_run, replay_policy};
use serde::{Deserialize, Serialize};

use crate::list::{ListQuery, RunList, RunOutcome, RunSummary};
use crate::text::RedactedText;

/// Past runs under a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyView {
    /// `crucible-policy-replay-v1`.
    pub schema_version: String,
    /// Runs that pass every rule.
    pub passing: u64,
    /// Runs that break no rule, but of which some rule needs what was not recorded.
    pub unknown: u64,
    /// Runs that break a rule.
    pub refused: u64,
    /// Runs without a verified change. No policy can pass them, because their gates would have to run.
    pub not_verified: u64,
    /// The runs, the newest first.
    pub runs: Vec<PolicyRun>,
}

/// A run under a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyRun {
    /// Its id.
    pub run_id: RunId,
    /// How it ended.
    pub outcome: RunOutcome,
    /// The goal.
    pub goal: RedactedText,
    /// The answer to the whole run: the strictest of its rules; absent without a verified change.
    pub answer: Option<RuleAnswer>,
    /// Each rule with its answer.
    pub rules: Vec<RuleView>,
}

/// A rule that was applied to a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleView {
    /// The setting.
    pub setting: RedactedText,
    /// The rule's answer.
    pub answer: RuleAnswer,
    /// The reason; empty if it passes.
    pub reason: RedactedText,
}

impl PolicyView {
    /// Applies a policy to the runs that a query selects. Run directories are below `runs_root`.
    ///
    /// # Errors
    ///
    /// Fails when the ledger cannot be read. A run whose documents cannot be read is unknown.
    pub fn read(
        ledger: &Ledger,
        runs_root: &Path,
        query: &ListQuery,
        policy: &ReplayPolicy,
    ) -> Result<Self, LedgerError> {
        let list = RunList::read(ledger, query)?;
        let runs: Vec<PolicyRun> = list
            .runs
            .iter()
            .map(|run| PolicyRun::new(run, ledger, runs_root, policy))
            .collect();
        let count = |answer| runs.iter().filter(|run| run.answer == answer).count() as u64;
        Ok(Self {
            schema_version: "crucible-policy-replay-v1".to_owned(),
            passing: count(Some(RuleAnswer::Passes)),
            unknown: count(Some(RuleAnswer::Unknown)),
            refused: count(Some(RuleAnswer::Refuses)),
            not_verified: count(None),
            runs,
        })
    }
}

impl PolicyRun {
    fn new(run: &RunSummary, ledger: &Ledger, runs_root: &Path, policy: &ReplayPolicy) -> Self {
        let rules = match run.outcome {
            RunOutcome::Verified | RunOutcome::Landed => {
                rules_of(&run.run_id, ledger, runs_root, policy)
            }
            RunOutcome::Open | RunOutcome::Blocked | RunOutcome::Failed | RunOutcome::Declined => {
                None
            }
        };
        let strictest = |rules: &Vec<RuleView>| {
            let answers = rules.iter().map(|rule| rule.answer);
            answers.max().unwrap_or(RuleAnswer::Unknown)
        };
        Self {
            run_id: run.run_id.clone(),
            outcome: run.outcome,
            goal: run.goal.clone(),
            answer: rules.as_ref().map(strictest),
            rules: rules.unwrap_or_default(),
        }
    }
}

fn rules_of(
    run: &RunId,
    ledger: &Ledger,
    runs_root: &Path,
    policy: &ReplayPolicy,
) -> Option<Vec<RuleView>> {
    let unknown = |reason: &str| {
        Some(vec![RuleView {
            setting: RedactedText::new("record"),
            answer: RuleAnswer::Unknown,
            reason: RedactedText::new(reason),
        }])
    };
    let Some(dir) = existing_run(runs_root, run) else {
        return unknown("the run directory is missing");
    };
    let view = |rule: RuleResult| RuleView {
        setting: RedactedText::new(&rule.setting),
        answer: rule.answer,
        reason: RedactedText::new(&rule.reason),
    };
    match documents(&dir, ledger) {
        Ok(read) if !read.row_faults.is_empty() => {
            unknown("the ledger does not confirm the rows of this run")
        }
        Ok(read) if !read.status.edited.is_empty() => {
            unknown("files of the run were changed after they had been recorded")
        }
        Ok(read) => match replay_policy(&read, policy) {
            Some(rules) => Some(rules.into_iter().map(view).collect()),
            None => unknown("the verified attempt is missing"),
        },
        Err(error) => unknown(&error.to_string()),
    }
}
