//! Receipts of specs: which ones were promoted on this machine, with which digests.
//!
//! A receipt lies in its project's directory, where anybody can edit it. When it is promoted, one transaction stores its bytes as
//! an artifact, appends an event to the run of its spec ([`spec_run_id`]) and writes a row, by which readers find it. A reader
//! compares what lies in the directory with the rows; [`Ledger::verify`] compares the rows with their events.
//!
//! One that was found in the directory, because another machine or a person by hand wrote it, is recorded as learned: the ledger then knows it from
//! there on, and never says that it was written here.
//!
//! A project is known by the digest of its path: the ledger of another machine, or of another place, knows nothing of it.

use std::collections::BTreeMap;

use crucible_model::{ClockSource, Digest, RunId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};

use crate::artifact::put_within;
use crate::chain::{append_within, project_run_id, unreadable};
use crate::error::LedgerError;
use crate::event::{MAX_BODY_BYTES, NewEvent};
use crate::store::Ledger;

/// The role under which a spec acts in the chain.
const ROLE: &str = "spec";
/// The name of the events.
const EVENT: &str = "spec-receipt";
/// What the bytes of a receipt are stored as.
const KIND: &str = "spec-receipt";

/// A receipt that is promoted. Everything in it is free of secrets already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSpecReceipt {
    /// The digest of the project's path.
    pub project: Digest,
    /// The id of the spec.
    pub spec: String,
    /// Its place among the receipts of the spec, from 1 on.
    pub sequence: u64,
    /// The id of the receipt.
    pub receipt_id: String,
    /// The phase that it is about.
    pub phase: String,
    /// How that ended: `success`, `failed` or `dry_run`.
    pub status: String,
    /// The digest that the receipt states of itself.
    pub digest: Digest,
    /// What the phase wrote: paths in the spec's directory, with the digests of their bytes.
    pub outputs: Vec<(String, Digest)>,
    /// When it was written.
    pub at: Timestamp,
    /// Where that instant comes from.
    pub clock: ClockSource,
    /// The receipt's file.
    pub content: Vec<u8>,
}

/// A receipt as the ledger knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecReceiptRow {
    /// The event that records it. A higher number is a later one.
    pub event: u64,
    /// Its place among the receipts of the spec.
    pub sequence: u64,
    /// The id of the receipt.
    pub receipt_id: String,
    /// The phase that it is about.
    pub phase: String,
    /// The digest that it stated of itself.
    pub digest: Digest,
    /// Who wrote it, as far as this machine knows.
    pub writer: ReceiptWriter,
}

/// Who wrote a receipt, as far as this machine knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiptWriter {
    /// This machine, which recorded it when it was promoted.
    ThisMachine,
    /// Nobody knows: it lay in the spec's directory when the ledger first met it.
    Unknown,
}

/// Whether the event of a row says that the receipt was learned, and so does one that is not there. Bodies are canonical JSON, in which no text can
/// hold these bytes: its quotes are escaped. Many rows are looked at, and looking is much cheaper than reading.
const LEARNED: &str = r#"coalesce((SELECT instr(body, '"learned":true') FROM events WHERE seq = spec_receipts.event_seq), 1) <> 0"#;

/// The body of an event.
#[derive(Serialize)]
struct Body<'a> {
    project: Digest,
    spec: &'a str,
    sequence: u64,
    receipt_id: &'a str,
    phase: &'a str,
    status: &'a str,
    digest: Digest,
    outputs: Vec<Output<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clock: Option<ClockSource>,
    #[serde(skip_serializing_if = "Option::is_none")]
    learned: Option<bool>,
}

#[derive(Serialize)]
struct Output<'a> {
    path: &'a str,
    sha256: Digest,
}

/// What of the body stands in the row as well. Later versions may say more.
#[derive(Deserialize, PartialEq, Eq)]
struct EventBody {
    project: String,
    spec: String,
    sequence: i64,
    receipt_id: String,
    phase: String,
    digest: String,
}

/// The run under which the receipts of a spec stand in the chain: `spec-<name>-<digest>`, where the digest tells specs of the same
/// name in other projects apart, and names that differ in what a run id cannot hold.
///
/// # Errors
///
/// Never in practice: what is put together is a run id.
pub fn spec_run_id(project: &Digest, spec: &str) -> Result<RunId, LedgerError> {
    project_run_id("spec", project, spec)
}

impl Ledger {
    /// Records a receipt: its bytes, its event and its row, or nothing. One that is known already, by its id and digest, stays as it is.
    ///
    /// # Errors
    ///
    /// Fails when the receipt is too large, and for all that can be wrong with the database.
    pub fn record_spec_receipt(
        &mut self,
        new: &NewSpecReceipt,
    ) -> Result<SpecReceiptRow, LedgerError> {
        self.add_spec_receipt(new, ReceiptWriter::ThisMachine)
    }

    /// The same for a receipt that this machine did not write and found in the spec's directory.
    ///
    /// # Errors
    ///
    /// As [`Ledger::record_spec_receipt`].
    pub fn learn_spec_receipt(
        &mut self,
        new: &NewSpecReceipt,
    ) -> Result<SpecReceiptRow, LedgerError> {
        self.add_spec_receipt(new, ReceiptWriter::Unknown)
    }

