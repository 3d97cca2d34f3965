//! The exit status and the hints of each error of this crate.

use crucible_model::{ExitStatus, Failure};

use crate::error::{PathProblem, SandboxError};
use crate::spawn::Strength;

impl From<SandboxError> for Failure {
    fn from(error: SandboxError) -> Self {
        let status = match &error {
            SandboxError::NotFound { .. }
            | SandboxError::NotExecutable { .. }
            | SandboxError::WorkingDirectory { .. }
            | SandboxError::Writable { .. }
            | SandboxError::Masked { .. }
            | SandboxError::ReadOnly { .. }
            | SandboxError::Mounted { .. }
            | SandboxError::BadArgument { .. }
            | SandboxError::Host(_)
            | SandboxError::LayersMissing { .. } => ExitStatus::Usage,
            SandboxError::Exec { .. }
            | SandboxError::Setup { .. }
            | SandboxError::Supervision { .. }
            | SandboxError::Survivors { .. } => ExitStatus::Refused,
        };
        let command = Self::new(status, error.to_string());
        match error {
            SandboxError::LayersMissing { .. } => command.hint(format!(
                "Install bubblewrap (Debian: apt-get install bubblewrap), or accept less with --sandbox {}.",
                Strength::BestEffort.as_str()
            )),
            SandboxError::WorkingDirectory { problem: PathProblem::Hidden, .. } => command.hint(
                "The sandbox hides a home directory completely: change to your project first, or share this directory with `sandbox exec --write .`.",
            ),
            _ => command,
        }
    }
}
