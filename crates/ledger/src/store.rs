//! Opening the database: its settings, its migrations, and everything that can be wrong with the file.
//!
//! Migrations are numbered SQL files, applied forward only, each a transaction. Settings hold for a
//! connection and are set here, in one place: write-ahead log, full synchronisation, foreign keys, and no
//! trust in what a hostile schema could call.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crucible_host::fs;
use crucible_model::{ByteLimit, Digest};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use rusqlite_migration::{M, Migrations};

use crate::artifact::put_within;
use crate::chain::append_within;
use crate::error::LedgerError;
use crate::event::{EventRecord, NewEvent};
use crate::recorded_rows::{adopt_artifacts, adopt_rows, watch};
use crate::runs::{RunRow, record_run_within};

/// The database of everything Crucible remembers.
#[derive(Debug)]
pub struct Ledger {
    pub(crate) connection: Connection,
    path: PathBuf,
}

/// The SQL of every migration in its order. A file is never edited once released: a change is a new file.
const MIGRATIONS: [&str; 11] = [
    include_str!("../migrations/0001_chain.sql"),
    include_str!("../migrations/0002_runs_and_calls.sql"),
    include_str!("../migrations/0003_one_index_per_event.sql"),
    include_str!("../migrations/0004_crawl.sql"),
    include_str!("../migrations/0005_spec_receipts.sql"),
    include_str!("../migrations/0006_forge.sql"),
    include_str!("../migrations/0007_row_events.sql"),
    include_str!("../migrations/0008_schema_version.sql"),
    include_str!("../migrations/0009_required_gates.sql"),
    include_str!("../migrations/0010_recorded_rows.sql"),
    include_str!("../migrations/0011_runs_newest_first.sql"),
];

/// The migration that records older artifacts in the chain, counted from 1.
const ADOPTS_ARTIFACTS: usize = 7;
/// The migration that records older rows in the chain. A later one that changes rows of a guarded table records them again.
const ADOPTS_ROWS: usize = 10;

