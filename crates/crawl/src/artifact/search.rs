//! `viv-git-search.v1`: repositories in score order, with the parts of each score.

use crucible_model::Timestamp;
use serde::{Deserialize, Serialize};

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchV1 {
    /// `viv-git-search.v1`.
    pub schema: String,
    /// The query as it was given.
    pub query: String,
    /// The time from which ages are computed.
    pub queried_at: Timestamp,
    /// The number of results.
    pub result_count: u64,
    /// Whether a rate limit made the results incomplete.
    pub rate_limited: bool,
    /// Whether every page came from the cache.
    pub cached: bool,
    /// The results, the best first.
    pub results: Vec<SearchItem>,
}

impl SearchV1 {
    /// The schema's id.
    pub const SCHEMA: &'static str = "viv-git-search.v1";
}

/// One repository with its score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchItem {
    /// The rank; 1 is the best.
    pub rank: u64,
    /// The score, 0 to 1, with four decimals.
    pub score: f64,
    /// `owner/repo`.
    pub full_name: String,
    /// The part after the slash.
    pub name: String,
    /// The owner's description, redacted; empty if the owner gave no description.
    pub description: String,
    /// The address for browsers.
    pub url: String,
    /// The number of stars.
    pub stars: u64,
    /// The time of the last push.
    pub pushed_at: Timestamp,
    /// The kind of the owner's account.
    pub owner_type: OwnerType,
    /// Whether it has at least one release.
    pub has_releases: bool,
    /// Whether it is archived (read-only).
    pub archived: bool,
    /// Whether it is a fork.
    pub fork: bool,
    /// The name of the default branch.
    pub default_branch: String,
    /// The parts of the score; their clamped sum is the score.
    pub score_breakdown: ScoreBreakdown,
}

/// The kind of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum OwnerType {
    /// A person or a bot.
    User,
    /// An organisation's account.
    Organization,
}

/// Weighted contributions to a score; `penalties` is never positive.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ScoreBreakdown {
    /// The name equals the query.
    pub exact_name: f64,
    /// The name contains the query.
    pub partial_name: f64,
    /// The logarithm of the stars.
    pub star_score: f64,
    /// It was pushed to recently.
    pub recency: f64,
    /// Owned by an organisation.
    pub verified_owner: f64,
    /// It has at least one release.
    pub has_releases: f64,
    /// Its build system is known.
    pub build_files: f64,
    /// The sum of all penalties.
    pub penalties: f64,
}
