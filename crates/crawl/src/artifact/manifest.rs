//! `viv-crawl-manifest.v1`: the content of an export and its origin.

use crucible_model::Timestamp;
use serde::{Deserialize, Serialize};

use super::hash::ShortHash;

/// The manifest of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestV1 {
    /// `viv-crawl-manifest.v1`.
    pub schema: String,
    /// The version of the program that wrote it.
    pub crucible_version: String,
    /// The time of creation.
    pub created_at: Timestamp,
    /// The number of the crawl session.
    pub crawl_session_id: u64,
    /// `owner/repo`.
    pub repo: String,
    /// The tag, branch or commit.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The other files.
    pub artifacts: Vec<ManifestArtifact>,
    /// The hash of the plan's steps.
    pub plan_hash: ShortHash,
    /// The hash of every prompt template and token budget.
    pub prompt_hash: ShortHash,
    /// The models, rounds and budgets.
    pub reproducibility: Reproducibility,
}

impl ManifestV1 {
    /// The schema's id.
    pub const SCHEMA: &'static str = "viv-crawl-manifest.v1";
}

/// One file of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestArtifact {
    /// `search`, `inspect`, `plan` or `recipe`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The file name, relative to the manifest.
    pub filename: String,
    /// The schema's id.
    pub schema: String,
    /// The hash of the file's bytes.
    pub content_hash: ShortHash,
}

/// Everything that determines a plan besides the repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reproducibility {
    /// The drafting model, as the provider reports it; empty without a debate.
    pub gpt_model: String,
    /// The reviewing model; empty without a debate.
    pub claude_model: String,
    /// The number of debate rounds.
    pub debate_rounds: u64,
    /// The token limits of answers.
    pub token_budgets: TokenBudgets,
}

/// The token limits of answers, by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenBudgets {
    /// For a draft or a revision.
    pub draft: u64,
    /// For a critique.
    pub critique: u64,
    /// For a synthesis.
    pub synthesis: u64,
}
