//! The exit status and the hints of each error of this crate.

use std::fmt::Display;

use crucible_model::{ExitStatus, Failure};
use crucible_secrets::Scanner;

use crate::clone::CloneError;
use crate::error::RepoError;
use crate::gh::GhError;

impl From<RepoError> for Failure {
    fn from(error: RepoError) -> Self {
        let status = match &error {
            RepoError::NotARepository { .. }
            | RepoError::NotThere { .. }
            | RepoError::Bare { .. }
            | RepoError::Empty { .. }
            | RepoError::GitDirElsewhere { .. }
            | RepoError::WorkTreeElsewhere { .. }
            | RepoError::TooManyDrivers { .. }
            | RepoError::GitMissing { .. }
            | RepoError::GitTooOld { .. }
            | RepoError::NoIdentity
            | RepoError::NoSuchRevision { .. }
            | RepoError::AmbiguousRevision { .. }
            | RepoError::DestinationTaken { .. } => ExitStatus::Usage,
            RepoError::IndexLocked { .. } => ExitStatus::LockHeld,
            RepoError::TooLarge { .. } => ExitStatus::OverLimit,
            RepoError::TimedOut { .. } => ExitStatus::TimedOut,
            RepoError::Moved { .. }
            | RepoError::OtherBranch { .. }
            | RepoError::Dirty { .. }
            | RepoError::NoTrailer { .. }
            | RepoError::PatchRefused { .. }
            | RepoError::TreeChanged { .. }
            | RepoError::Rewritten { .. }
            | RepoError::MissingObject { .. }
            | RepoError::DamagedObject { .. }
            | RepoError::GitFailed { .. }
            | RepoError::Unreadable { .. }
            | RepoError::Io { .. } => ExitStatus::Refused,
            RepoError::Fs(_) => ExitStatus::Refused,
            RepoError::Sandbox(_) => ExitStatus::Refused,
        };
        Self::new(status, redacted(&error))
    }
}

impl From<CloneError> for Failure {
    fn from(error: CloneError) -> Self {
        let message = redacted(&error);
        let status = match error {
            CloneError::Repo(error) => return error.into(),
            CloneError::Address { .. } => ExitStatus::Usage,
            CloneError::TimedOut { .. } => ExitStatus::TimedOut,
            CloneError::TooLarge { .. } => ExitStatus::OverLimit,
            CloneError::NoSuchRef { .. }
            | CloneError::NotACommit { .. }
            | CloneError::NoAccess { .. }
            | CloneError::Unreachable { .. }
            | CloneError::Empty { .. }
            | CloneError::Sha256 { .. } => ExitStatus::Refused,
        };
        Self::new(status, message)
    }
}

impl From<GhError> for Failure {
    fn from(error: GhError) -> Self {
        let status = match &error {
            GhError::RateLimited(_) => ExitStatus::RateLimited,
            GhError::Missing { .. } | GhError::NotLoggedIn { .. } | GhError::Unusable { .. } => {
                ExitStatus::Usage
            }
            GhError::TimedOut { .. } => ExitStatus::TimedOut,
            GhError::TooLarge { .. } => ExitStatus::OverLimit,
            GhError::Forbidden { .. }
            | GhError::NotFound { .. }
            | GhError::Invalid { .. }
            | GhError::Server { .. }
            | GhError::Unreachable { .. }
            | GhError::Unreadable { .. }
            | GhError::NotRun { .. } => ExitStatus::Refused,
        };
        Self::new(status, error.to_string())
    }
}

/// git's own words may quote a URL with credentials.
fn redacted(error: &impl Display) -> String {
    Scanner::builtin()
        .redact(&error.to_string())
        .text
        .into_owned()
}
