//! Rows that change, told in the chain: the list of runs, and the reservations and settlements of model calls.
//!
//! A row and the event that tells of it are written in one transaction, and the row names its event. The events of a run's rows
//! stand under a run of their own, `book-<run>`, so that the story of the run itself stays what its journal recorded.
//! [`disagreements`] compares both sides: a row that says something else than its event, one that names no event or an older
//! one, and an event without its row.
//!
//! [`adopt`] tells what a ledger of an older version holds, once, when it is brought up to date.

use crucible_model::{Digest, RunId, Timestamp, to_canonical_json};
use rusqlite::{Connection, Params, Row, params};
use serde::Serialize;
use serde_json::Value;

use crate::calls::{MicroDollars, NewCall, Settlement, to_sql};
use crate::chain::append_within;
use crate::error::LedgerError;
use crate::event::{EventRecord, MAX_BODY_BYTES, NewEvent};
use crate::runs::RunRow;

/// The role under which the ledger tells of its own rows.
const ROLE: &str = "ledger";
const RUN_LISTED: &str = "RUN_LISTED";
const CALL_RESERVED: &str = "CALL_RESERVED";
const CALL_SETTLED: &str = "CALL_SETTLED";
const ARTIFACTS_ADOPTED: &str = "ARTIFACTS_ADOPTED";

/// How many artifacts one event adopts.
const ADOPTED_AT_ONCE: usize = 1000;

/// A row of the list of runs or of the model calls that the chain does not confirm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowFault {
    /// What the row is about.
    pub of: RowKind,
    /// The run, and the number of the call: `run r`, `call 3 of run r`.
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
}

const EDITED: &str = "the row does not say what its event says";
const UNTOLD: &str = "no event tells of the row";
const TURNED_BACK: &str = "the row is older than the newest event about it";
const GONE: &str = "its row is gone";

/// The body of the event that tells of a run in the list.
#[derive(Serialize)]
struct Listed<'a> {
    run: &'a str,
    /// The goal can be long, and the run's own events hold it.
    goal: Digest,
    repo: &'a str,
    state: &'a str,
    created: &'a str,
}

/// The body of the event that tells of a reservation.
#[derive(Serialize)]
struct Reserved<'a> {
    run: &'a str,
    seq: i64,
    provider: &'a str,
    model: &'a str,
    request: &'a str,
    attempt: i64,
    tokens: i64,
    cost: i64,
}

/// The body of the event that tells of a settlement.
#[derive(Serialize)]
struct Settled<'a> {
    run: &'a str,
    seq: i64,
    outcome: &'a str,
    tokens_in: Option<i64>,
    tokens_out: Option<i64>,
    cost: Option<i64>,
}

/// Tells of a row of the list of runs, and gives the number of the event.
pub(crate) fn tell_run(
    transaction: &Connection,
    row: &RunRow,
    created: &str,
    fail: &impl Fn(rusqlite::Error) -> LedgerError,
) -> Result<i64, LedgerError> {
    let body = Listed {
        run: row.id.as_str(),
        goal: Digest::of(row.goal.as_bytes()),
        repo: &row.repo,
        state: &row.state,
        created,
    };
    tell(transaction, &row.id, row.updated, RUN_LISTED, &body, fail)
}

/// Tells of a reservation, and gives the number of the event.
pub(crate) fn tell_reserved(
    transaction: &Connection,
    call: &NewCall,
    seq: i64,
    attempt: i64,
    fail: &impl Fn(rusqlite::Error) -> LedgerError,
) -> Result<i64, LedgerError> {
    let body = Reserved {
        run: call.run.as_str(),
        seq,
        provider: &call.provider,
        model: &call.model,
        request: &call.request.to_string(),
        attempt,
        tokens: to_sql(call.tokens),
        cost: to_sql(call.cost.0),
    };
    tell(transaction, &call.run, call.ts, CALL_RESERVED, &body, fail)
}

/// Tells of a settlement, and gives the number of the event.
pub(crate) fn tell_settled(
    transaction: &Connection,
    run: &RunId,
    seq: i64,
    end: &Settlement,
    fail: &impl Fn(rusqlite::Error) -> LedgerError,
) -> Result<i64, LedgerError> {
    let body = Settled {
        run: run.as_str(),
        seq,
        outcome: &end.outcome,
        tokens_in: end.tokens_in.map(to_sql),
        tokens_out: end.tokens_out.map(to_sql),
        cost: end.cost.map(|MicroDollars(cost)| to_sql(cost)),
    };
    tell(transaction, run, end.ts, CALL_SETTLED, &body, fail)
}

