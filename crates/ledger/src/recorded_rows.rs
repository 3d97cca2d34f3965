//! Rows that change, recorded in the chain.
//!
//! Each table of [`GUARDED`] is compared with the chain. A row and the event that records it are written in one transaction: temporary
//! triggers of the connection note each row that is inserted or updated ([`watch`]), and [`commit`] appends an event that says what those
//! rows hold. The table `recorded_rows` names the newest event of each row. [`disagreements`] compares both sides: a row that holds
//! something else than its event, a row without an event, an event without its row, and a row that names an older event.
//!
//! A change never confirms an edit: where a row was not what the chain records before the change, the new state is not recorded
//! either, and the comparison goes on to find it.
//!
//! Events of the rows of a run are appended under a run of their own, `rows-<run>`, so that the story of the run itself stays what its
//! journal recorded; those of other tables are appended under the run `rows`.
//!
//! [`adopt_rows`] records what a ledger of an older version holds, once, when it is migrated.

use std::collections::{BTreeMap, BTreeSet};

use crucible_model::{Digest, RunId, Timestamp, to_canonical_json};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Params, Row, Transaction, params};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::chain::append_within;
use crate::error::LedgerError;
use crate::event::{MAX_BODY_BYTES, NewEvent};

/// The tables whose rows are recorded in the chain.
const GUARDED: [GuardedTable; 11] = [
    GuardedTable {
        name: "runs",
        kind: RowKind::Run,
    },
    GuardedTable {
        name: "model_calls",
        kind: RowKind::Call,
    },
    GuardedTable {
        name: "crawl_sessions",
        kind: RowKind::Crawl,
    },
    GuardedTable {
        name: "crawl_artifacts",
        kind: RowKind::Crawl,
    },
    GuardedTable {
        name: "crawl_messages",
        kind: RowKind::Crawl,
    },
    GuardedTable {
        name: "skill_proposals",
        kind: RowKind::Skill,
    },
    GuardedTable {
        name: "builds",
        kind: RowKind::Skill,
    },
    GuardedTable {
        name: "verifications",
        kind: RowKind::Skill,
    },
    GuardedTable {
        name: "gate_results",
        kind: RowKind::Skill,
    },
    GuardedTable {
        name: "skill_artifacts",
        kind: RowKind::Skill,
    },
    GuardedTable {
        name: "skill_runs",
        kind: RowKind::Skill,
    },
];

/// The role of the events that record rows.
const ROLE: &str = "ledger";
/// The name of the events that record rows.
const ROWS_RECORDED: &str = "ROWS_RECORDED";
const ARTIFACTS_ADOPTED: &str = "ARTIFACTS_ADOPTED";

/// Text of more bytes than this is recorded by its digest.
const MAX_TEXT_BYTES: usize = 200;
/// The most rows that one event records.
const MAX_ROWS_PER_EVENT: usize = 100;
/// The most artifacts that one event adopts.
const MAX_ARTIFACTS_PER_EVENT: usize = 1000;

/// A row that the chain does not confirm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowFault {
    /// What the row is about.
    pub of: RowKind,
    /// The row: `run r`, `call 3 of run r`, `row 2 of builds`.
    pub subject: String,
    /// What is wrong with it.
    pub problem: &'static str,
}

/// What a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowKind {
    /// A run in the list of runs.
    Run,
    /// A model call.
    Call,
    /// A crawl: its session, an artifact or a message.
    Crawl,
    /// A skill: its proposal, a build, a verification, a gate, an artifact or a run.
    Skill,
    /// The record of a row in a table that is not compared.
    Record,
}

const EDITED: &str = "the row does not say what its event says";
const UNRECORDED: &str = "no event records the row";
const TURNED_BACK: &str = "the row names an older event than the newest one about it";
const GONE: &str = "its row is gone";

/// A table whose rows are recorded in the chain.
struct GuardedTable {
    name: &'static str,
    kind: RowKind,
}

impl GuardedTable {
    fn by_name(name: &str) -> Option<&'static Self> {
        GUARDED.iter().find(|table| table.name == name)
    }

    /// Whether the first column of its key is a run.
    fn is_of_runs(&self) -> bool {
        matches!(self.kind, RowKind::Run | RowKind::Call)
    }

    fn fault(&self, key: &str, problem: &'static str) -> RowFault {
        RowFault {
            of: self.kind,
            subject: subject_of(self.name, key),
            problem,
        }
    }
}

