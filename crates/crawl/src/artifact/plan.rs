//! `viv-git-plan.v1`: the steps that build a repository, and what was said about them.

use std::collections::BTreeMap;

use crucible_model::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::hash::ShortHash;
use super::inspect::RepoAt;

/// A build plan (seed 000 §4.3).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanV1 {
    /// `viv-git-plan.v1`.
    pub schema: String,
    /// When.
    pub created_at: Timestamp,
    /// The short hash of the steps as compact JSON in schema order.
    pub plan_hash: ShortHash,
    /// The short hash of every prompt template and token budget.
    pub prompt_hash: ShortHash,
    /// For which repository at which commit.
    pub repo: PlanRepo,
    /// What builds it, as the inspection says.
    pub detected: Detected,
    /// What the steps need.
    pub dependencies: Dependencies,
    /// What to run, in order; never empty.
    pub steps: Vec<PlanStep>,
    /// What the executor should know.
    pub warnings: Vec<String>,
    /// Rounds of debate that took place.
    pub debate_rounds: u64,
    /// Suggestions that were taken, each with its source.
    pub accepted_suggestions: Vec<String>,
    /// Suggestions that were not, each with source and reason.
    pub rejected_suggestions: Vec<String>,
    /// Whether the safety rules let it pass; required for an export.
    pub safety_validated: bool,
    /// Why not.
    pub safety_violations: Vec<String>,
}

impl PlanV1 {
    /// The schema's id.
    pub const SCHEMA: &'static str = "viv-git-plan.v1";

    /// The hash that belongs to these steps: of their compact JSON, keys in the order of the schema. It is what a reader
    /// in JavaScript gets as `JSON.stringify(plan.steps)` after it parsed the plan with that schema, to the byte; the
    /// variables of a step come in the order in which such a reader finds them, which is that of canonical JSON, but
    /// with names that are array indices first, by number.
    #[must_use]
    pub fn hash_of(steps: &[PlanStep]) -> ShortHash {
        let steps: Vec<String> = steps.iter().map(PlanStep::compact_json).collect();
        ShortHash::of(format!("[{}]", steps.join(",")).as_bytes())
    }
}

/// The repository of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRepo {
    /// `owner/repo`.
    pub full_name: String,
    /// Where it was fetched from.
    pub url: String,
    /// The tag, branch or commit.
    pub selected_ref: String,
    /// 40 hexadecimal digits.
    pub resolved_commit: String,
}

impl From<&RepoAt> for PlanRepo {
    fn from(repo: &RepoAt) -> Self {
        Self {
            full_name: repo.full_name.clone(),
            url: repo.url.clone(),
            selected_ref: repo.selected_ref.clone(),
            resolved_commit: repo.resolved_commit.clone(),
        }
    }
}

/// What the inspection detected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Detected {
    /// One of the thirteen names.
    pub build_system: String,
    /// 0 to 1.
    pub confidence: f64,
}

/// What steps need.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependencies {
    /// Programs.
    pub tools: Vec<String>,
    /// Why.
    pub notes: String,
}

/// One command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStep {
    /// A short name.
    pub name: String,
    /// What to run.
    pub cmd: String,
    /// Where, relative to the workspace.
    pub cwd: String,
    /// Variables besides those of the executor.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Why.
    #[serde(default)]
    pub note: String,
}

impl PlanStep {
    fn compact_json(&self) -> String {
        let mut env: Vec<(&String, &String)> = self.env.iter().collect();
        env.sort_by_cached_key(|(name, _)| {
            (array_index(name).unwrap_or(u32::MAX), name.encode_utf16().collect::<Vec<u16>>())
        });
        let env: Vec<String> =
            env.into_iter().map(|(name, value)| format!("{}:{}", quoted(name), quoted(value))).collect();
        format!(
            r#"{{"name":{},"cmd":{},"cwd":{},"env":{{{}}},"note":{}}}"#,
            quoted(&self.name),
            quoted(&self.cmd),
            quoted(&self.cwd),
            env.join(","),
            quoted(&self.note)
        )
    }
}

/// The text as a JSON string, with the escapes that `JSON.stringify` writes.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// The number that JavaScript sees in a key of an object: decimal without leading zeroes, below 2^32 - 1.
fn array_index(name: &str) -> Option<u32> {
    let canonical = name == "0" || !name.starts_with('0') && name.bytes().all(|byte| byte.is_ascii_digit());
    name.parse().ok().filter(|index| canonical && *index < u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    /// Pairs of a hash and the canonical JSON of steps. The hash is what Node computed as the first 12 hexadecimal digits of
    /// the SHA-256 of `JSON.stringify(steps)`, after it had read the JSON and put each step's keys in schema order. The
    /// texts hold what escapes, sorts and counts differently in other languages.
    const VECTORS: &str = include_str!("plan_hash_vectors.json");

    #[test]
    fn the_hash_of_steps_is_the_one_that_javascript_computes() {
        let vectors: Vec<(ShortHash, String)> = serde_json::from_str(VECTORS).unwrap();
        assert_eq!(vectors.len(), 80);
        for (hash, steps) in vectors {
            let steps: Vec<PlanStep> = serde_json::from_str(&steps).unwrap();
            assert_eq!(PlanV1::hash_of(&steps), hash, "{steps:?}");
        }
    }

    #[test]
    fn the_hash_of_no_steps_is_that_of_two_brackets() {
        assert_eq!(PlanV1::hash_of(&[]), ShortHash::of(b"[]"));
    }

    #[test]
    fn any_change_of_a_step_changes_the_hash() {
        let step = fixture::step("build", "make");
        let variable = |value: &str| BTreeMap::from([("CI".to_owned(), value.to_owned())]);
        let others = [
            PlanStep { name: "Build".to_owned(), ..step.clone() },
            PlanStep { cmd: "make -j4".to_owned(), ..step.clone() },
            PlanStep { cwd: "src".to_owned(), ..step.clone() },
            PlanStep { env: variable("1"), ..step.clone() },
            PlanStep { env: variable("2"), ..step.clone() },
            PlanStep { note: "x".to_owned(), ..step.clone() },
        ];
        let mut hashes: Vec<ShortHash> =
            others.into_iter().chain([step.clone()]).map(|step| PlanV1::hash_of(&[step])).collect();
        hashes.push(PlanV1::hash_of(&[step.clone(), step]));
        let all = hashes.len();
        hashes.sort();
        hashes.dedup();
        assert_eq!(hashes.len(), all);
    }
}
