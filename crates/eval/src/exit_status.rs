//! The exit status and the hints of each error of this crate.

use crucible_model::{ExitStatus, Failure};

use crate::error::EvalError;

impl From<EvalError> for Failure {
    fn from(error: EvalError) -> Self {
        let status = match error {
            EvalError::Fs(error) => return error.into(),
            EvalError::Repo(error) => return error.into(),
            EvalError::Document { .. } | EvalError::Import { .. } => ExitStatus::Schema,
            EvalError::Canonical(_) => ExitStatus::Refused,
            EvalError::Directory { .. }
            | EvalError::NoTasks { .. }
            | EvalError::NoSuchTask { .. }
            | EvalError::Task { .. } => ExitStatus::Usage,
        };
        let command = Self::new(status, error.to_string());
        match error {
            EvalError::Task { .. } => command.hint("docs/formats/eval.md describes task.toml."),
            _ => command,
        }
    }
}