    fn add_spec_receipt(
        &mut self,
        new: &NewSpecReceipt,
        writer: ReceiptWriter,
    ) -> Result<SpecReceiptRow, LedgerError> {
        let fail = self.fail();
        let body = serde_json::to_value(Body {
            project: new.project,
            spec: &new.spec,
            sequence: new.sequence,
            receipt_id: &new.receipt_id,
            phase: &new.phase,
            status: &new.status,
            digest: new.digest,
            outputs: new
                .outputs
                .iter()
                .map(|(path, sha256)| Output {
                    path,
                    sha256: *sha256,
                })
                .collect(),
            clock: (new.clock == ClockSource::Pinned).then_some(ClockSource::Pinned),
            learned: (writer == ReceiptWriter::Unknown).then_some(true),
        })
        .map_err(|_| LedgerError::Unreadable {
            what: format!("the receipt {}", new.receipt_id),
        })?;
        let run = spec_run_id(&new.project, &new.spec)?;
        let row = |event, writer| SpecReceiptRow {
            event,
            sequence: new.sequence,
            receipt_id: new.receipt_id.clone(),
            phase: new.phase.clone(),
            digest: new.digest,
            writer,
        };
        let transaction = self.connection.transaction().map_err(&fail)?;
        let known: Option<(i64, bool)> = transaction
            .prepare_cached(&format!(
                "SELECT event_seq, {LEARNED} FROM spec_receipts
                 WHERE project = ?1 AND spec = ?2 AND receipt_id = ?3 AND digest = ?4",
            ))
            .and_then(|mut select| {
                let key = params![
                    new.project.to_string(),
                    new.spec,
                    new.receipt_id,
                    new.digest.to_string()
                ];
                select
                    .query_row(key, |row| Ok((row.get(0)?, row.get(1)?)))
                    .optional()
            })
            .map_err(&fail)?;
        if let Some((event, is_learned)) = known {
            return Ok(row(event.unsigned_abs(), written_by(is_learned)));
        }
        let content = put_within(&transaction, KIND, &new.content, &fail)?;
        let event = NewEvent::new(run, new.at, ROLE, EVENT, body)
            .about(format!("receipts/{}.json", new.receipt_id))
            .once(format!("{}/{}", new.receipt_id, new.digest))
            .with_artifact(content);
        let event = append_within(&transaction, event, &fail)?.seq;
        let sequence = i64::try_from(new.sequence).unwrap_or(i64::MAX);
        transaction
            .prepare_cached(
                "INSERT INTO spec_receipts (event_seq, project, spec, sequence, receipt_id, phase, digest)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )
            .and_then(|mut insert| {
                insert.execute(params![
                    i64::try_from(event).unwrap_or(i64::MAX),
                    new.project.to_string(),
                    new.spec,
                    sequence,
                    new.receipt_id,
                    new.phase,
                    new.digest.to_string()
                ])
            })
            .map_err(&fail)?;
        transaction.commit().map_err(&fail)?;
        Ok(row(event, writer))
    }

    /// Of each phase of a spec, the receipt that was recorded last.
    ///
    /// # Errors
    ///
    /// Fails when the database cannot be read or a row does not hold what Crucible writes.
    pub fn newest_spec_receipts(
        &self,
        project: &Digest,
        spec: &str,
    ) -> Result<Vec<SpecReceiptRow>, LedgerError> {
        // Phases are few and their index ends with the event: each is one step, however many receipts there are.
        let sql = format!(
            "WITH RECURSIVE phases (phase) AS (
                       SELECT min(phase) FROM spec_receipts WHERE project = ?1 AND spec = ?2
                       UNION ALL
                       SELECT (SELECT min(phase) FROM spec_receipts
                               WHERE project = ?1 AND spec = ?2 AND phase > phases.phase)
                       FROM phases WHERE phases.phase IS NOT NULL
                   )
                   SELECT event_seq, sequence, receipt_id, phase, digest, {LEARNED} FROM spec_receipts
                   WHERE event_seq IN (
                       SELECT (SELECT max(event_seq) FROM spec_receipts
                               WHERE project = ?1 AND spec = ?2 AND phase = phases.phase)
                       FROM phases WHERE phases.phase IS NOT NULL
                   ) ORDER BY event_seq"
        );
        self.connection
            .prepare_cached(&sql)
            .and_then(|mut select| {
                select
                    .query_map(params![project.to_string(), spec], read)?
                    .collect()
            })
            .map_err(self.fail())
    }