/// Every migration in its order, with what is done beside its SQL.
fn migrations() -> Migrations<'static> {
    let migration = |(at, sql): (usize, &&'static str)| match at + 1 {
        ADOPTS_ARTIFACTS => {
            M::up_with_hook(sql, |turn: &Transaction<'_>| Ok(adopt_artifacts(turn)?))
        }
        ADOPTS_ROWS => M::up_with_hook(sql, |turn: &Transaction<'_>| Ok(adopt_rows(turn)?)),
        _ => M::up(sql),
    };
    Migrations::new(MIGRATIONS.iter().enumerate().map(migration).collect())
}

/// The `application_id` in the header of the file: "CRUC".
const APPLICATION_ID: i64 = 0x4352_5543;

/// Where a database in memory lies, for errors.
const NOWHERE: &str = ":memory:";

/// How long a call waits for another process that writes, by default.
const TIMEOUT: Duration = Duration::from_secs(10);

impl Ledger {
    /// Opens the ledger at `path`, creates it if missing, and brings an older one up to date.
    ///
    /// # Errors
    ///
    /// Each way in which the file or its place can be wrong has its own [`LedgerError`]; none of them changes
    /// the file.
    pub fn open(path: &Path) -> Result<Self, LedgerError> {
        Self::open_waiting(path, TIMEOUT)
    }

    /// Like [`Ledger::open`], but this call and every later one wait at most `busy_timeout` for another writer.
    ///
    /// # Errors
    ///
    /// As [`Ledger::open`].
    pub fn open_waiting(path: &Path, busy_timeout: Duration) -> Result<Self, LedgerError> {
        // A name that begins with `file:` would be read as a URI; a leading `./` keeps every name a name.
        let path = if path.is_absolute() {
            Cow::Borrowed(path)
        } else {
            Cow::Owned(Path::new(".").join(path))
        };
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        remove_stale_temporaries(&path);
        let is_new = !is_there(&path)?;
        if !is_new {
            refuse_other_files(&path)?;
        }
        if is_new {
            // Where this does not work SQLite makes the file itself, and tells what is wrong.
            let _made = new_image().map(|image| fs::write_new(&path, &image).is_ok());
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_EXRESCODE;
        let fail = |error| LedgerError::from_sqlite(&path, error);
        let mut connection = Connection::open_with_flags(&path, flags).map_err(fail)?;
        if is_new {
            fs::set_mode(&path, 0o600)?;
        }
        configure(&mut connection, busy_timeout).map_err(fail)?;
        check_identity(&connection, &path)?;
        use_write_ahead_log(&connection, busy_timeout).map_err(fail)?;
        migrate(&mut connection, &path)?;
        watch(&connection).map_err(fail)?;
        Ok(Self {
            connection,
            path: path.into_owned(),
        })
    }

    /// Opens the ledger at `path` if there is one: looking at it makes none.
    ///
    /// # Errors
    ///
    /// As [`Ledger::open`].
    pub fn open_existing(path: &Path) -> Result<Option<Self>, LedgerError> {
        if is_there(path)? {
            Self::open(path).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Looks whether this process may write: another writer is waited for as in every call. Nothing is written. For work that costs
    /// something and is to be recorded afterwards.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Locked`] where another process does not come to an end, and whatever else keeps a write from beginning.
    pub fn check_writable(&mut self) -> Result<(), LedgerError> {
        let fail = self.fail();
        let turn = self.connection.transaction().map_err(&fail)?;
        turn.rollback().map_err(fail)
    }

    /// Does several writes in one transaction: all of them are on the disk when this returns, or none is made. For what belongs
    /// together, and costs one flush instead of one for each. Other writers wait meanwhile, so `work` does nothing else.
    ///
    /// # Errors
    ///
    /// The first error of `work`, and whatever can be wrong with the database.
    pub fn transact<T>(
        &mut self,
        work: impl FnOnce(&mut LedgerTransaction<'_>) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        let fail = self.fail();
        let transaction = self.connection.transaction().map_err(&fail)?;
        let mut turn = LedgerTransaction {
            connection: &transaction,
            path: &self.path,
        };
        let done = work(&mut turn)?;
        transaction.commit().map_err(&fail)?;
        Ok(done)
    }

    /// Reads in one transaction, so that what other processes write meanwhile is in all of the answers or in none.
    ///
    /// # Errors
    ///
    /// Fails as `read` does, and when the database cannot be read.
    pub fn snapshot<T, E: From<LedgerError>>(
        &self,
        read: impl FnOnce(&Self) -> Result<T, E>,
    ) -> Result<T, E> {
        // The connection's own transactions lock out writers from their beginning.
        let _transaction =
            Transaction::new_unchecked(&self.connection, TransactionBehavior::Deferred)
                .map_err(self.fail())?;
        read(self)
    }

    /// Where the database lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn fail(&self) -> impl Fn(rusqlite::Error) -> LedgerError + use<> {
        let path = self.path.clone();
        move |error| LedgerError::from_sqlite(&path, error)
    }
}

/// A transaction that is under way ([`Ledger::transact`]).
#[derive(Debug)]
pub struct LedgerTransaction<'l> {
    connection: &'l Connection,
    path: &'l Path,
}

impl LedgerTransaction<'_> {
    /// As [`Ledger::append`]; on the disk when the transaction is.
    ///
    /// # Errors
    ///
    /// As [`Ledger::append`].
    pub fn append(&mut self, new: NewEvent) -> Result<EventRecord, LedgerError> {
        append_within(self.connection, new, &self.fail())
    }

    /// As [`Ledger::put_artifact`]; on the disk when the transaction is.
    ///
    /// # Errors
    ///
    /// As [`Ledger::put_artifact`].
    pub fn put_artifact(&mut self, kind: &str, bytes: &[u8]) -> Result<Digest, LedgerError> {
        put_within(self.connection, kind, bytes, &self.fail())
    }

    /// As [`Ledger::record_run`]; on the disk when the transaction is.
    ///
    /// # Errors
    ///
    /// As [`Ledger::record_run`].
    pub fn record_run(&mut self, run: &RunRow) -> Result<(), LedgerError> {
        record_run_within(self.connection, run, &self.fail())
    }

    fn fail(&self) -> impl Fn(rusqlite::Error) -> LedgerError + use<'_> {
        |error| LedgerError::from_sqlite(self.path, error)
    }
}

/// The schema that this program writes: type, name, table and SQL of every object, in a fixed order.
pub(crate) fn expected_schema() -> Result<Vec<[String; 4]>, LedgerError> {
    read_schema(&in_memory()?).map_err(of_memory)
}

/// An empty ledger in memory.
fn in_memory() -> Result<Connection, LedgerError> {
    let mut fresh = Connection::open_in_memory().map_err(of_memory)?;
    migrate(&mut fresh, Path::new(NOWHERE))?;
    Ok(fresh)
}

fn of_memory(error: rusqlite::Error) -> LedgerError {
    LedgerError::from_sqlite(Path::new(NOWHERE), error)
}

/// The schema that a database has, with the versions that its table names.
pub(crate) fn read_schema(connection: &Connection) -> Result<Vec<[String; 4]>, rusqlite::Error> {
    let sql = "SELECT type, name, tbl_name, ifnull(sql, '') FROM sqlite_schema
               WHERE name NOT LIKE 'sqlite_stat%'
               UNION ALL SELECT 'version', CAST(version AS TEXT), migration, '' FROM schema_version ORDER BY 1, 2";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| {
        Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?])
    })?;
    rows.collect()
}