/// The name of a row in findings.
fn subject_of(table: &str, key: &str) -> String {
    let plain = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    let parts: Vec<String> = serde_json::from_str::<Vec<Value>>(key).map_or_else(
        |_| vec![key.to_owned()],
        |parts| parts.iter().map(plain).collect(),
    );
    match (table, parts.as_slice()) {
        ("runs", [run]) => format!("run {run}"),
        ("model_calls", [run, seq]) => format!("call {seq} of run {run}"),
        _ => format!("row {} of {table}", parts.join("/")),
    }
}

/// The columns of a table, as SQL.
struct Columns {
    all: Vec<String>,
    key: Vec<String>,
}

impl Columns {
    fn read(connection: &Connection, table: &GuardedTable) -> Result<Self, rusqlite::Error> {
        let names = |sql: &str| -> Result<Vec<String>, rusqlite::Error> {
            connection
                .prepare_cached(sql)?
                .query_map([table.name], |row| row.get(0))?
                .collect()
        };
        Ok(Self {
            all: names("SELECT name FROM pragma_table_info(?1) ORDER BY cid")?,
            key: names("SELECT name FROM pragma_table_info(?1) WHERE pk > 0 ORDER BY pk")?,
        })
    }

    /// The JSON array of the key of a row that is called `row`.
    fn key_of(&self, row: &str) -> String {
        let parts: Vec<String> = self
            .key
            .iter()
            .map(|column| format!("{row}.{column}"))
            .collect();
        format!("json_array({})", parts.join(", "))
    }

    /// The JSON object of a row that is called `row`.
    fn row_of(&self, row: &str) -> String {
        let parts: Vec<String> = self
            .all
            .iter()
            .map(|column| format!("'{column}', {row}.{column}"))
            .collect();
        format!("json_object({})", parts.join(", "))
    }

    /// The condition that a row called `row` has the key that the JSON array `key` holds.
    fn has_key(&self, row: &str, key: &str) -> String {
        let part = |(at, column): (usize, &String)| {
            format!("{row}.{column} = iif(json_valid({key}), json_extract({key}, '$[{at}]'), NULL)")
        };
        self.key
            .iter()
            .enumerate()
            .map(part)
            .collect::<Vec<_>>()
            .join(" AND ")
    }
}

/// A row as an event records it. Columns without a value are left out, so that a column that is added later changes no record.
#[derive(Serialize, Deserialize)]
struct RecordedRow {
    table: String,
    row: Map<String, Value>,
}

impl RecordedRow {
    /// The record of a row that SQLite read as a JSON object.
    fn parse(table: &GuardedTable, object: &str) -> Option<Self> {
        let mut row: Map<String, Value> = serde_json::from_str(object).ok()?;
        row.retain(|_, value| !value.is_null());
        for value in row.values_mut() {
            if let Some(text) = value.as_str().filter(|text| text.len() > MAX_TEXT_BYTES) {
                *value = json!({ "sha256": Digest::compute(text.as_bytes()), "bytes": text.len() });
            }
        }
        Some(Self {
            table: table.name.to_owned(),
            row,
        })
    }

    /// The key, as [`Columns::key_of`] gives it.
    fn key(&self, columns: &Columns) -> String {
        let part = |column: &String| self.row.get(column).cloned().unwrap_or(Value::Null);
        Value::Array(columns.key.iter().map(part).collect()).to_string()
    }

    /// Whether an event of this body records the row. A string in the body cannot hold these bytes: its quotes are escaped.
    fn is_in(&self, body: &str) -> bool {
        to_canonical_json(self)
            .is_ok_and(|text| std::str::from_utf8(&text).is_ok_and(|text| body.contains(text)))
    }
}

/// The body of an event.
#[derive(Serialize, Deserialize)]
struct Body {
    rows: Vec<RecordedRow>,
}

/// A row that changes.
struct Change {
    table: &'static GuardedTable,
    key: String,
    /// The row before the change, as a JSON object; absent for a row that is inserted.
    before: Option<String>,
}