    /// Of each phase of every spec of a project, the receipt that was recorded last, by the spec's name.
    ///
    /// # Errors
    ///
    /// As [`Ledger::newest_spec_receipts`].
    pub fn newest_spec_receipts_of_project(
        &self,
        project: &Digest,
    ) -> Result<BTreeMap<String, Vec<SpecReceiptRow>>, LedgerError> {
        // From one phase to the next and, behind a spec's last one, to the next spec: one step each, however many receipts there are.
        let sql = format!(
            "WITH RECURSIVE heads (spec, phase) AS (
                       SELECT min(spec), '' FROM spec_receipts WHERE project = ?1
                       UNION ALL
                       SELECT iif((SELECT min(phase) FROM spec_receipts
                                   WHERE project = ?1 AND spec = heads.spec AND phase > heads.phase) IS NULL,
                                  (SELECT min(spec) FROM spec_receipts WHERE project = ?1 AND spec > heads.spec),
                                  heads.spec),
                              coalesce((SELECT min(phase) FROM spec_receipts
                                        WHERE project = ?1 AND spec = heads.spec AND phase > heads.phase), '')
                       FROM heads WHERE heads.spec IS NOT NULL
                   )
                   SELECT event_seq, sequence, receipt_id, phase, digest, {LEARNED}, spec FROM spec_receipts
                   WHERE event_seq IN (
                       SELECT (SELECT max(event_seq) FROM spec_receipts
                               WHERE project = ?1 AND spec = heads.spec AND phase = heads.phase)
                       FROM heads WHERE heads.phase > ''
                   ) ORDER BY event_seq"
        );
        let of_spec = |row: &Row<'_>| Ok((row.get::<_, String>(6)?, read(row)?));
        let rows: Result<Vec<_>, _> =
            self.connection.prepare_cached(&sql).and_then(|mut select| {
                select
                    .query_map(params![project.to_string()], of_spec)?
                    .collect()
            });
        let mut specs: BTreeMap<String, Vec<SpecReceiptRow>> = BTreeMap::new();
        for (spec, row) in rows.map_err(self.fail())? {
            specs.entry(spec).or_default().push(row);
        }
        Ok(specs)
    }

    /// What is known of the receipt with this id: nothing, one row, or several where a project went back to an older state.
    ///
    /// # Errors
    ///
    /// As [`Ledger::newest_spec_receipts`].
    pub fn spec_receipts_of_id(
        &self,
        project: &Digest,
        spec: &str,
        receipt_id: &str,
    ) -> Result<Vec<SpecReceiptRow>, LedgerError> {
        let sql = format!(
            "SELECT event_seq, sequence, receipt_id, phase, digest, {LEARNED} FROM spec_receipts
             WHERE project = ?1 AND spec = ?2 AND receipt_id = ?3 ORDER BY event_seq"
        );
        self.connection
            .prepare_cached(&sql)
            .and_then(|mut select| {
                select
                    .query_map(params![project.to_string(), spec, receipt_id], read)?
                    .collect()
            })
            .map_err(self.fail())
    }
}

/// The events whose row says something else than they do, or is not there, and the rows that speak of no such event; by number.
pub(crate) fn disagreements(connection: &Connection) -> Result<Vec<i64>, rusqlite::Error> {
    let sql = format!(
        "SELECT e.seq, iif(octet_length(e.body) <= {MAX_BODY_BYTES}, e.body, NULL), r.event_seq, r.project, r.spec, r.sequence,
                r.receipt_id, r.phase, r.digest
         FROM events e LEFT JOIN spec_receipts r ON r.event_seq = e.seq
         WHERE (e.role = '{ROLE}' AND e.event = '{EVENT}') OR r.event_seq IS NOT NULL
         UNION ALL
         SELECT event_seq, NULL, event_seq, NULL, NULL, NULL, NULL, NULL, NULL FROM spec_receipts
         WHERE event_seq NOT IN (SELECT seq FROM events)"
    );
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let event: i64 = row.get(0)?;
        match agrees(row) {
            Ok(true) => {}
            Err(error @ rusqlite::Error::SqliteFailure(..)) => return Err(error),
            Ok(false) | Err(_) => found.push(event),
        }
    }
    Ok(found)
}

fn agrees(row: &Row<'_>) -> Result<bool, rusqlite::Error> {
    let body: Option<String> = row.get(1)?;
    let expected = EventBody {
        project: row.get(3)?,
        spec: row.get(4)?,
        sequence: row.get(5)?,
        receipt_id: row.get(6)?,
        phase: row.get(7)?,
        digest: row.get(8)?,
    };
    let recorded = body.and_then(|body| serde_json::from_str::<EventBody>(&body).ok());
    Ok(recorded.is_some_and(|recorded| recorded == expected))
}

fn read(row: &Row<'_>) -> Result<SpecReceiptRow, rusqlite::Error> {
    let number = |column: usize| {
        let value: i64 = row.get(column)?;
        u64::try_from(value).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, value))
    };
    let digest: String = row.get(4)?;
    Ok(SpecReceiptRow {
        event: number(0)?,
        sequence: number(1)?,
        receipt_id: row.get(2)?,
        phase: row.get(3)?,
        digest: digest.parse().map_err(|error| unreadable(4, error))?,
        writer: written_by(row.get(5)?),
    })
}

fn written_by(is_learned: bool) -> ReceiptWriter {
    if is_learned {
        ReceiptWriter::Unknown
    } else {
        ReceiptWriter::ThisMachine
    }
}
