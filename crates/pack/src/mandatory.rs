//! The documents that every pack begins with.

use crucible_model::{RepoPath, RepoPathError};

/// Required in a repository that carries the contract.
pub(crate) const CONTRACT_REQUIRED: [&str; 3] = [
    "AGENTS.md",
    "ai_context/00_AI_CONTRACT.md",
    "ai_context/CTCP_FAST_RULES.md",
];

/// Included where the repository has them.
pub(crate) const CONTRACT_OPTIONAL: [&str; 2] = ["docs/00_CORE.md", "PATCH_README.md"];

/// Which documents come first, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mandatory {
    /// Without one of these there is no pack.
    pub required: Vec<RepoPath>,
    /// Included when they exist.
    pub optional: Vec<RepoPath>,
}

/// A configured document is not a path inside the repository.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("mandatory document {path:?}: {source}")]
pub struct MandatoryError {
    path: String,
    source: RepoPathError,
}

impl Mandatory {
    /// For a repository that carries the contract: three documents required, two optional, then `extra`
    /// required ones from the configuration.
    ///
    /// # Errors
    ///
    /// Fails when an extra document is not a path inside the repository.
    pub fn contract<S: AsRef<str>>(extra: &[S]) -> Result<Self, MandatoryError> {
        let mut required = parse_all(&CONTRACT_REQUIRED)?;
        required.extend(parse_all(extra)?);
        Ok(Self {
            required,
            optional: parse_all(&CONTRACT_OPTIONAL)?,
        })
    }

    /// For any other repository: each of the five where it is present, and `extra` required ones.
    ///
    /// # Errors
    ///
    /// Fails when an extra document is not a path inside the repository.
    pub fn where_present<S: AsRef<str>>(extra: &[S]) -> Result<Self, MandatoryError> {
        let mut optional = parse_all(&CONTRACT_REQUIRED)?;
        optional.extend(parse_all(&CONTRACT_OPTIONAL)?);
        Ok(Self {
            required: parse_all(extra)?,
            optional,
        })
    }
}

fn parse_all<S: AsRef<str>>(paths: &[S]) -> Result<Vec<RepoPath>, MandatoryError> {
    let parse = |path: &S| {
        let text = path.as_ref();
        text.parse().map_err(|source| MandatoryError {
            path: text.chars().take(120).collect(),
            source,
        })
    };
    paths.iter().map(parse).collect()
}
