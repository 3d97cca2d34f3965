//! The exit status and the hints of each error of this crate.

use std::time::Duration;

use crucible_model::{ExitStatus, Failure, counted};

use crate::completed::{Completed, End, Stopped};
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

impl Completed {
    /// Whether the process itself was killed. Inside namespaces it shows as one that exited with 137.
    #[must_use]
    pub const fn is_killed(&self) -> bool {
        matches!(self.end, End::Exited(137) | End::Signalled(9))
    }

    /// Returns how `sandbox exec` ends; `seconds` is the time that the command was given.
    ///
    /// # Errors
    ///
    /// The failure that describes the end, unless the command exited with 0.
    pub fn exit(&self, seconds: u64) -> Result<ExitStatus, Failure> {
        if self.ran_out_of_memory && self.is_killed() {
            return Err(
                Failure::refused("the command was ended because it used up its memory")
                    .hint("Give it more with [sandbox] memory_mib in the configuration."),
            );
        }
        match self.end {
            End::Exited(0) => Ok(ExitStatus::Success),
            End::Exited(code) => Err(Failure::refused(format!(
                "the command ended with exit code {code}; what it printed says why"
            ))),
            End::Signalled(signal) => Err(Failure::refused(format!(
                "the command was ended by signal {signal}; try it again, or find out which program sent it"
            ))),
            End::Forbidden => Err(Failure::refused(
                "the command was ended because it made a system call that --calls does not allow",
            )
            .hint("Choose a wider class with --calls, or change the command.")),
            End::TimedOut => Err(Failure::new(
                ExitStatus::TimedOut,
                format!(
                    "the command was ended after {}{}",
                    counted(seconds, "second"),
                    killed(self)
                ),
            )
            .hint("Give it more time with --timeout.")),
            End::OutputLimit => Err(Failure::new(
                ExitStatus::OverLimit,
                format!(
                    "the command was ended because it printed without end{}",
                    killed(self)
                ),
            )
            .hint("Send its output to a file below a directory given with --write.")),
            End::DiskLimit => Err(Failure::new(
                ExitStatus::OverLimit,
                format!(
                    "the command was ended because it wrote too much to the disk{}",
                    killed(self)
                ),
            )
            .hint("Let it write less, or in several commands.")),
        }
    }
}

/// Returns what the report says of a command that ignored TERM.
fn killed(completed: &Completed) -> String {
    match completed.stopped {
        Some(Stopped {
            ended_after_ms,
            grace_ms,
            was_killed: true,
        }) => format!(
            "; it ignored TERM and was killed {:.1} s later (grace period: {:.1} s)",
            Duration::from_millis(ended_after_ms).as_secs_f64(),
            Duration::from_millis(grace_ms).as_secs_f64()
        ),
        Some(_) | None => String::new(),
    }
}
