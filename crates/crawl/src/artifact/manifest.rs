//! `viv-crawl-manifest.v1`: what an export holds and how it came to be.

use crucible_model::Timestamp;
use serde::{Deserialize, Serialize};

use super::hash::ShortHash;

/// The manifest of an export (seed 000 §8.3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestV1 {
    /// `viv-crawl-manifest.v1`.
    pub schema: String,
    /// The program that wrote it.
    pub crucible_version: String,
    /// When.
    pub created_at: Timestamp,
    /// The crawl.
    pub crawl_session_id: u64,
    /// `owner/repo`.
    pub repo: String,
    /// The tag, branch or commit.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The other files.
    pub artifacts: Vec<ManifestArtifact>,
    /// The plan's hash of its steps.
    pub plan_hash: ShortHash,
    /// The hash of every prompt template and token budget.
    pub prompt_hash: ShortHash,
    /// Who was asked, how often, within which budgets.
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
    /// Beside the manifest.
    pub filename: String,
    /// The schema's id.
    pub schema: String,
    /// Of the file's bytes.
    pub content_hash: ShortHash,
}

/// What decides about a plan besides the repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reproducibility {
    /// Who drafted, as the provider names the model; empty without a debate.
    pub gpt_model: String,
    /// Who criticised; empty without a debate.
    pub claude_model: String,
    /// Rounds that took place.
    pub debate_rounds: u64,
    /// Tokens an answer may take.
    pub token_budgets: TokenBudgets,
}

/// Tokens an answer may take, by what is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenBudgets {
    /// A draft, and a revision.
    pub draft: u64,
    /// A critique.
    pub critique: u64,
    /// A synthesis.
    pub synthesis: u64,
}
