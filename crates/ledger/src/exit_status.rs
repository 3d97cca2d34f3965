//! The exit status and the hints of each error of this crate.

use crucible_model::{ExitStatus, Failure};

use crate::error::LedgerError;

impl From<LedgerError> for Failure {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ledger_on_read_only_disk_hints_copying() {
        let path = std::path::PathBuf::from("/media/old/ledger.db");
        let error = Failure::from(LedgerError::ReadOnly { path });
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
