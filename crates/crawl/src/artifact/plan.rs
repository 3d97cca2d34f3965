//! `viv-git-plan.v1`: the steps that build a repository, and the debate about them.

use std::collections::BTreeMap;

use crucible_model::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::hash::ShortHash;
use super::inspect::InspectedRepository;

/// A build plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanV1 {
    /// `viv-git-plan.v1`.
    pub schema: String,
    /// The time of creation.
    pub created_at: Timestamp,
    /// The short hash of the steps as compact JSON in schema order.
    pub plan_hash: ShortHash,
    /// The short hash of every prompt template and token budget.
    pub prompt_hash: ShortHash,
    /// The repository and its commit.
    pub repo: PlanRepository,
    /// The build system that the inspection detected.
    pub detected: Detected,
    /// The requirements of the steps.
    pub dependencies: Dependencies,
    /// The commands to run, in order; never empty.
    pub steps: Vec<PlanStep>,
    /// Warnings for the executor.
    pub warnings: Vec<String>,
    /// The number of debate rounds.
    pub debate_rounds: u64,
    /// Accepted suggestions, each with its source.
    pub accepted_suggestions: Vec<String>,
    /// Rejected suggestions, each with source and reason.
    pub rejected_suggestions: Vec<String>,
    /// Whether the plan passes the safety rules; required for an export.
    pub safety_validated: bool,
    /// The violations of the safety rules.
    pub safety_violations: Vec<String>,
}

impl PlanV1 {
    /// The schema's id.
    pub const SCHEMA: &'static str = "viv-git-plan.v1";

    /// The hash of these steps: of their compact JSON, with keys in schema order. It equals the hash of
    /// `JSON.stringify(plan.steps)` in JavaScript, after the plan was parsed with that schema, byte for
    /// byte. The variables of a step are in the order in which JavaScript iterates them: the order of
    /// canonical JSON, but with names that are array indices first, by number.
    #[must_use]
    pub fn hash_of(steps: &[PlanStep]) -> ShortHash {
        let steps: Vec<String> = steps.iter().map(PlanStep::compact_json).collect();
        ShortHash::compute(format!("[{}]", steps.join(",")).as_bytes())
    }
}

/// The repository of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRepository {
    /// `owner/repo`.
    pub full_name: String,
    /// The address it was fetched from.
    pub url: String,
    /// The tag, branch or commit.
    pub selected_ref: String,
    /// 40 hexadecimal digits.
    pub resolved_commit: String,
}

impl From<&InspectedRepository> for PlanRepository {
    fn from(repo: &InspectedRepository) -> Self {
        Self {
            full_name: repo.full_name.clone(),
            url: repo.url.clone(),
            selected_ref: repo.selected_ref.clone(),
            resolved_commit: repo.resolved_commit.clone(),
        }
    }
}

/// The detection result of the inspection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Detected {
    /// The name of a build system, such as `cargo`; `unknown` if none was detected.
    pub build_system: String,
    /// The confidence, 0 to 1.
    pub confidence: f64,
}

/// The requirements of the steps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependencies {
    /// Programs.
    pub tools: Vec<String>,
    /// The reasons.
    pub notes: String,
}

/// One command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStep {
    /// A short name.
    pub name: String,
    /// The command.
    pub cmd: String,
    /// The working directory, relative to the workspace.
    pub cwd: String,
    /// Variables to set, in addition to those of the executor.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The reason.
    #[serde(default)]
    pub note: String,
}

impl PlanStep {
    fn compact_json(&self) -> String {
        let mut env: Vec<(&String, &String)> = self.env.iter().collect();
        env.sort_by_cached_key(|(name, _)| {
            (
                array_index(name).unwrap_or(u32::MAX),
                name.encode_utf16().collect::<Vec<u16>>(),
            )
        });
        let env: Vec<String> = env
            .into_iter()
            .map(|(name, value)| format!("{}:{}", quoted(name), quoted(value)))
            .collect();
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

/// A JSON string with the escapes of `JSON.stringify`.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// The array index that JavaScript sees in an object key: decimal without leading zeroes, below 2^32 - 1.
fn array_index(name: &str) -> Option<u32> {
    let canonical =
        name == "0" || !name.starts_with('0') && name.bytes().all(|byte| byte.is_ascii_digit());
    name.parse()
        .ok()
        .filter(|index| canonical && *index < u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    /// Pairs of a hash and the canonical JSON of steps. Node computed each hash as the first 12
    /// hexadecimal digits of the SHA-256 of `JSON.stringify(steps)`, after parsing the JSON and putting
    /// each step's keys in schema order. The texts contain characters that languages escape, sort and
    /// count differently.
    const VECTORS: &str = include_str!("plan_hash_vectors.json");

    #[test]
    fn steps_hash_matches_javascript() {
        let vectors: Vec<(ShortHash, String)> = serde_json::from_str(VECTORS).unwrap();
        assert_eq!(vectors.len(), 80);
        for (hash, steps) in vectors {
            let steps: Vec<PlanStep> = serde_json::from_str(&steps).unwrap();
            assert_eq!(PlanV1::hash_of(&steps), hash, "{steps:?}");
        }
    }

    #[test]
    fn empty_steps_hash_is_of_empty_array() {
        assert_eq!(PlanV1::hash_of(&[]), ShortHash::compute(b"[]"));
    }

    #[test]
    fn any_change_of_a_step_changes_the_hash() {
        let step = fixture::step("build", "make");
        let variable = |value: &str| BTreeMap::from([("CI".to_owned(), value.to_owned())]);
        let others = [
            PlanStep {
                name: "Build".to_owned(),
                ..step.clone()
            },
            PlanStep {
                cmd: "make -j4".to_owned(),
                ..step.clone()
            },
            PlanStep {
                cwd: "src".to_owned(),
                ..step.clone()
            },
            PlanStep {
                env: variable("1"),
                ..step.clone()
            },
            PlanStep {
                env: variable("2"),
                ..step.clone()
            },
            PlanStep {
                note: "x".to_owned(),
                ..step.clone()
            },
        ];
        let mut hashes: Vec<ShortHash> = others
            .into_iter()
            .chain([step.clone()])
            .map(|step| PlanV1::hash_of(&[step]))
            .collect();
        hashes.push(PlanV1::hash_of(&[step.clone(), step]));
        let all = hashes.len();
        hashes.sort();
        hashes.dedup();
        assert_eq!(hashes.len(), all);
    }
}
