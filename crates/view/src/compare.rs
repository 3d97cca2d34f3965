//! Two runs side by side.

use crucible_model::Digest;
use crucible_run::{AttemptEnd, PartKind};
use serde::{Deserialize, Serialize};

use crate::attempt::AttemptView;
use crate::list::{RunOutcome, elapsed_ms};
use crate::run::RunView;
use crate::text::RedactedText;

/// Two runs side by side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompareView {
    /// `crucible-run-compare-v1`.
    pub schema_version: String,
    /// The first run.
    pub a: RunFacts,
    /// The second run.
    pub b: RunFacts,
    /// Whether both start from the same commit.
    pub is_same_base: bool,
    /// Whether both have the same goal.
    pub is_same_goal: bool,
    /// Whether the last patches of both are equal, byte for byte; absent unless both have one.
    pub is_same_patch: Option<bool>,
    /// Whether both verified the same git tree; absent unless both verified one.
    pub is_same_tree: Option<bool>,
    /// The fields of both runs whose values differ, ids and times left out.
    pub different: Vec<String>,
}

/// What is compared of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFacts {
    /// Its id.
    pub run_id: RedactedText,
    /// Its outcome.
    pub outcome: RunOutcome,
    /// The goal.
    pub goal: RedactedText,
    /// The path of the repository.
    pub repo: RedactedText,
    /// The commit that it starts from.
    pub base_commit: RedactedText,
    /// The provider; empty if not known.
    pub provider: RedactedText,
    /// The model; empty if not known.
    pub model: RedactedText,
    /// The coding agent; empty without one.
    pub agent: RedactedText,
    /// How each attempt ended.
    pub attempts: Vec<AttemptEnd>,
    /// Codes of the findings that refused attempts, each once.
    pub refused_by: Vec<RedactedText>,
    /// Model calls.
    pub calls: u64,
    /// Tokens, in and out together.
    pub tokens: u64,
    /// The cost in millionths of a US dollar.
    pub micro_dollars: u64,
    /// From the start to the last change of its state, in milliseconds.
    pub elapsed_ms: u64,
    /// The time of all model calls together, in milliseconds.
    pub model_ms: u64,
    /// The time of the gates on changes, in milliseconds.
    pub gates_ms: u64,
    /// Files that the model saw.
    pub context_files: u64,
    /// Files of the last patch.
    pub patch_files: u64,
    /// Lines that the last patch adds.
    pub lines_added: u64,
    /// Lines that the last patch removes.
    pub lines_removed: u64,
    /// What the gates showed, in the words of `run status`.
    pub shown: Vec<RedactedText>,
    /// The share of tried mistakes that the gates noticed, in percent, if measured.
    pub strength_percent: Option<u64>,
    /// The digest of the last patch.
    pub patch_digest: Option<Digest>,
    /// The git tree that was verified.
    pub tree: Option<RedactedText>,
    /// The commit, if it landed.
    pub commit: Option<RedactedText>,
}

impl CompareView {
    /// Compares two runs.
    #[must_use]
    pub fn new(a: &RunView, b: &RunView) -> Self {
        let (a, b) = (RunFacts::from_run(a), RunFacts::from_run(b));
        let different = a
            .values()
            .into_iter()
            .zip(b.values())
            .filter(|((_, a), (_, b))| a != b)
            .map(|((name, _), _)| name.to_owned())
            .collect();
        let same = |a: Option<String>, b: Option<String>| Some(a? == b?);
        let digest = |facts: &RunFacts| facts.patch_digest.map(|digest| digest.to_string());
        let tree = |facts: &RunFacts| facts.tree.as_ref().map(|tree| tree.as_str().to_owned());
        Self {
            schema_version: "crucible-run-compare-v1".to_owned(),
            is_same_base: a.base_commit == b.base_commit,
            is_same_goal: a.goal == b.goal,
            is_same_patch: same(digest(&a), digest(&b)),
            is_same_tree: same(tree(&a), tree(&b)),
            different,
            a,
            b,
        }
    }
}

