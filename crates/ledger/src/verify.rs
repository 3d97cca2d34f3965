//! Reading everything again: does the ledger still hold what was written?
//!
//! Events are read in their order and hashed from the bytes in their columns; artifacts are hashed in pieces.
//! At most one row is in memory. Every finding names an event or an artifact; the first finding about an event
//! is the first bad event. After a bad event the reading goes on behind it, so one edit makes one finding.
//!
//! What no reading of the database alone can find is a history that was rewritten from some event to the
//! end, with every hash, the head and the counter. That is what anchors are for.

use std::io::Read;

use crucible_model::{Code, Digest, DigestWriter, Finding, Verdict};
use rusqlite::{Connection, OptionalExtension};

use crate::artifact;
use crate::chain::read_head;
use crate::error::LedgerError;
use crate::event::{MAX_BODY_BYTES, RawEvent};
use crate::forge;
use crate::recorded_rows::{self, RowKind};
use crate::spec_receipts;
use crate::store::{Ledger, expected_schema, read_schema};

/// A head of the chain that is known from outside of the database, such as the trailer of a landed commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Anchor {
    /// The number of the event.
    pub seq: u64,
    /// The hash it had.
    pub hash: Digest,
}

/// More findings than this are not listed one by one.
const MAX_FINDINGS: usize = 100;

impl Ledger {
    /// Reads the whole ledger again and tells what is not as it was written.
    ///
    /// # Errors
    ///
    /// Fails only when the database cannot be read for a reason that is not its content: it is locked, or the
    /// disk fails. Damage and edits are findings.
    pub fn verify(&self, anchors: &[Anchor]) -> Result<Verdict, LedgerError> {
        let passes: [Pass; 7] = [
            check_events,
            check_artifacts,
            check_spec_receipts,
            check_promotions,
            check_rows,
            check_schema,
            check_integrity,
        ];
        self.check(Check::new(anchors), &passes)
    }

    /// Reads the chain again from the event `first` to its end, and nothing else: what a record that begins there rests on.
    /// Anchors before `first` say nothing here.
    ///
    /// # Errors
    ///
    /// As [`Ledger::verify`].
    pub fn verify_from(&self, first: u64, anchors: &[Anchor]) -> Result<Verdict, LedgerError> {
        self.check(Check::from(first, anchors), &[check_events])
    }

    fn check(&self, mut check: Check, passes: &[Pass]) -> Result<Verdict, LedgerError> {
        let fail = self.fail();
        // One read transaction is one snapshot, whoever appends meanwhile.
        let snapshot = self.connection.unchecked_transaction().map_err(&fail)?;
        for pass in passes {
            match pass(&snapshot, &mut check) {
                Ok(()) => {}
                Err(PassError::Database(error)) => match fail(error) {
                    LedgerError::Damaged { detail, .. } => check.damaged(&detail),
                    LedgerError::NotADatabase { .. } => {
                        check.damaged("a page is not part of a database")
                    }
                    LedgerError::Sqlite { source, .. }
                        if source.sqlite_error_code() == Some(rusqlite::ErrorCode::Unknown) =>
                    {
                        // A statement that fits our schema does not fit this one: something was dropped.
                        check.damaged(&source.to_string());
                    }
                    other => return Err(other),
                },
                Err(PassError::Ledger(error)) => return Err(error),
            }
        }
        Ok(check.finish())
    }
}

type Pass = fn(&Connection, &mut Check) -> Result<(), PassError>;

enum PassError {
    Database(rusqlite::Error),
    Ledger(LedgerError),
}

impl From<rusqlite::Error> for PassError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl From<LedgerError> for PassError {
    fn from(error: LedgerError) -> Self {
        Self::Ledger(error)
    }
}