/// Notes each row of a guarded table that this connection inserts or updates, until [`commit`].
pub(crate) fn watch(connection: &Connection) -> Result<(), rusqlite::Error> {
    let mut sql = "PRAGMA temp_store = MEMORY;
        CREATE TEMP TABLE changed_rows (table_name TEXT NOT NULL, row_key TEXT NOT NULL, before TEXT);"
        .to_owned();
    for table in &GUARDED {
        let columns = Columns::read(connection, table)?;
        if columns.key.is_empty() {
            // The table is gone, which `verify` reports.
            continue;
        }
        let (name, key, before) = (table.name, columns.key_of("NEW"), columns.row_of("OLD"));
        for (event, before) in [("INSERT", "NULL"), ("UPDATE", before.as_str())] {
            sql += &format!(
                "CREATE TEMP TRIGGER {name}_note_{event} AFTER {event} ON main.{name}
                 BEGIN INSERT INTO changed_rows VALUES ('{name}', {key}, {before}); END;"
            );
        }
    }
    connection.execute_batch(&sql)
}

/// Records what changed in guarded tables, and commits.
pub(crate) fn commit(
    transaction: Transaction<'_>,
    at: Timestamp,
    fail: &impl Fn(rusqlite::Error) -> LedgerError,
) -> Result<(), LedgerError> {
    record_changes(&transaction, at, fail)?;
    transaction.commit().map_err(fail)
}

/// Records what changed in guarded tables, within a transaction.
pub(crate) fn record_changes(
    transaction: &Connection,
    at: Timestamp,
    fail: &impl Fn(rusqlite::Error) -> LedgerError,
) -> Result<(), LedgerError> {
    let changes = take_changes(transaction).map_err(fail)?;
    record(transaction, &changes, at, fail)
}

/// The rows that changed, each once, with what it held before its first change.
fn take_changes(transaction: &Connection) -> Result<Vec<Change>, rusqlite::Error> {
    let sql = "SELECT table_name, row_key, before, min(rowid) FROM temp.changed_rows
               GROUP BY table_name, row_key ORDER BY min(rowid)";
    let read = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get(1)?, row.get(2)?));
    let rows: Vec<_> = transaction
        .prepare_cached(sql)?
        .query_map([], read)?
        .collect::<Result<_, _>>()?;
    if !rows.is_empty() {
        transaction
            .prepare_cached("DELETE FROM temp.changed_rows")?
            .execute([])?;
    }
    let change = |(table, key, before): (String, String, Option<String>)| {
        GuardedTable::by_name(&table).map(|table| Change { table, key, before })
    };
    Ok(rows.into_iter().filter_map(change).collect())
}

fn record(
    transaction: &Connection,
    changes: &[Change],
    at: Timestamp,
    fail: &impl Fn(rusqlite::Error) -> LedgerError,
) -> Result<(), LedgerError> {
    let mut books: BTreeMap<RunId, Vec<(&Change, RecordedRow)>> = BTreeMap::new();
    for change in changes {
        if was_confirmed(transaction, change).map_err(fail)?
            && let Some(row) = read_row(transaction, change.table, &change.key).map_err(fail)?
        {
            books
                .entry(book_of(change)?)
                .or_default()
                .push((change, row));
        }
    }
    for (book, rows) in books {
        let (changes, rows): (Vec<&Change>, Vec<RecordedRow>) = rows.into_iter().unzip();
        let body = serde_json::to_value(Body { rows }).map_err(|_| LedgerError::Unreadable {
            what: "a row".to_owned(),
        })?;
        let event = append_within(
            transaction,
            NewEvent::new(book, at, ROLE, ROWS_RECORDED, body),
            fail,
        )?;
        let event = i64::try_from(event.seq).unwrap_or(i64::MAX);
        let sql = "INSERT INTO recorded_rows (table_name, row_key, event) VALUES (?1, ?2, ?3)
                   ON CONFLICT (table_name, row_key) DO UPDATE SET event = excluded.event";
        for change in changes {
            transaction
                .prepare_cached(sql)
                .and_then(|mut upsert| {
                    upsert.execute(params![change.table.name, change.key, event])
                })
                .map_err(fail)?;
        }
    }
    Ok(())
}

