//! Whether the verified change of a past run would pass the settings of today, judged from its record alone.
//!
//! Nothing runs: no gate, no model. Each rule judges what the record has, with the functions that judge a new change. A rule
//! that needs what was not recorded answers "unknown" with the reason, and never "passes".

mod rules;

use crucible_llm::Limit;
use crucible_llm::configured::{limits, strength};
use crucible_model::{Failure, Verdict};
use crucible_sandbox::Strength;
use crucible_settings::Settings;
use crucible_verify::GateSpec;
use serde::{Deserialize, Serialize};

use crate::attempt::AttemptEnd;
use crate::configured::{ChangePolicies, change_policies, configured_gates, patch_limits};
use crate::contract::PatchLimits;
use crate::documents::{AttemptDocuments, RunDocuments};

/// The rules that past runs are judged by.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayPolicy {
    patch: PatchLimits,
    max_iterations: u64,
    max_calls: u64,
    /// The limit for runs with a coding agent.
    agent_calls: u64,
    max_tokens: Limit,
    max_micro_dollars: Limit,
    sandbox: Strength,
    change: ChangePolicies,
    /// How many places of held-out tests are configured.
    held_out: usize,
    gates: Vec<GateSpec>,
}

/// What a rule says to a past run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleAnswer {
    /// The run keeps it.
    Passes,
    /// The record does not say.
    Unknown,
    /// The run breaks it.
    Refuses,
}

/// One rule applied to a past run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleResult {
    /// The setting that is the rule.
    pub setting: String,
    /// What it says.
    pub answer: RuleAnswer,
    /// The reason; empty if it passes.
    pub reason: String,
}

impl RuleResult {
    fn new(setting: &str, answer: RuleAnswer, reason: impl Into<String>) -> Self {
        Self {
            setting: setting.to_owned(),
            answer,
            reason: reason.into(),
        }
    }

    fn passes(setting: &str) -> Self {
        Self::new(setting, RuleAnswer::Passes, "")
    }

    fn unknown_setting(setting: &str, reason: &str) -> Self {
        Self::new(setting, RuleAnswer::Unknown, reason)
    }

    fn refuses(setting: &str, reason: String) -> Self {
        Self::new(setting, RuleAnswer::Refuses, reason)
    }

    /// A number that must not be above a limit.
    fn limit(setting: &str, number: u64, limit: u64, what: &str) -> Self {
        match number <= limit {
            true => Self::passes(setting),
            false => Self::refuses(setting, format!("{number} {what}, and {limit} are allowed")),
        }
    }

    /// A verdict; its first error is the reason.
    fn of_verdict(setting: &str, verdict: &Verdict) -> Self {
        match verdict.errors().next() {
            None => Self::passes(setting),
            Some(error) => Self::refuses(setting, error.to_string()),
        }
    }
}

impl ReplayPolicy {
    /// Returns the rules of these settings.
    ///
    /// # Errors
    ///
    /// Fails if a setting cannot be used.
    pub fn from_settings(settings: &Settings) -> Result<Self, Failure> {
        let run = &settings.run;
        let (calls, budget) = (settings.budget.calls, limits(settings)?);
        Ok(Self {
            patch: patch_limits(settings),
            max_iterations: run.max_iterations,
            max_calls: calls,
            agent_calls: match settings.is_set("llm.budget.calls") {
                true => calls,
                false => run.agent_calls,
            },
            max_tokens: budget.tokens,
            max_micro_dollars: budget.micro_dollars,
            sandbox: strength(settings)?,
            change: change_policies(settings)?,
            held_out: run.held_out.len(),
            gates: configured_gates(settings)?,
        })
    }
}

/// Applies the rules to the verified change of a run; `None` if it has none. Such a run stays refused, whatever the rules are:
/// its gates would have to run.
#[must_use]
pub fn replay_policy(run: &RunDocuments, policy: &ReplayPolicy) -> Option<Vec<RuleResult>> {
    let is_verified = |attempt: &&AttemptDocuments| attempt.outcome.end == AttemptEnd::Verified;
    let attempt = run.attempts.iter().rfind(is_verified)?;
    let mut answers = rules::patch_rules(attempt, policy);
    answers.extend(rules::budget_rules(run, attempt, policy));
    match &attempt.report {
        Some(report) => answers.extend(rules::report_rules(run, report, policy)),
        None => answers.push(RuleResult::unknown_setting(
            "gates",
            "the report of the gates is missing or cannot be parsed",
        )),
    }
    Some(answers)
}