/// The bytes of an empty ledger. Written as one file they cost two flushes, where making the database in its place takes eight.
fn new_image() -> Result<Vec<u8>, LedgerError> {
    /// Where the header says by what journal the file is read and written, and the number of the write-ahead log
    /// (<https://www.sqlite.org/fileformat.html>, 1.3.3).
    const JOURNAL: std::ops::Range<usize> = 18..20;
    const WRITE_AHEAD_LOG: u8 = 2;
    let mut image = in_memory()?.serialize("main").map_err(of_memory)?.to_vec();
    if let Some(numbers) = image.get_mut(JOURNAL) {
        numbers.fill(WRITE_AHEAD_LOG);
    }
    Ok(image)
}

/// Removes what processes left in the ledger's directory that were killed while they wrote a file there. What cannot be removed stays.
fn remove_stale_temporaries(path: &Path) {
    let directory = path.parent().and_then(|parent| parent.canonicalize().ok());
    let _stays = directory.map(|directory| fs::remove_stale_temporaries(&directory));
}

/// Whether the path exists. An unreadable path counts as existing.
fn is_there(path: &Path) -> Result<bool, LedgerError> {
    path.try_exists().map_err(|error| LedgerError::CannotOpen {
        path: path.to_owned(),
        reason: error.to_string(),
    })
}

/// SQLite takes a file of a few bytes for an empty database and would write over it, and it waits at pipes.
fn refuse_other_files(path: &Path) -> Result<(), LedgerError> {
    const MAGIC: &[u8] = b"SQLite format 3\0";
    // SQLite's own files beside it count as well.
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        let file = Path::new(&name);
        let reason = match file.metadata() {
            Ok(meta) if meta.is_dir() => "it is a directory",
            Ok(meta) if !meta.is_file() => "it is not a regular file",
            Ok(_) | Err(_) => continue,
        };
        return Err(LedgerError::CannotOpen {
            path: file.to_owned(),
            reason: reason.to_owned(),
        });
    }
    let start = fs::read_prefix(path, ByteLimit(MAGIC.len() as u64))?.bytes;
    if start.is_empty() || start == MAGIC {
        Ok(())
    } else {
        Err(LedgerError::NotADatabase {
            path: path.to_owned(),
        })
    }
}

fn configure(connection: &mut Connection, busy_timeout: Duration) -> Result<(), rusqlite::Error> {
    connection.busy_timeout(busy_timeout)?;
    connection.set_transaction_behavior(TransactionBehavior::Immediate);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true)?;
    connection.execute_batch(
        "PRAGMA synchronous = FULL; PRAGMA cell_size_check = ON; PRAGMA recursive_triggers = ON;",
    )
}

/// Refuses a file that is not ours before anything is written to it.
fn check_identity(connection: &Connection, path: &Path) -> Result<(), LedgerError> {
    // One statement is one snapshot: another process may be making the database at this moment.
    let sql = "SELECT (SELECT application_id FROM pragma_application_id),
                      (SELECT user_version FROM pragma_user_version),
                      (SELECT count(*) FROM sqlite_schema)";
    let (id, version, objects): (i64, i64, i64) = connection
        .query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .map_err(|error| LedgerError::from_sqlite(path, error))?;
    let is_fresh = (id, version, objects) == (0, 0, 0);
    if !is_fresh && id != APPLICATION_ID {
        return Err(LedgerError::Foreign {
            path: path.to_owned(),
        });
    }
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    if version < 0 || version > known {
        return Err(LedgerError::Newer {
            path: path.to_owned(),
            found: version,
            known,
        });
    }
    Ok(())
}

/// The first switch to the write-ahead log needs the database for itself, and SQLite does not wait for that.
fn use_write_ahead_log(
    connection: &Connection,
    busy_timeout: Duration,
) -> Result<(), rusqlite::Error> {
    let pause = Duration::from_millis(10);
    let mut waited = Duration::ZERO;
    loop {
        match connection.query_row("PRAGMA journal_mode = WAL", [], |row| {
            row.get::<_, String>(0)
        }) {
            Err(rusqlite::Error::SqliteFailure(failure, _))
                if failure.code == rusqlite::ErrorCode::DatabaseBusy && waited < busy_timeout =>
            {
                std::thread::sleep(pause);
                waited += pause;
            }
            result => return result.map(|_| ()),
        }
    }
}