/// Whether the row was what the chain records before the change; a new row is one that the chain does not know.
fn was_confirmed(connection: &Connection, change: &Change) -> Result<bool, rusqlite::Error> {
    let recorded = newest_record(connection, change.table.name, &change.key)?;
    Ok(match (&change.before, recorded) {
        (None, None) => true,
        (Some(before), Some((_, Some(body)))) => {
            RecordedRow::parse(change.table, before).is_some_and(|before| before.is_in(&body))
        }
        _ => false,
    })
}

/// The row with this key, as it is recorded.
fn read_row(
    connection: &Connection,
    table: &GuardedTable,
    key: &str,
) -> Result<Option<RecordedRow>, rusqlite::Error> {
    let columns = Columns::read(connection, table)?;
    let sql = format!(
        "SELECT {} FROM {} AS x WHERE {}",
        columns.row_of("x"),
        table.name,
        columns.has_key("x", "?1")
    );
    let object: Option<String> = connection
        .prepare_cached(&sql)?
        .query_row([key], |row| row.get(0))
        .optional()?;
    Ok(object.and_then(|object| RecordedRow::parse(table, &object)))
}

/// The newest event of a row by `recorded_rows`, with its body where that event records rows.
fn newest_record(
    connection: &Connection,
    table: &str,
    key: &str,
) -> Result<Option<(i64, Option<String>)>, rusqlite::Error> {
    let sql = format!(
        "SELECT r.event, iif(octet_length(e.body) <= {MAX_BODY_BYTES}, e.body, NULL) FROM recorded_rows r
         LEFT JOIN events e ON e.seq = r.event AND e.role = '{ROLE}' AND e.event = '{ROWS_RECORDED}'
         WHERE r.table_name = ?1 AND r.row_key = ?2"
    );
    connection
        .prepare_cached(&sql)?
        .query_row([table, key], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}

/// The run under which a row is recorded.
fn book_of(change: &Change) -> Result<RunId, LedgerError> {
    let run = || {
        serde_json::from_str::<Vec<Value>>(&change.key)
            .ok()?
            .first()?
            .as_str()?
            .parse::<RunId>()
            .ok()
    };
    let book = match change.table.is_of_runs().then(run).flatten() {
        Some(run) => book_of_run(&run),
        None => "rows".parse().ok(),
    };
    book.ok_or_else(|| LedgerError::Unreadable {
        what: format!("a row of {}", change.table.name),
    })
}

/// The run under which the rows of a run are recorded.
fn book_of_run(run: &RunId) -> Option<RunId> {
    let short = || format!("rows-{}", Digest::compute(run.as_str().as_bytes()).short());
    format!("rows-{run}")
        .parse()
        .or_else(|_| short().parse())
        .ok()
}

/// The rows that the chain does not confirm, of one run or of all.
pub(crate) fn disagreements(
    connection: &Connection,
    run: Option<&RunId>,
) -> Result<Vec<RowFault>, rusqlite::Error> {
    let mut comparison = Comparison {
        connection,
        seen: BTreeSet::new(),
        faults: Vec::new(),
    };
    for table in GUARDED
        .iter()
        .filter(|table| run.is_none() || table.is_of_runs())
    {
        comparison.rows_of(table, run)?;
    }
    comparison.events(run)?;
    if run.is_none() {
        comparison.records()?;
    }
    Ok(comparison.faults)
}

/// The state of a comparison. It holds the rows that have a fault.
struct Comparison<'c> {
    connection: &'c Connection,
    seen: BTreeSet<(String, String)>,
    faults: Vec<RowFault>,
}

