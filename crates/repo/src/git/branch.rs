//! The branch that is checked out.

use serde::{Deserialize, Serialize};

/// What is checked out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Branch {
    /// A branch, by its short name.
    Named(String),
    /// A commit and no branch.
    Detached,
}

impl std::fmt::Display for Branch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Named(name) => write!(f, "the branch {name}"),
            Self::Detached => f.write_str("a commit without a branch"),
        }
    }
}
