//! The author and committer of a commit.

/// Who commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The name.
    pub name: String,
    /// The mail address, without angle brackets.
    pub email: String,
}