impl RunFacts {
    fn from_run(run: &RunView) -> Self {
        let summary = &run.summary;
        let last = run.attempts.iter().rfind(|attempt| attempt.diff.is_some());
        let diff = last.and_then(|attempt| attempt.diff.as_ref());
        let verified = |attempt: &&AttemptView| attempt.end == AttemptEnd::Verified;
        let report = run.attempts.iter().rfind(verified);
        let report = report.and_then(|attempt| attempt.verification.as_ref());
        let mut refused_by: Vec<RedactedText> = run
            .attempts
            .iter()
            .filter(|attempt| attempt.end != AttemptEnd::Verified)
            .flat_map(|attempt| &attempt.findings)
            .filter(|finding| finding.level == crucible_model::Level::Error)
            .map(|finding| finding.code.clone())
            .collect();
        refused_by.sort();
        refused_by.dedup();
        let is_gates = |kind: PartKind| matches!(kind, PartKind::Gates { .. });
        let gates = run.parts.iter().filter(|part| is_gates(part.kind));
        Self {
            run_id: RedactedText::new(summary.run_id.as_str()),
            outcome: summary.outcome,
            goal: summary.goal.clone(),
            repo: summary.repo.clone(),
            base_commit: run.base_commit.clone(),
            provider: summary.provider.clone().unwrap_or_default(),
            model: summary.model.clone().unwrap_or_default(),
            agent: summary.agent.clone().unwrap_or_default(),
            attempts: run.attempts.iter().map(|attempt| attempt.end).collect(),
            refused_by,
            calls: summary.totals.calls,
            tokens: summary.totals.tokens,
            micro_dollars: summary.totals.micro_dollars,
            elapsed_ms: summary.elapsed_ms,
            model_ms: sum(run.model_calls.iter().filter_map(|call| call.elapsed_ms)),
            gates_ms: sum(gates.map(|part| elapsed_ms(part.started_at, part.ended_at))),
            context_files: run
                .context
                .as_ref()
                .map_or(0, |pack| pack.files.len() as u64),
            patch_files: diff.map_or(0, |diff| diff.files.len() as u64),
            lines_added: diff.map_or(0, |diff| diff.added),
            lines_removed: diff.map_or(0, |diff| diff.removed),
            shown: report
                .map(|report| report.shown.clone())
                .unwrap_or_default(),
            strength_percent: report
                .and_then(|report| report.strength.as_ref())
                .and_then(|strength| strength.percent),
            patch_digest: last.and_then(|attempt| attempt.patch_digest),
            tree: report.and_then(|report| report.tree.clone()),
            commit: run.landing.as_ref().map(|landing| landing.commit.clone()),
        }
    }

    /// The compared values as text, by name. Ids and times are left out: they always differ.
    #[must_use]
    pub fn values(&self) -> Vec<(&'static str, String)> {
        let word = |end: &AttemptEnd| {
            let json = serde_json::to_value(end).unwrap_or_default();
            json.as_str().unwrap_or_default().to_owned()
        };
        let joined = |texts: &[RedactedText]| {
            let texts: Vec<&str> = texts.iter().map(RedactedText::as_str).collect();
            texts.join(", ")
        };
        let text = |text: &RedactedText| text.as_str().to_owned();
        let attempts: Vec<String> = self.attempts.iter().map(word).collect();
        let percent = self.strength_percent.map(|percent| percent.to_string());
        vec![
            ("outcome", self.outcome.name().to_owned()),
            ("goal", text(&self.goal)),
            ("repo", text(&self.repo)),
            ("base_commit", text(&self.base_commit)),
            ("provider", text(&self.provider)),
            ("model", text(&self.model)),
            ("agent", text(&self.agent)),
            ("attempts", attempts.join(", ")),
            ("refused_by", joined(&self.refused_by)),
            ("calls", self.calls.to_string()),
            ("tokens", self.tokens.to_string()),
            ("micro_dollars", self.micro_dollars.to_string()),
            ("context_files", self.context_files.to_string()),
            ("patch_files", self.patch_files.to_string()),
            ("lines_added", self.lines_added.to_string()),
            ("lines_removed", self.lines_removed.to_string()),
            ("shown", joined(&self.shown)),
            ("strength_percent", percent.unwrap_or_default()),
        ]
    }
}

fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}
