//! The exit status and the hints of each error of this crate.

use crucible_model::Failure;

use crate::error::ServeError;

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::Port { .. } => Self::usage(error.to_string())
                .hint("Choose another port with --port, or 0 for any free one."),
            ServeError::Template(_) | ServeError::Project(_) | ServeError::Document(_) => {
                Self::refused(error.to_string())
            }
            ServeError::Random(error) => error.into(),
            ServeError::Ledger(error) => error.into(),
            ServeError::Run(error) => error.into(),
        }
    }
}
