//! The exit status and the hints of each error of this crate.

use crucible_model::Failure;

use crate::edit::EditError;
use crate::error::ConfigError;

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<EditError> for Failure {
    fn from(error: EditError) -> Self {
        let failure = Self::usage(error.to_string());
        match error {
            EditError::Config(
                ConfigError::NotForProjects { .. } | ConfigError::OnlyLower { .. },
            ) => failure.hint("`crucible config set --user KEY VALUE` writes your own file."),
            EditError::NoUserFile => {
                failure.hint("Set HOME, or use the environment variable of the setting.")
            }
            EditError::Config(_)
            | EditError::NotListed { .. }
            | EditError::NotToml { .. }
            | EditError::NotATable { .. } => failure,
        }
    }
}
