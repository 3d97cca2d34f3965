//! Every library error becomes a message, hints and an exit code here, once and without a wildcard.

mod council;
mod crawl;
mod eval;
mod run;
mod spec;

use crucible_host::clock::ClockError;
use crucible_host::fs::FsError;
use crucible_host::lock::LockError;
use crucible_ledger::LedgerError;
use crucible_llm::configured::BackendError;
use crucible_llm::{CallError, CassetteError, LlmError, RecordingError};
use crucible_model::ExitStatus;
use crucible_repo::RepoError;
use crucible_sandbox::{PathProblem, SandboxError, Strength};
use crucible_settings::{ConfigError, SetupError, SetupFault, flag_of};

/// Why a command ended early.
#[derive(Debug)]
pub(crate) struct CommandError {
    pub(crate) status: ExitStatus,
    pub(crate) message: String,
    pub(crate) hints: Vec<String>,
    pub(crate) budget_exhausted: bool,
}

impl CommandError {
    pub(crate) fn new(status: ExitStatus, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            hints: Vec::new(),
            budget_exhausted: false,
        }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(ExitStatus::Usage, message)
    }

    /// Of a named input that cannot be read. That says nothing of what it holds: exit code 1 is kept for "no".
    pub(crate) fn unreadable(error: FsError) -> Self {
        let status = match &error {
            FsError::Io { .. } => ExitStatus::Usage,
            FsError::TooLarge { .. } => ExitStatus::OverLimit,
        };
        Self::new(status, error.to_string())
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl From<ClockError> for CommandError {
    fn from(error: ClockError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<SetupError> for CommandError {
    fn from(error: SetupError) -> Self {
        let status = match error.fault {
            SetupFault::Invalid => ExitStatus::Usage,
            SetupFault::Secret => ExitStatus::SecretDetected,
            SetupFault::TooLarge => ExitStatus::OverLimit,
            SetupFault::Malformed => ExitStatus::Schema,
            SetupFault::Connection => ExitStatus::Provider,
        };
        Self {
            hints: error.hints,
            ..Self::new(status, error.message)
        }
    }
}

impl From<BackendError> for CommandError {
    fn from(error: BackendError) -> Self {
        match error {
            BackendError::Setup(error) => error.into(),
            BackendError::Llm(error) => error.into(),
        }
    }
}

impl From<RecordingError> for CommandError {
    fn from(error: RecordingError) -> Self {
        match error {
            RecordingError::Setup(error) => error.into(),
            RecordingError::Cassette(error) => error.into(),
            RecordingError::File(error) => error.into(),
        }
    }
}

impl From<ConfigError> for CommandError {
    fn from(error: ConfigError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<FsError> for CommandError {
    fn from(error: FsError) -> Self {
        Self::new(ExitStatus::Refused, error.to_string())
    }
}

impl From<LockError> for CommandError {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Held { .. } => Self::new(ExitStatus::LockHeld, error.to_string()),
            LockError::Fs(error) => error.into(),
        }
    }
}

impl From<LedgerError> for CommandError {
    fn from(error: LedgerError) -> Self {
        let unwritable = matches!(
            error,
            LedgerError::CannotOpen { .. } | LedgerError::ReadOnly { .. }
        );
        let status = match &error {
            LedgerError::Directory(_)
            | LedgerError::CannotOpen { .. }
            | LedgerError::NotADatabase { .. }
            | LedgerError::Foreign { .. }
            | LedgerError::Newer { .. }
            | LedgerError::ReadOnly { .. }
            | LedgerError::SkillTaken { .. }
            | LedgerError::NoSuchSkill { .. }
            | LedgerError::SkillMoved { .. } => ExitStatus::Usage,
            LedgerError::Locked { .. } => ExitStatus::LockHeld,
            LedgerError::TooLarge { .. } => ExitStatus::OverLimit,
            LedgerError::Damaged { .. }
            | LedgerError::DiskFull { .. }
            | LedgerError::KeyTaken { .. }
            | LedgerError::UnknownArtifact { .. }
            | LedgerError::NoOpenCall { .. }
            | LedgerError::NoActiveCrawl { .. }
            | LedgerError::GatesNotPassed { .. }
            | LedgerError::NotVerified { .. }
            | LedgerError::NotPromoted { .. }
            | LedgerError::Unreadable { .. }
            | LedgerError::Canonical(_)
            | LedgerError::Sqlite { .. } => ExitStatus::Refused,
        };
        let command = Self::new(status, error.to_string());
        if unwritable {
            // SQLite keeps its locks beside the file, for readers too.
            command.hint("To read the record of a disk that cannot be written to, copy its directory and set CRUCIBLE_HOME to the copy.")
        } else {
            command
        }
    }
}

impl From<SandboxError> for CommandError {
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
                "Install bubblewrap (Debian: apt-get install bubblewrap), or accept less with {} {}.",
                flag_of("sandbox.strength"),
                Strength::BestEffort.as_str()
            )),
            SandboxError::WorkingDirectory { problem: PathProblem::Hidden, .. } => command.hint(
                "The sandbox hides a home directory completely: change to your project first, or share this directory with `sandbox exec --write .`.",
            ),
            _ => command,
        }
    }
}

impl From<RepoError> for CommandError {
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
        // git's own words may quote a URL with credentials.
        let message = crucible_secrets::Scanner::builtin()
            .redact(&error.to_string())
            .text
            .into_owned();
        Self::new(status, message)
    }
}

impl From<LlmError> for CommandError {
    fn from(error: LlmError) -> Self {
        let status = match &error {
            error if error.holds_secret() => ExitStatus::SecretDetected,
            LlmError::Misconfiguration(_) | LlmError::Unsupported(_) => ExitStatus::Usage,
            LlmError::Timeout { .. } => ExitStatus::TimedOut,
            // Seed 002 gives a provider's quota the code of a failed provider; 4 is for our own limits of rate.
            LlmError::Transport(_)
            | LlmError::ProviderAuth(_)
            | LlmError::ProviderQuota(_)
            | LlmError::ProviderOutage(_)
            | LlmError::BudgetExceeded { .. } => ExitStatus::Provider,
        };
        let budget_exhausted = matches!(error, LlmError::BudgetExceeded { .. });
        Self {
            budget_exhausted,
            ..Self::new(status, error.to_string())
        }
    }
}

impl From<CassetteError> for CommandError {
    fn from(error: CassetteError) -> Self {
        let status = match &error {
            CassetteError::File(_) | CassetteError::Canonical(_) | CassetteError::Interrupted => {
                ExitStatus::Refused
            }
            CassetteError::NotACassette
            | CassetteError::Newer { .. }
            | CassetteError::BadLine { .. } => ExitStatus::Schema,
        };
        Self::new(status, error.to_string())
    }
}

impl From<CallError> for CommandError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Secret(secret) => Self::new(ExitStatus::SecretDetected, secret.to_string()),
            CallError::Llm(error) => error.into(),
            CallError::Record(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_reads_a_record_on_a_read_only_disk_is_told_to_copy_it() {
        let path = std::path::PathBuf::from("/media/old/ledger.db");
        let error = CommandError::from(LedgerError::ReadOnly { path });
        assert_eq!(error.status, ExitStatus::Usage);
        assert!(
            error
                .hints
                .iter()
                .any(|hint| hint.contains("copy its directory")),
            "{:?}",
            error.hints
        );
    }
}
