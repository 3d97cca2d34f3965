//! The five JSON documents of a crawl, each checked against its JSON Schema before it is printed or
//! written.
//!
//! A document is a plain struct with its fields in schema order. Its stored form is canonical JSON, and
//! its `content_hash` is the short hash of exactly those bytes.

#[cfg(test)]
pub(crate) mod fixture;
mod hash;
mod inspect;
mod manifest;
mod plan;
mod recipe;
mod schema;
mod search;

pub use hash::{ShortHash, ShortHashError};
pub use inspect::{
    BuildFinding, FetchMethod, InspectV1, InspectedRepository, KeyFile, KeyFileRole, LanguageCount,
    SubProject,
};
pub use manifest::{ManifestArtifact, ManifestV1, Reproducibility, TokenBudgets};
pub use plan::{Dependencies, Detected, PlanRepository, PlanStep, PlanV1};
pub(crate) use recipe::{CommandPhase, NormalizedCommand, RecipeV1, Toolchain, WorkspaceLayout};
pub(crate) use schema::check_json;
pub use schema::{ArtifactError, ArtifactType, CheckedArtifact};
pub use search::{OwnerType, ScoreBreakdown, SearchItem, SearchV1};
