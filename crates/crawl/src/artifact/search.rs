//! `viv-git-search.v1`: repositories in the order of their scores, with the reasons for each score.

use crucible_model::Timestamp;
use serde::{Deserialize, Serialize};

/// The answer to a search (seed 000 §4.1).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchV1 {
    /// `viv-git-search.v1`.
    pub schema: String,
    /// What was searched for.
    pub query: String,
    /// The instant that ages are measured from.
    pub queried_at: Timestamp,
    /// How many results follow.
    pub result_count: u64,
    /// Whether a rate limit kept something out.
    pub rate_limited: bool,
    /// Whether every page came from the cache.
    pub cached: bool,
    /// The best first.
    pub results: Vec<SearchItem>,
}

impl SearchV1 {
    /// The schema's id.
    pub const SCHEMA: &'static str = "viv-git-search.v1";
}

/// One repository with its score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchItem {
    /// 1 is the best.
    pub rank: u64,
    /// 0 to 1, four decimals.
    pub score: f64,
    /// `owner/repo`.
    pub full_name: String,
    /// The part after the slash.
    pub name: String,
    /// The owner's words; empty where there are none. Secrets are replaced.
    pub description: String,
    /// Where people look at it.
    pub url: String,
    /// How many users starred it.
    pub stars: u64,
    /// The last push.
    pub pushed_at: Timestamp,
    /// What kind of account owns it.
    pub owner_type: OwnerType,
    /// Whether it has at least one release.
    pub has_releases: bool,
    /// Whether it is read-only now.
    pub archived: bool,
    /// Whether it is a fork.
    pub fork: bool,
    /// The branch that is shown first.
    pub default_branch: String,
    /// What the score is made of; the sum, clamped, is the score.
    pub score_breakdown: ScoreBreakdown,
}

/// The kind of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum OwnerType {
    /// A person or a bot.
    User,
    /// An organisation.
    Organization,
}

/// Weighted contributions to a score; `penalties` is what is subtracted, so it is never positive.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ScoreBreakdown {
    /// The name is the query.
    pub exact_name: f64,
    /// The name contains the query.
    pub partial_name: f64,
    /// The logarithm of the stars.
    pub star_score: f64,
    /// Pushed to lately.
    pub recency: f64,
    /// Owned by an organisation.
    pub verified_owner: f64,
    /// Has a release.
    pub has_releases: f64,
    /// Says or looks how it is built.
    pub build_files: f64,
    /// What is taken off.
    pub penalties: f64,
}
