//! Why there is no pack at all. Everything that concerns one need is an omission in the pack instead.

use crucible_model::RepoPath;

use crate::source::SourceError;

/// A pack could not be built.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// The mandatory documents do not fit.
    #[error(
        "increase budget: the mandatory documents need max_files {files_needed} and max_total_bytes \
         {bytes_needed} at least; the request allows {files_allowed} and {bytes_allowed}"
    )]
    BudgetTooSmall {
        /// How many documents there are.
        files_needed: u64,
        /// What the request allows.
        files_allowed: u64,
        /// How many bytes they have together, as far as is known.
        bytes_needed: u64,
        /// What the request allows.
        bytes_allowed: u64,
    },
    /// A required document does not exist.
    #[error(
        "mandatory document {path} is missing; add it, or change `[context] mandatory` in the configuration"
    )]
    MandatoryMissing {
        /// Which one.
        path: RepoPath,
    },
    /// A mandatory document may not be shown.
    #[error("mandatory document {path} cannot be shown: {why}")]
    MandatoryRefused {
        /// Which one.
        path: RepoPath,
        /// What forbids it.
        why: String,
    },
    /// A mandatory document could not be read.
    #[error("mandatory document: {0}")]
    MandatoryUnreadable(#[from] SourceError),
}