fn check_events(connection: &Connection, check: &mut Check) -> Result<(), PassError> {
    // A column that is longer than anything Crucible writes is read as NULL, not into memory.
    let names = [
        "run_id",
        "ts",
        "role",
        "event",
        "path",
        "key",
        "artifacts",
        "body",
        "prev",
        "hash",
    ];
    let columns: Vec<String> = names
        .iter()
        .map(|name| match *name {
            // An oversized optional column must not look absent: a blob is not text, so it is unreadable.
            "path" | "key" => {
                format!("iif(octet_length({name}) > {MAX_BODY_BYTES}, x'00', {name})")
            }
            _ => format!("iif(octet_length({name}) <= {MAX_BODY_BYTES}, {name}, NULL)"),
        })
        .collect();
    let sql = format!(
        "SELECT seq, {} FROM events NOT INDEXED WHERE seq >= ?1 ORDER BY seq",
        columns.join(", ")
    );
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([check.first])?;
    while let Some(row) = rows.next()? {
        let seq: i64 = row.get(0)?;
        match RawEvent::read(row) {
            Ok(raw) => check.event(connection, &raw)?,
            Err(error @ rusqlite::Error::SqliteFailure(..)) => return Err(error.into()),
            Err(_) => check.unreadable_event(seq),
        }
    }
    check.end_of_events(connection)
}

fn check_artifacts(connection: &Connection, check: &mut Check) -> Result<(), PassError> {
    let mut statement =
        connection.prepare("SELECT id, digest, size FROM artifacts NOT INDEXED ORDER BY id")?;
    let mut rows = statement.query([])?;
    let mut buffer = vec![0; 64 << 10];
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        let (Ok(digest), Ok(size)) = (row.get::<_, String>(1), row.get::<_, i64>(2)) else {
            check.artifact_edited(&format!("row {id}"));
            continue;
        };
        let mut blob = match connection.blob_open("main", "artifacts", "bytes", id, true) {
            Ok(blob) => blob,
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::Unknown) => {
                // What stands there has no bytes at all.
                check.artifact_edited(&digest);
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let mut writer = DigestWriter::default();
        let mut length = 0i64;
        loop {
            // A piece that cannot be read leaves a digest that does not fit.
            let read = blob.read(&mut buffer).unwrap_or(0);
            if read == 0 {
                break;
            }
            writer.update(&buffer[..read]);
            length += read as i64;
        }
        if length != size || writer.finish().to_string() != digest {
            check.artifact_edited(&digest);
        }
    }
    Ok(())
}

/// The rows by which receipts are found, against the events that tell of them.
fn check_spec_receipts(connection: &Connection, check: &mut Check) -> Result<(), PassError> {
    for event in spec_receipts::disagreements(connection)? {
        check.push(
            Code::new("ledger-spec-receipt-edited"),
            format!("event {event}"),
            "the row of this receipt does not say what the event says; restore the ledger from a copy"
                .to_owned(),
        );
    }
    Ok(())
}

/// The rows by which trust in skills is found, against the events that tell of them.
fn check_promotions(connection: &Connection, check: &mut Check) -> Result<(), PassError> {
    for (subject, what) in forge::disagreements(connection)? {
        check.push(
            Code::new("ledger-promotion-edited"),
            subject,
            format!("{what}; restore the ledger from a copy"),
        );
    }
    Ok(())
}

/// The rows that change, against the events that record them.
fn check_rows(connection: &Connection, check: &mut Check) -> Result<(), PassError> {
    for fault in recorded_rows::disagreements(connection, None)? {
        let code = match fault.of {
            RowKind::Run => Code::new("ledger-run-edited"),
            RowKind::Call => Code::new("ledger-call-edited"),
            RowKind::Crawl => Code::new("ledger-crawl-edited"),
            RowKind::Skill => Code::new("ledger-skill-edited"),
            RowKind::Record => Code::new("ledger-row-edited"),
        };
        check.push(
            code,
            fault.subject,
            format!("{}; restore the ledger from a copy", fault.problem),
        );
    }
    Ok(())
}