impl Comparison<'_> {
    /// Compares each row with its newest event.
    fn rows_of(
        &mut self,
        table: &GuardedTable,
        run: Option<&RunId>,
    ) -> Result<(), rusqlite::Error> {
        let columns = Columns::read(self.connection, table)?;
        let of_run = match (run, columns.key.first()) {
            (Some(_), Some(first)) => format!("WHERE x.{first} = ?1"),
            _ => String::new(),
        };
        let (key, object) = (columns.key_of("x"), columns.row_of("x"));
        let sql = format!("SELECT {key}, {object} FROM {} AS x {of_run}", table.name);
        let connection = self.connection;
        each(connection, &sql, run.map(RunId::as_str), |row| {
            let key = text(row, 0);
            let object = row.get::<_, String>(1).ok();
            let problem = match newest_record(connection, table.name, &key)? {
                None | Some((_, None)) => Some(UNRECORDED),
                Some((_, Some(body))) => {
                    let recorded = object.and_then(|object| RecordedRow::parse(table, &object));
                    (!recorded.is_some_and(|row| row.is_in(&body))).then_some(EDITED)
                }
            };
            if let Some(problem) = problem {
                self.push(table, key, problem);
            }
            Ok(())
        })
    }

    /// Looks for events whose row is gone, or names an older event.
    fn events(&mut self, run: Option<&RunId>) -> Result<(), rusqlite::Error> {
        let book = run.map(|run| book_of_run(run).map_or_else(String::new, String::from));
        let of_run = if book.is_some() {
            "run_id = ?1 AND key IS NULL AND"
        } else {
            ""
        };
        let sql = format!(
            "SELECT seq, iif(octet_length(body) <= {MAX_BODY_BYTES}, body, NULL) FROM events
             WHERE {of_run} role = '{ROLE}' AND event = '{ROWS_RECORDED}' ORDER BY seq"
        );
        let connection = self.connection;
        each(connection, &sql, book.as_deref(), |row| {
            let seq: i64 = row.get(0)?;
            // A body that cannot be read is a finding about its event.
            let body: Option<Body> = serde_json::from_str(&text(row, 1)).ok();
            for recorded in body.into_iter().flat_map(|body| body.rows) {
                let Some(table) = GuardedTable::by_name(&recorded.table) else {
                    continue;
                };
                let key = recorded.key(&Columns::read(connection, table)?);
                let newest = newest_record(connection, table.name, &key)?.map(|(event, _)| event);
                let problem = match newest {
                    Some(newest) if newest > seq => None,
                    Some(newest) if newest < seq => Some(TURNED_BACK),
                    _ if read_row(connection, table, &key)?.is_none() => Some(GONE),
                    Some(_) => None,
                    None => Some(UNRECORDED),
                };
                if let Some(problem) = problem {
                    self.push(table, key, problem);
                }
            }
            Ok(())
        })
    }

    /// Looks for entries of `recorded_rows` that belong to no row.
    fn records(&mut self) -> Result<(), rusqlite::Error> {
        let connection = self.connection;
        for table in &GUARDED {
            let columns = Columns::read(connection, table)?;
            let (has_key, key) = (columns.has_key("x", "r.row_key"), columns.key_of("x"));
            let sql = format!(
                "SELECT r.row_key FROM recorded_rows r WHERE r.table_name = '{name}'
                 AND NOT EXISTS (SELECT 1 FROM {name} AS x WHERE {has_key} AND {key} = r.row_key)",
                name = table.name,
            );
            each(connection, &sql, None, |row| {
                self.push(table, text(row, 0), GONE);
                Ok(())
            })?;
        }
        let names: Vec<String> = GUARDED
            .iter()
            .map(|table| format!("'{}'", table.name))
            .collect();
        let sql = format!(
            "SELECT table_name, row_key FROM recorded_rows WHERE table_name NOT IN ({})",
            names.join(", ")
        );
        each(connection, &sql, None, |row| {
            let subject = subject_of(&text(row, 0), &text(row, 1));
            self.faults.push(RowFault {
                of: RowKind::Record,
                subject,
                problem: GONE,
            });
            Ok(())
        })
    }

    /// Adds a fault, unless the row has one.
    fn push(&mut self, table: &GuardedTable, key: String, problem: &'static str) {
        let fault = table.fault(&key, problem);
        if self.seen.insert((table.name.to_owned(), key)) {
            self.faults.push(fault);
        }
    }
}

