//! The exit status and the hints of each error of this crate.

use crucible_model::{ExitStatus, Failure};

use crate::name::SecretInName;

impl From<&SecretInName> for Failure {
    fn from(error: &SecretInName) -> Self {
        Self::new(ExitStatus::SecretDetected, error.to_string()).hint(SecretInName::HINT)
    }
}