fn check_schema(connection: &Connection, check: &mut Check) -> Result<(), PassError> {
    let expected = expected_schema()?;
    let found = read_schema(connection)?;
    let differs = |one: &[[String; 4]], other: &[[String; 4]]| {
        one.iter()
            .find(|object| !other.contains(object))
            .map(|[kind, name, ..]| format!("{kind} {name}"))
    };
    if let Some(object) = differs(&expected, &found).or_else(|| differs(&found, &expected)) {
        check.push(
            Code::new("ledger-schema-edited"),
            object,
            "the tables or their guards were altered by hand; restore the ledger from a copy"
                .to_owned(),
        );
    }
    Ok(())
}

fn check_integrity(connection: &Connection, check: &mut Check) -> Result<(), PassError> {
    let mut statement = connection.prepare("PRAGMA integrity_check(5)")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let line: String = row.get(0)?;
        if line != "ok" {
            check.damaged(&line);
        }
    }
    Ok(())
}

/// What is known of the event before the one that is read.
#[derive(Clone, Copy)]
enum Before {
    /// Its stored hash, which matches its content.
    Hash(Digest),
    /// Nothing that can be trusted: it is bad or missing, and that is reported already.
    Unknown,
}

/// The state of a reading.
struct Check {
    /// Events with lower numbers are not read.
    first: i64,
    /// Sorted; those before `next_anchor` are behind the event that is read.
    anchors: Vec<(i64, Digest)>,
    next_anchor: usize,
    findings: Vec<Finding>,
    unlisted: u64,
    last: i64,
    before: Before,
    /// The link to this event is broken, and the event after it decides which side was replaced.
    broken_link: Option<i64>,
    /// By how many places the last moved event was moved.
    shift: i64,
    /// The last event that has a finding.
    last_bad: i64,
}

impl Check {
    fn new(anchors: &[Anchor]) -> Self {
        let place = |anchor: &Anchor| (i64::try_from(anchor.seq).unwrap_or(i64::MAX), anchor.hash);
        let mut anchors: Vec<_> = anchors.iter().map(place).collect();
        anchors.sort_unstable();
        Self {
            first: i64::MIN,
            anchors,
            next_anchor: 0,
            findings: Vec::new(),
            unlisted: 0,
            last: 0,
            before: Before::Hash(Digest::ZERO),
            broken_link: None,
            shift: 0,
            last_bad: 0,
        }
    }

    /// A reading that begins with the event `first`.
    fn from(first: u64, anchors: &[Anchor]) -> Self {
        let first = i64::try_from(first).unwrap_or(i64::MAX);
        let full_check = Self::new(anchors);
        if first <= 1 {
            full_check
        } else {
            Self {
                first,
                last: first - 1,
                before: Before::Unknown,
                ..full_check
            }
        }
    }

    fn event(&mut self, connection: &Connection, raw: &RawEvent) -> Result<(), PassError> {
        let seq = raw.seq;
        let Ok(stored) = raw.hash.parse::<Digest>() else {
            self.unreadable_event(seq);
            return Ok(());
        };
        if !self.step_to(seq, raw.prev.parse().ok()) {
            return Ok(());
        }
        if raw.hash_at(seq).map_err(LedgerError::from)? == stored {
            self.link(seq, raw);
            self.before = Before::Hash(stored);
            self.artifacts_of(connection, raw)?;
        } else if let Some(origin) = self.origin_of(connection, raw, stored)? {
            self.moved(seq, origin);
        } else {
            self.edited(seq);
        }
        self.check_anchors(seq, stored);
        Ok(())
    }

    fn unreadable_event(&mut self, seq: i64) {
        if self.step_to(seq, None) {
            self.edited(seq);
        }
    }

    /// Goes on to the event at `seq`, whose stored `prev` tells which side of a broken link is right. False for a
    /// place where no event can stand.
    fn step_to(&mut self, seq: i64, prev: Option<Digest>) -> bool {
        if seq < 1 {
            self.event_finding(
                Code::new("ledger-event-forged"),
                seq,
                "no event has this number; it was inserted by hand",
            );
            return false;
        }
        self.settle_broken_link(prev);
        let next = self.last + 1;
        if seq > next {
            let hint = match seq - next {
                1 => "it was deleted; restore the ledger from a copy".to_owned(),
                many => {
                    format!(
                        "it and {} more behind it were deleted; restore the ledger from a copy",
                        many - 1
                    )
                }
            };
            self.event_finding(Code::new("ledger-event-missing"), next, &hint);
            self.before = Before::Unknown;
        }
        self.last = seq;
        true
    }

