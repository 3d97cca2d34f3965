//! The errors of an evaluation.

use crucible_eval::EvalError;
use crucible_model::ExitStatus;

use super::CommandError;

impl From<EvalError> for CommandError {
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