fn tell(
    transaction: &Connection,
    run: &RunId,
    ts: Timestamp,
    event: &str,
    body: &impl Serialize,
    fail: &impl Fn(rusqlite::Error) -> LedgerError,
) -> Result<i64, LedgerError> {
    let body = serde_json::to_value(body)
        .map_err(|_| LedgerError::Unreadable { what: format!("a row of the run {run}") })?;
    let told = append_within(transaction, NewEvent::new(book_of(run)?, ts, ROLE, event, body), fail)?;
    Ok(number_of(&told))
}

fn number_of(event: &EventRecord) -> i64 {
    i64::try_from(event.seq).unwrap_or(i64::MAX)
}

/// The run under which the rows of a run are told.
fn book_of(run: &RunId) -> Result<RunId, LedgerError> {
    let short = || format!("book-{}", Digest::of(run.as_str().as_bytes()).short());
    let id = format!("book-{run}").parse().or_else(|_| short().parse());
    id.map_err(|_| LedgerError::Unreadable { what: format!("the run {run}") })
}

/// The rows that the chain does not confirm, of one run or of all.
pub(crate) fn disagreements(
    connection: &Connection,
    run: Option<&RunId>,
) -> Result<Vec<RowFault>, rusqlite::Error> {
    let mut found = Vec::new();
    let book = run.map(|run| book_of(run).map_or_else(|_| run.to_string(), String::from));
    let (rows, events) = match run {
        Some(_) => ("WHERE x.{run} = ?1", "e.run_id = ?1 AND e.key IS NULL AND"),
        None => ("", ""),
    };
    let body = |of: &str| format!("iif(octet_length({of}.body) <= {MAX_BODY_BYTES}, {of}.body, NULL)");
    let json = |field: &str| format!("iif(json_valid(e.body), json_extract(e.body, '$.{field}'), NULL)");

    let calls = format!(
        "SELECT x.run_id, x.seq, x.provider, x.model, x.request, x.attempt, x.reserved_at, x.reserved_tokens, x.reserved_cost,
                x.state, x.settled_at, x.outcome, x.tokens_in, x.tokens_out, x.cost,
                r.ts, {}, s.ts, {}, x.reserved_event IS NULL, x.settled_event IS NULL
         FROM model_calls x
         LEFT JOIN events r ON r.seq = x.reserved_event AND r.role = '{ROLE}' AND r.event = '{CALL_RESERVED}'
         LEFT JOIN events s ON s.seq = x.settled_event AND s.role = '{ROLE}' AND s.event = '{CALL_SETTLED}' {}",
        body("r"),
        body("s"),
        rows.replace("{run}", "run_id"),
    );
    each(connection, &calls, run.map(RunId::as_str), |row| {
        let (run, seq): (String, i64) = (row.get(0)?, row.get(1)?);
        let fault = checked(call_fault(row, &run, seq))?;
        found.extend(fault.map(|problem| fault_of_call(&run, seq, problem)));
        Ok(())
    })?;
    let events_of_calls = format!(
        "SELECT {run}, {seq} FROM events e WHERE {events} e.role = '{ROLE}'
           AND e.event IN ('{CALL_RESERVED}', '{CALL_SETTLED}')
           AND NOT EXISTS (SELECT 1 FROM model_calls c WHERE c.run_id = {run} AND c.seq = {seq}
                           AND iif(e.event = '{CALL_RESERVED}', c.reserved_event, c.settled_event) = e.seq)",
        run = json("run"),
        seq = json("seq"),
    );
    each(connection, &events_of_calls, book.as_deref(), |row| {
        let (run, seq): (Option<String>, Option<i64>) = (row.get(0)?, row.get(1)?);
        let fault = fault_of_call(&run.unwrap_or_default(), seq.unwrap_or_default(), GONE);
        if !found.iter().any(|known| known.subject == fault.subject) {
            found.push(fault);
        }
        Ok(())
    })?;

    let runs = format!(
        "SELECT x.id, x.goal, x.repo, x.state, x.created, x.updated, e.ts, {}, x.event IS NULL
         FROM runs x LEFT JOIN events e ON e.seq = x.event AND e.role = '{ROLE}' AND e.event = '{RUN_LISTED}' {}",
        body("e"),
        rows.replace("{run}", "id"),
    );
    each(connection, &runs, run.map(RunId::as_str), |row| {
        let id: String = row.get(0)?;
        let fault = checked(run_fault(row, &id))?;
        found.extend(fault.map(|problem| fault_of_run(&id, problem)));
        Ok(())
    })?;
    // The newest event of each run is the one that its row names.
    let events_of_runs = format!(
        "SELECT {run}, max(e.seq), (SELECT r.event FROM runs r WHERE r.id = {run}),
                EXISTS (SELECT 1 FROM runs r WHERE r.id = {run})
         FROM events e WHERE {events} e.role = '{ROLE}' AND e.event = '{RUN_LISTED}' GROUP BY e.run_id",
        run = json("run"),
    );
    each(connection, &events_of_runs, book.as_deref(), |row| {
        let (run, newest): (Option<String>, i64) = (row.get(0)?, row.get(1)?);
        let (named, is_there): (Option<i64>, bool) = (row.get(2)?, row.get(3)?);
        let fault = match (is_there, named) {
            (false, _) => Some(GONE),
            (true, Some(named)) if named != newest => Some(TURNED_BACK),
            (true, _) => None,
        };
        found.extend(fault.map(|problem| fault_of_run(&run.unwrap_or_default(), problem)));
        Ok(())
    })?;
    Ok(found)
}

