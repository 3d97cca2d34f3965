//! The exit status and the hints of each error of this crate.

use crucible_model::{ExitStatus, Failure};

use crate::clock::ClockError;
use crate::fs::FsError;
use crate::lock::LockError;

impl From<ClockError> for Failure {
    fn from(error: ClockError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<FsError> for Failure {
    fn from(error: FsError) -> Self {
        Self::refused(error.to_string())
    }
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Held { .. } => Self::new(ExitStatus::LockHeld, error.to_string()),
            LockError::Fs(error) => error.into(),
        }
    }
}

impl FsError {
    /// Returns the failure of a named input that cannot be read. Status 1 is reserved for a verdict on its content.
    #[must_use]
    pub fn unreadable_input(&self) -> Failure {
        let status = match self {
            Self::Io { .. } => ExitStatus::Usage,
            Self::TooLarge { .. } => ExitStatus::OverLimit,
        };
        Failure::new(status, self.to_string())
    }
}
