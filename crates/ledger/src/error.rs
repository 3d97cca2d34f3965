//! Why the ledger did not do what was asked, with what a reader can do about it.
//!
//! SQLite's result codes are folded into the few cases that differ for a user. In every case the database is
//! as it was before the call.

use std::path::{Path, PathBuf};

use crucible_host::fs::FsError;
use crucible_model::{CanonicalError, Digest, RunId};
use rusqlite::ErrorCode;

/// Why the ledger did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The directory of the database cannot be made or protected.
    #[error(transparent)]
    Directory(#[from] FsError),
    /// The database cannot be opened at all.
    #[error("cannot open the ledger {}: {reason}; check that its directory exists and is yours, or set CRUCIBLE_HOME", path.display())]
    CannotOpen {
        /// Where the database should be.
        path: PathBuf,
        /// What SQLite said.
        reason: String,
    },
    /// The file is not an SQLite database.
    #[error("{} is not a database; move it away, then start again with an empty ledger", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The file is a database of another program.
    #[error("{} is a database, but no ledger of Crucible; set CRUCIBLE_HOME to another directory", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The database is damaged.
    #[error("the ledger {} is damaged ({detail}); keep the file, restore it from a copy, and run `crucible ledger verify`", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What SQLite found.
        detail: String,
    },
    /// A later version of Crucible wrote the database.
    #[error("the ledger {} has schema {found}, this program knows up to {known}; use the newer Crucible that wrote it", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// The schema version in the file.
        found: i64,
        /// The last schema version this program knows.
        known: i64,
    },
    /// The database or its directory cannot be written.
    #[error("the ledger {} cannot be written; make its directory writable, or set CRUCIBLE_HOME", path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// Another process held the database for longer than we wait.
    #[error("the ledger {} is locked by another process; let it finish, then try again", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// The disk is full. What was in the ledger before is whole.
    #[error("no space left for the ledger {}; nothing was changed, free some space and try again", path.display())]
    DiskFull {
        /// The file.
        path: PathBuf,
    },
    /// A part of an event is longer than an event may hold.
    #[error(
        "the {part} of the event is {size} bytes, at most {limit} fit; store it as an artifact"
    )]
    TooLarge {
        /// Which part.
        part: &'static str,
        /// Its size in bytes.
        size: u64,
        /// The most that fits, in bytes.
        limit: u64,
    },
    /// The event's key is taken by an event of another kind.
    #[error(
        "run {run}: key {key:?} is already used by event {existing:?}; use a different key for each step"
    )]
    KeyTaken {
        /// The run of both events.
        run: RunId,
        /// The key that both events have.
        key: String,
        /// The event that has it.
        existing: String,
    },
    /// An event refers to an artifact that the ledger does not hold.
    #[error("the ledger holds no artifact {digest}; store it before the event that refers to it")]
    UnknownArtifact {
        /// The artifact.
        digest: Digest,
    },
    /// A model call is settled that was never reserved, or for the second time.
    #[error(
        "run {run} has no open model call {seq}; reserve a call before it is settled, and settle it once"
    )]
    NoOpenCall {
        /// The run of the call.
        run: RunId,
        /// The number of the call within the run.
        seq: u64,
    },
    /// An event belongs to a crawl that has ended, or never was.
    #[error("crawl {id} is not active; `crucible crawl history` shows how it ended")]
    NoActiveCrawl {
        /// The number of the session.
        id: u64,
    },
    /// A skill of this name was proposed before.
    #[error("skill {name} already exists; `crucible skill show {name}` shows its status")]
    SkillTaken {
        /// The name of the skill.
        name: String,
    },
    /// No skill has this number.
    #[error("there is no skill with the number {id} in the ledger")]
    NoSuchSkill {
        /// The number.
        id: u64,
    },
    /// A skill stands elsewhere than the step needs.
    #[error(
        "the skill {name} is {status}, so this step is not its next one; `crucible skill show {name}` tells which is"
    )]
    SkillMoved {
        /// The name of the skill.
        name: String,
        /// Where it stands.
        status: &'static str,
    },
    /// A verification is to end as passed without five gates that passed.
    #[error(
        "the skill {name} has not passed its gates: {missing} did not pass or did not run; `crucible skill verify {name}` runs them"
    )]
    GatesNotPassed {
        /// The skill.
        name: String,
        /// Which gates did not pass or did not run.
        missing: String,
    },
    /// A step into trust does not rest on the newest verification of these very files, or a step out of it on one.
    #[error(
        "the skill {name} was not verified with these files, or was verified or built again since; run `crucible skill verify {name}`"
    )]
    NotVerified {
        /// The skill.
        name: String,
    },
    /// A run names a promotion that did not let these bytes run.
    #[error(
        "the run of the skill {name} does not belong to the promotion it names; `crucible skill show {name}` tells which there are"
    )]
    NotPromoted {
        /// The skill.
        name: String,
    },
    /// A row does not hold what Crucible writes there.
    #[error("{what} in the ledger cannot be read; run `crucible ledger verify`")]
    Unreadable {
        /// Which row and column.
        what: String,
    },
    /// The body of an event has no canonical form.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
    /// Anything else SQLite may say.
    #[error("the ledger {} failed: {source}", path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
}

impl LedgerError {
    /// Sorts what SQLite said about the database at `path`.
    pub(crate) fn from_sqlite(path: &Path, error: rusqlite::Error) -> Self {
        let path = path.to_owned();
        let rusqlite::Error::SqliteFailure(failure, message) = &error else {
            return match error {
                rusqlite::Error::InvalidColumnType(_, column, _) => Self::Unreadable {
                    what: format!("the column {column}"),
                },
                rusqlite::Error::FromSqlConversionFailure(..) | rusqlite::Error::Utf8Error(..) => {
                    Self::Unreadable {
                        what: "a value".to_owned(),
                    }
                }
                source => Self::Sqlite { path, source },
            };
        };
        let detail = || message.clone().unwrap_or_else(|| failure.to_string());
        match failure.code {
            ErrorCode::NotADatabase => Self::NotADatabase { path },
            ErrorCode::DatabaseCorrupt => Self::Damaged {
                path,
                detail: detail(),
            },
            ErrorCode::CannotOpen => Self::CannotOpen {
                path,
                reason: detail(),
            },
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied => Self::ReadOnly { path },
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Locked { path },
            ErrorCode::DiskFull => Self::DiskFull { path },
            // Growing the shared-memory file of the write-ahead log fails this way when the disk is full.
            ErrorCode::SystemIoFailure
                if failure.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE =>
            {
                Self::DiskFull { path }
            }
            _ => Self::Sqlite {
                path,
                source: error,
            },
        }
    }
}