    /// Compares what the event says about the one before it with that one.
    fn link(&mut self, seq: i64, raw: &RawEvent) {
        if let Before::Hash(before) = self.before
            && raw.prev != before.to_string()
        {
            self.broken_link = Some(seq);
        }
    }

    /// A link between two events, each of which matches its own hash, is broken: one of them was replaced as a
    /// whole. The one that the next event (or the head) still follows is right.
    fn settle_broken_link(&mut self, follows: Option<Digest>) {
        let Some(seq) = self.broken_link.take() else {
            return;
        };
        let confirmed =
            matches!((follows, self.before), (Some(prev), Before::Hash(hash)) if prev == hash);
        let bad = if confirmed && seq > 1 { seq - 1 } else { seq };
        self.event_finding(
            Code::new("ledger-event-replaced"),
            bad,
            "it was replaced by another event with a valid hash; restore the ledger from a backup",
        );
        if bad == seq {
            self.before = Before::Unknown;
        }
    }

    fn edited(&mut self, seq: i64) {
        self.event_finding(
            Code::new("ledger-event-edited"),
            seq,
            "its content does not match its hash; restore the ledger from a copy",
        );
        self.before = Before::Unknown;
    }

    fn moved(&mut self, seq: i64, origin: i64) {
        if origin < seq && self.last_bad < origin {
            self.event_finding(
                Code::new("ledger-event-forged"),
                origin,
                "it was inserted by hand; the event that was here stands further on",
            );
        }
        let hint =
            format!("the event that stands here is event {origin}; restore the ledger from a copy");
        self.event_finding(Code::new("ledger-event-moved"), seq, &hint);
        self.shift = origin - seq;
        self.before = Before::Unknown;
    }

    /// Where an event whose content does not match its hash at its place stood before, if it was moved whole.
    fn origin_of(
        &self,
        connection: &Connection,
        raw: &RawEvent,
        stored: Digest,
    ) -> Result<Option<i64>, PassError> {
        if self.findings.len() >= MAX_FINDINGS {
            return Ok(None);
        }
        let matches =
            |seq: i64| -> Result<bool, LedgerError> { Ok(seq >= 1 && raw.hash_at(seq)? == stored) };
        for near in [raw.seq + self.shift, raw.seq - 1, raw.seq + 1] {
            if matches(near)? {
                return Ok(Some(near));
            }
        }
        let seq_of = |sql: &str, hash: &str| {
            connection
                .query_row(sql, [hash], |row| row.get::<_, i64>(0))
                .optional()
        };
        let after = seq_of(
            "SELECT seq FROM events NOT INDEXED WHERE hash = ?1",
            &raw.prev,
        )?
        .map(|seq| seq + 1);
        let before = seq_of(
            "SELECT seq FROM events NOT INDEXED WHERE prev = ?1",
            &raw.hash,
        )?
        .map(|seq| seq - 1);
        for far in [after, before].into_iter().flatten() {
            if matches(far)? {
                return Ok(Some(far));
            }
        }
        Ok(None)
    }

    fn artifacts_of(&mut self, connection: &Connection, raw: &RawEvent) -> Result<(), PassError> {
        let Ok(references) = raw.artifact_refs() else {
            self.edited(raw.seq);
            return Ok(());
        };
        for reference in references {
            match artifact::describe(connection, &reference.digest) {
                Ok(Some(found)) if found == reference => {}
                Ok(None) => self.push(
                    Code::new("ledger-artifact-missing"),
                    format!("artifact {}", reference.digest),
                    format!(
                        "event {} refers to it; restore the ledger from a backup",
                        raw.seq
                    ),
                ),
                Err(error @ rusqlite::Error::SqliteFailure(..)) => return Err(error.into()),
                Ok(Some(_)) | Err(_) => self.artifact_edited(&reference.digest.to_string()),
            }
        }
        Ok(())
    }