fn each(
    connection: &Connection,
    sql: &str,
    of: Option<&str>,
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
    match of {
        Some(of) => walk(&mut statement, [of], &mut take),
        None => walk(&mut statement, [], &mut take),
    }
}

/// What a row says that cannot be read is not what was written.
fn checked(
    fault: Result<Option<&'static str>, rusqlite::Error>,
) -> Result<Option<&'static str>, rusqlite::Error> {
    match fault {
        Err(error @ rusqlite::Error::SqliteFailure(..)) => Err(error),
        Err(_) => Ok(Some(EDITED)),
        found => found,
    }
}

fn call_fault(row: &Row<'_>, run: &str, seq: i64) -> Result<Option<&'static str>, rusqlite::Error> {
    let text = |column: usize| row.get::<_, String>(column);
    let reserved = Reserved {
        run,
        seq,
        provider: &text(2)?,
        model: &text(3)?,
        request: &text(4)?,
        attempt: row.get(5)?,
        tokens: row.get(7)?,
        cost: row.get(8)?,
    };
    let (is_unreserved, is_unsettled): (bool, bool) = (row.get(19)?, row.get(20)?);
    if is_unreserved {
        return Ok(Some(UNTOLD));
    }
    if !tells(row, 15, &text(6)?, &reserved)? {
        return Ok(Some(EDITED));
    }
    if text(9)? == "reserved" {
        let is_bare =
            (10..=14).all(|column| matches!(row.get_ref(column), Ok(rusqlite::types::ValueRef::Null)));
        return Ok((!is_unsettled || !is_bare).then_some(EDITED));
    }
    if is_unsettled {
        return Ok(Some(UNTOLD));
    }
    let settled = Settled {
        run,
        seq,
        outcome: &text(11)?,
        tokens_in: row.get(12)?,
        tokens_out: row.get(13)?,
        cost: row.get(14)?,
    };
    Ok((!tells(row, 17, &text(10)?, &settled)?).then_some(EDITED))
}

fn run_fault(row: &Row<'_>, id: &str) -> Result<Option<&'static str>, rusqlite::Error> {
    let text = |column: usize| row.get::<_, String>(column);
    if row.get(8)? {
        return Ok(Some(UNTOLD));
    }
    let listed = Listed {
        run: id,
        goal: Digest::of(text(1)?.as_bytes()),
        repo: &text(2)?,
        state: &text(3)?,
        created: &text(4).map(as_written)?,
    };
    Ok((!tells(row, 6, &text(5)?, &listed)?).then_some(EDITED))
}

/// Whether the event whose instant and body stand in the columns from `column` on says exactly this.
fn tells(row: &Row<'_>, column: usize, at: &str, body: &impl Serialize) -> Result<bool, rusqlite::Error> {
    let (ts, told): (Option<String>, Option<String>) = (row.get(column)?, row.get(column + 1)?);
    let expected = to_canonical_json(body).unwrap_or_default();
    Ok(ts == Some(as_written(at.to_owned())) && told.is_some_and(|told| told.as_bytes() == expected))
}

/// An instant in the form in which the ledger writes it.
fn as_written(instant: String) -> String {
    instant.parse::<Timestamp>().map_or(instant, |parsed| parsed.to_string())
}

fn fault_of_call(run: &str, seq: i64, problem: &'static str) -> RowFault {
    RowFault { of: RowKind::Call, subject: format!("call {seq} of run {run}"), problem }
}

fn fault_of_run(run: &str, problem: &'static str) -> RowFault {
    RowFault { of: RowKind::Run, subject: format!("run {run}"), problem }
}

/// Tells in the chain what a ledger of an older version holds: its artifacts, its runs and its calls. A ledger whose chain does not
/// take events any more is left as it is, for `verify` to say so.
pub(crate) fn adopt(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.execute_batch("SAVEPOINT adopt")?;
    let fail = |error| LedgerError::from_sqlite(std::path::Path::new(""), error);
    if adopt_all(connection, &fail).is_err() {
        connection.execute_batch("ROLLBACK TO adopt")?;
    }
    connection.execute_batch("RELEASE adopt")
}

fn adopt_all(
    connection: &Connection,
    fail: &impl Fn(rusqlite::Error) -> LedgerError,
) -> Result<(), LedgerError> {
    adopt_artifacts(connection, fail)?;
    for run in crate::runs::read_all(connection).map_err(fail)? {
        let event = tell_run(connection, &run, &run.created.to_string(), fail)?;
        connection
            .execute("UPDATE runs SET event = ?2 WHERE id = ?1", params![run.id.as_str(), event])
            .map_err(fail)?;
    }
    let mut select = connection.prepare("SELECT DISTINCT run_id FROM model_calls").map_err(fail)?;
    let runs: Vec<String> =
        select.query_map([], |row| row.get(0)).and_then(Iterator::collect).map_err(fail)?;
    for run in runs {
        let Ok(run) = run.parse::<RunId>() else { continue };
        for row in crate::calls::read_calls(connection, &run).map_err(fail)? {
            let seq = to_sql(row.seq);
            let reserved = tell_reserved(connection, &row.call, seq, row.attempt.into(), fail)?;
            let settled = match &row.state {
                crate::calls::CallState::Reserved => None,
                crate::calls::CallState::Settled(end) => {
                    Some(tell_settled(connection, &run, seq, end, fail)?)
                }
            };
            let sql = "UPDATE model_calls SET reserved_event = ?3, settled_event = ?4 WHERE run_id = ?1 AND seq = ?2";
            connection.execute(sql, params![run.as_str(), seq, reserved, settled]).map_err(fail)?;
        }
    }
    Ok(())
}

/// Without an event there is nothing that an artifact could belong to.
fn adopt_artifacts(
    connection: &Connection,
    fail: &impl Fn(rusqlite::Error) -> LedgerError,
) -> Result<(), LedgerError> {
    let texts = |sql: &str| -> Result<Vec<String>, LedgerError> {
        let mut select = connection.prepare(sql).map_err(fail)?;
        select.query_map([], |row| row.get(0)).and_then(Iterator::collect).map_err(fail)
    };
    let Some(last) = texts("SELECT ts FROM events ORDER BY seq DESC LIMIT 1")?.pop() else { return Ok(()) };
    let unreadable = || LedgerError::Unreadable { what: "an artifact's row".to_owned() };
    let ts: Timestamp = last.parse().map_err(|_| unreadable())?;
    let run: RunId = "book-artifacts".parse().map_err(|_| unreadable())?;
    let digests: Vec<Digest> = texts("SELECT digest FROM artifacts ORDER BY id")?
        .iter()
        .filter_map(|digest| digest.parse().ok())
        .collect();
    for part in digests.chunks(ADOPTED_AT_ONCE) {
        let mut event =
            NewEvent::new(run.clone(), ts, ROLE, ARTIFACTS_ADOPTED, Value::Object(serde_json::Map::new()));
        event.artifacts = part.to_vec();
        append_within(connection, event, fail)?;
    }
    Ok(())
}