/// The text in a column, also where it is not valid UTF-8; empty where the column holds none.
fn text(row: &Row<'_>, column: usize) -> String {
    match row.get_ref(column) {
        Ok(ValueRef::Text(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    }
}

fn each(
    connection: &Connection,
    sql: &str,
    value: Option<&str>,
    mut take: impl FnMut(&Row<'_>) -> Result<(), rusqlite::Error>,
) -> Result<(), rusqlite::Error> {
    fn walk(
        statement: &mut rusqlite::CachedStatement<'_>,
        values: impl Params,
        take: &mut dyn FnMut(&Row<'_>) -> Result<(), rusqlite::Error>,
    ) -> Result<(), rusqlite::Error> {
        let mut rows = statement.query(values)?;
        while let Some(row) = rows.next()? {
            take(row)?;
        }
        Ok(())
    }
    let mut statement = connection.prepare_cached(sql)?;
    match value {
        Some(value) => walk(&mut statement, [value], &mut take),
        None => walk(&mut statement, [], &mut take),
    }
}

/// Records the rows of a ledger of an older version.
pub(crate) fn adopt_rows(connection: &Connection) -> Result<(), rusqlite::Error> {
    let fail = &of_migration;
    adopt(connection, || {
        let newest = "SELECT coalesce((SELECT ts FROM events ORDER BY seq DESC LIMIT 1), (SELECT max(updated) FROM runs),
                                      (SELECT max(reserved_at) FROM model_calls))";
        let Some(at) = instant(connection, newest, fail)? else {
            return Ok(());
        };
        for table in &GUARDED {
            let columns = Columns::read(connection, table).map_err(fail)?;
            let sql = format!("SELECT {} FROM {} AS x", columns.key_of("x"), table.name);
            let changes: Vec<Change> = texts(connection, &sql, fail)?
                .into_iter()
                .map(|key| Change {
                    table,
                    key,
                    before: None,
                })
                .collect();
            for part in changes.chunks(MAX_ROWS_PER_EVENT) {
                record(connection, part, at, fail)?;
            }
        }
        Ok(())
    })
}

/// Records the artifacts of a ledger of an older version. Without an event there is nothing that an artifact could belong to.
pub(crate) fn adopt_artifacts(connection: &Connection) -> Result<(), rusqlite::Error> {
    let fail = &of_migration;
    adopt(connection, || {
        let newest = "SELECT (SELECT ts FROM events ORDER BY seq DESC LIMIT 1)";
        let Some(at) = instant(connection, newest, fail)? else {
            return Ok(());
        };
        let run: RunId = "adopted-artifacts".parse().map_err(|_| unreadable())?;
        let digests: Vec<Digest> =
            texts(connection, "SELECT digest FROM artifacts ORDER BY id", fail)?
                .iter()
                .filter_map(|digest| digest.parse().ok())
                .collect();
        for part in digests.chunks(MAX_ARTIFACTS_PER_EVENT) {
            let mut event = NewEvent::new(run.clone(), at, ROLE, ARTIFACTS_ADOPTED, json!({}));
            event.artifacts = part.to_vec();
            append_within(connection, event, fail)?;
        }
        Ok(())
    })
}

/// Does what a migration records, or nothing: a ledger whose chain takes no events is left as it is, for `verify` to report.
fn adopt(
    connection: &Connection,
    work: impl FnOnce() -> Result<(), LedgerError>,
) -> Result<(), rusqlite::Error> {
    connection.execute_batch("SAVEPOINT adopt")?;
    if work().is_err() {
        connection.execute_batch("ROLLBACK TO adopt")?;
    }
    connection.execute_batch("RELEASE adopt")
}

fn of_migration(error: rusqlite::Error) -> LedgerError {
    LedgerError::from_sqlite(std::path::Path::new(""), error)
}

/// The instant that a query of one row finds.
fn instant(
    connection: &Connection,
    sql: &str,
    fail: &impl Fn(rusqlite::Error) -> LedgerError,
) -> Result<Option<Timestamp>, LedgerError> {
    let found: Option<String> = connection
        .query_row(sql, [], |row| row.get(0))
        .map_err(fail)?;
    found
        .map(|text| text.parse().map_err(|_| unreadable()))
        .transpose()
}

fn texts(
    connection: &Connection,
    sql: &str,
    fail: &impl Fn(rusqlite::Error) -> LedgerError,
) -> Result<Vec<String>, LedgerError> {
    let mut select = connection.prepare(sql).map_err(fail)?;
    select
        .query_map([], |row| row.get(0))
        .and_then(Iterator::collect)
        .map_err(fail)
}

fn unreadable() -> LedgerError {
    LedgerError::Unreadable {
        what: "a ledger of an older version".to_owned(),
    }
}