    fn check_anchors(&mut self, seq: i64, stored: Digest) {
        while let Some(&(place, hash)) = self
            .anchors
            .get(self.next_anchor)
            .filter(|(place, _)| *place <= seq)
        {
            self.next_anchor += 1;
            if place == seq && hash != stored {
                self.event_finding(
                    Code::new("ledger-anchor-broken"),
                    seq,
                    "a landed commit knows another event here, so the history was rewritten; restore the ledger \
                     from a copy",
                );
            }
        }
    }

    /// Compares the end of the chain with everything that knows where it should be.
    fn end_of_events(&mut self, connection: &Connection) -> Result<(), PassError> {
        let head = match read_head(connection) {
            Ok(head) => Some(head),
            Err(error @ rusqlite::Error::SqliteFailure(..)) => return Err(error.into()),
            Err(_) => None,
        };
        let counter: Option<i64> = connection
            .query_row(
                "SELECT seq FROM sqlite_sequence WHERE name = 'events'",
                [],
                |row| row.get(0),
            )
            .optional()?;
        self.settle_broken_link(head.map(|head| head.hash));

        let last = self.last;
        let head_seq = head.and_then(|head| i64::try_from(head.seq).ok());
        let witnesses = [
            (head_seq, "the ledger's own head"),
            (counter, "the ledger's own counter"),
            (
                self.anchors.last().map(|(place, _)| *place),
                "a landed commit",
            ),
        ];
        let longest = witnesses
            .iter()
            .filter_map(|(seq, who)| seq.map(|seq| (seq, *who)))
            .max_by_key(|(seq, _)| *seq);
        if let Some((seq, who)) = longest.filter(|(seq, _)| *seq > last) {
            let hint = format!("{who} knows events up to {seq}; restore the ledger from a copy");
            self.event_finding(Code::new("ledger-tail-cut"), last + 1, &hint);
        }
        if let Some(head_seq) = head_seq.filter(|seq| *seq < last) {
            self.event_finding(
                Code::new("ledger-event-forged"),
                head_seq + 1,
                "it stands behind the head of the chain; it was inserted by hand",
            );
        }
        let head_fits = head_seq != Some(last)
            || match (head, self.before) {
                (Some(head), Before::Hash(hash)) => head.hash == hash,
                _ => true,
            };
        let is_single: bool =
            connection.query_row("SELECT count(*) <= 1 FROM chain_head", [], |row| row.get(0))?;
        if head.is_none() || !head_fits || !is_single || counter.unwrap_or(0) < last {
            self.push(
                Code::new("ledger-head-edited"),
                "the head of the chain".to_owned(),
                format!("it does not agree with event {last}; restore the ledger from a copy"),
            );
        }
        Ok(())
    }

    fn artifact_edited(&mut self, name: &str) {
        self.push(
            Code::new("ledger-artifact-edited"),
            format!("artifact {name}"),
            "it is not what was stored under this digest; restore the ledger from a copy"
                .to_owned(),
        );
    }

    fn damaged(&mut self, detail: &str) {
        let hint =
            format!("SQLite says: {detail}; keep the file and restore the ledger from a copy");
        self.push(
            Code::new("ledger-database-damaged"),
            format!("behind event {}", self.last),
            hint,
        );
    }

    fn event_finding(&mut self, code: Code, seq: i64, hint: &str) {
        self.last_bad = self.last_bad.max(seq);
        self.push(code, format!("event {seq}"), hint.to_owned());
    }

    fn push(&mut self, code: Code, subject: String, hint: String) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(Finding::error(code, subject, hint));
        } else {
            self.unlisted += 1;
        }
    }

    fn finish(mut self) -> Verdict {
        if self.unlisted > 0 {
            self.findings.push(Finding::info(
                Code::new("ledger-findings-unlisted"),
                format!("{} more findings", self.unlisted),
                "only the first are listed; start with the first one",
            ));
        }
        Verdict::new(self.findings)
    }
}