fn migrate(connection: &mut Connection, path: &Path) -> Result<(), LedgerError> {
    let migrations = migrations();
    let Err(error) = migrations.to_latest(connection) else {
        return Ok(());
    };
    // Two processes may open a new ledger at once. Each migration fails as a whole when it was applied before,
    // so the later one only has to see that the work is done.
    match (migrations.pending_migrations(connection), error) {
        (Ok(0), _) => Ok(()),
        (_, rusqlite_migration::Error::RusqliteError { err, .. }) => {
            Err(LedgerError::from_sqlite(path, err))
        }
        (_, other) => Err(LedgerError::Damaged {
            path: path.to_owned(),
            detail: other.to_string(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use crucible_model::{Digest, RunId, Timestamp};
    use serde_json::json;

    use super::*;
    use crate::{NewCrawl, NewEvent, NewSpecReceipt};

    fn event(number: u64) -> NewEvent {
        let run: RunId = "r".parse().unwrap();
        let ts: Timestamp = "2026-01-31T09:30:00Z".parse().unwrap();
        NewEvent::new(
            run,
            ts,
            "chair",
            "step",
            json!({ "number": number, "padding": "x".repeat(500) }),
        )
    }

    /// A database as the version before migration `version + 1` left it, with what that version could hold.
    fn database_of_version(path: &Path, version: usize) {
        let mut old = Connection::open(path).unwrap();
        old.pragma_update(None, "journal_mode", "WAL").unwrap();
        migrations().to_version(&mut old, version).unwrap();
        if version >= 1 {
            drop(old);
            let connection = Connection::open(path).unwrap();
            let mut ledger = Ledger {
                connection,
                path: path.to_owned(),
            };
            ledger.append(event(1)).unwrap();
            ledger.put_artifact("log", b"kept").unwrap();
        }
    }

    #[test]
    fn every_older_version_is_migrated_with_its_rows() {
        for version in 0..=MIGRATIONS.len() {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("ledger.db");
            database_of_version(&path, version);
            let mut ledger = Ledger::open(&path).unwrap();
            // The event that was written then, and one that tells of the artifact where the version did not yet.
            let event_count =
                u64::from(version >= 1) + u64::from((1..ADOPTS_ARTIFACTS).contains(&version));
            assert_eq!(
                ledger.head().unwrap().seq,
                event_count,
                "from version {version}"
            );
            assert_eq!(ledger.append(event(2)).unwrap().seq, event_count + 1);
            assert_eq!(
                ledger.verify(&[]).unwrap().findings(),
                [],
                "from version {version}"
            );
            assert!(ledger.runs().unwrap().is_empty());
            let crawl = NewCrawl {
                moment: crate::Moment {
                    at: "2026-01-31T09:30:00Z".parse().unwrap(),
                    clock: crucible_model::ClockSource::System,
                },
                query: None,
                config_snapshot: "{}".to_owned(),
            };
            let (id, ()) = ledger
                .begin_crawl(&crawl, |_| Ok::<_, LedgerError>(()))
                .unwrap();
            assert_eq!(id, 1, "from version {version}");
            let receipt = NewSpecReceipt {
                project: Digest::compute(b"project"),
                spec: "spec".to_owned(),
                sequence: 1,
                receipt_id: "design-20260131-093000-0001".to_owned(),
                phase: "design".to_owned(),
                status: "success".to_owned(),
                digest: Digest::compute(b"{}"),
                outputs: Vec::new(),
                at: "2026-01-31T09:30:00Z".parse().unwrap(),
                clock: crucible_model::ClockSource::System,
                content: b"{}".to_vec(),
            };
            let row = ledger.record_spec_receipt(&receipt).unwrap();
            assert_eq!(
                ledger
                    .newest_spec_receipts(&receipt.project, "spec")
                    .unwrap(),
                [row]
            );
            assert_eq!(
                ledger.verify(&[]).unwrap().findings(),
                [],
                "from version {version}"
            );
        }
    }

    /// The bytes that are written for a new ledger are a database like one that SQLite made in its place.
    #[test]
    fn new_ledger_is_complete_before_first_write() {
        let dir = tempfile::tempdir().unwrap();
        let (full_path, grown) = (dir.path().join("whole.db"), dir.path().join("grown.db"));
        fs::write_new(&full_path, &new_image().unwrap()).unwrap();
        drop(
            Connection::open(&grown).unwrap().query_row(
                "PRAGMA journal_mode = WAL",
                [],
                |_| Ok(()),
            ),
        );
        let schemas = [&full_path, &grown].map(|path| {
            let mut ledger = Ledger::open(path).unwrap();
            ledger.append(event(1)).unwrap();
            assert_eq!(ledger.verify(&[]).unwrap().findings(), []);
            let settings: (i64, i64, String) = ledger
                .connection
                .query_row(
                    "SELECT user_version, page_size, journal_mode FROM pragma_user_version, pragma_page_size, pragma_journal_mode",
                    [],
                    |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
                )
                .unwrap();
            (settings, read_schema(&ledger.connection).unwrap())
        });
        assert_eq!(schemas[0], schemas[1]);
        assert_eq!(schemas[0].0.2, "wal");
    }

    #[test]
    fn migrations_match_the_files_in_order() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names.len(), MIGRATIONS.len());
        for (index, name) in names.iter().enumerate() {
            assert!(
                name.starts_with(&format!("{:04}_", index + 1)) && name.ends_with(".sql"),
                "{name}"
            );
        }
    }

    #[test]
    fn schema_version_is_read_without_crucible() {
        for version in 0..=MIGRATIONS.len() {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("ledger.db");
            database_of_version(&path, version);
            drop(Ledger::open(&path).unwrap());
            let other = Connection::open(&path).unwrap();
            let read = |sql: &str| {
                other
                    .query_row(sql, [], |row| row.get::<_, i64>(0))
                    .unwrap()
            };
            assert_eq!(
                read("SELECT max(version) FROM schema_version"),
                MIGRATIONS.len() as i64,
                "{version}"
            );
            assert_eq!(
                read("SELECT count(*) FROM schema_version"),
                read("SELECT user_version FROM pragma_user_version")
            );
            let names: Vec<String> = other
                .prepare("SELECT migration || '.sql' FROM schema_version ORDER BY version")
                .unwrap()
                .query_map([], |row| row.get(0))
                .unwrap()
                .collect::<Result<_, _>>()
                .unwrap();
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
            assert!(
                names.iter().all(|name| folder.join(name).is_file()),
                "{names:?}"
            );
            assert!(other.execute("DELETE FROM schema_version", []).is_err());
        }
    }

    /// What two processes that open a new ledger at once rely on.
    #[test]
    fn no_migration_can_be_applied_twice() {
        for version in 1..=MIGRATIONS.len() {
            let mut connection = Connection::open_in_memory().unwrap();
            migrations().to_version(&mut connection, version).unwrap();
            connection
                .pragma_update(None, "user_version", version as i64 - 1)
                .unwrap();
            assert!(
                migrations().to_version(&mut connection, version).is_err(),
                "{version}"
            );
        }
    }

    #[test]
    fn database_at_size_limit_reports_full_disk() {
        let dir = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::open(&dir.path().join("ledger.db")).unwrap();
        ledger.append(event(1)).unwrap();
        let pages: i64 = ledger
            .connection
            .query_row("PRAGMA page_count", [], |row| row.get(0))
            .unwrap();
        ledger
            .connection
            .query_row(
                &format!("PRAGMA max_page_count = {}", pages + 2),
                [],
                |_| Ok(()),
            )
            .unwrap();
        let mut last = 1;
        let error = loop {
            match ledger.append(event(last + 1)) {
                Ok(record) => last = record.seq,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, LedgerError::DiskFull { .. }), "{error}");
        assert!(matches!(
            ledger.put_artifact("log", &[0; 100_000]),
            Err(LedgerError::DiskFull { .. })
        ));
        assert_eq!(ledger.head().unwrap().seq, last);
        assert_eq!(ledger.verify(&[]).unwrap().findings(), []);
        ledger
            .connection
            .query_row("PRAGMA max_page_count = 1000000", [], |_| Ok(()))
            .unwrap();
        assert_eq!(ledger.append(event(last + 1)).unwrap().seq, last + 1);
    }

    #[test]
    fn the_settings_hold_for_every_connection() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger.db");
        for _ in 0..2 {
            let ledger = Ledger::open(&path).unwrap();
            let text = |name: &str| -> String {
                let sql = format!("SELECT CAST({name} AS TEXT) FROM pragma_{name}");
                ledger
                    .connection
                    .query_row(&sql, [], |row| row.get(0))
                    .unwrap()
            };
            assert_eq!(text("journal_mode"), "wal");
            assert_eq!(text("synchronous"), "2");
            assert_eq!(text("foreign_keys"), "1");
            assert_eq!(text("trusted_schema"), "0");
            assert_eq!(text("recursive_triggers"), "1");
        }
    }
}
