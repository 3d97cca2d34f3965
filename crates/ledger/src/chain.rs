//! Appending to the chain and reading it.
//!
//! An append is one immediate transaction: it reads the head, hashes the event behind it and inserts it; a
//! trigger moves the head. Other writers wait, so no two events can follow the same one.

use crucible_model::{Digest, RunId, to_canonical_json};
use rusqlite::{Connection, OptionalExtension, params};

use crate::artifact;
use crate::error::LedgerError;
use crate::event::{EventRecord, MAX_BODY_BYTES, NewEvent, RawEvent, check_size};
use crate::store::Ledger;

/// The end of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainHead {
    /// The number of the last event; 0 in an empty ledger.
    pub seq: u64,
    /// Its hash; [`Digest::ZERO`] in an empty ledger.
    pub hash: Digest,
}

/// Builds the run id `<kind>-<name>-<digest>`, under which the events of a project's skill or spec are recorded. The
/// digest distinguishes equal names in other projects, and names that differ in characters which a run id cannot have.
///
/// # Errors
///
/// Never in practice: the text is a valid run id.
pub(crate) fn project_run_id(
    kind: &str,
    project: &Digest,
    name: &str,
) -> Result<RunId, LedgerError> {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    let short: String = name.chars().take(40).map(plain).collect();
    let digest = Digest::compute(format!("{project}\n{name}").as_bytes());
    format!("{kind}-{short}-{}", digest.short())
        .parse()
        .map_err(|_| LedgerError::Unreadable {
            what: format!("the {kind} {name:?}"),
        })
}

macro_rules! select_events {
    ($rest:literal) => {
        concat!(
            "SELECT seq, run_id, ts, role, event, path, key, artifacts, body, prev, hash FROM events ",
            $rest
        )
    };
}

/// An event stands in one of two indexes, by whether it has a key: each half finds its own.
const EVENTS_OF_RUN: &str = concat!(
    select_events!("WHERE run_id = ?1 AND key IS NULL UNION ALL "),
    select_events!("WHERE run_id = ?1 AND key IS NOT NULL ORDER BY seq")
);

impl Ledger {
    /// Appends one event and returns it as it stands in the chain. It is on the disk when this returns.
    ///
    /// An event with a `key` that its run already has is not appended again: the first one is returned, with
    /// its own instant and body.
    ///
    /// # Errors
    ///
    /// Fails when the event is too large, refers to an artifact the ledger does not hold, or shares its key
    /// with an event of another name; and for all that can be wrong with the database. Nothing is appended then.
    pub fn append(&mut self, new: NewEvent) -> Result<EventRecord, LedgerError> {
        self.transact(|turn| turn.append(new))
    }

    /// The end of the chain: what a landed commit carries.
    ///
    /// # Errors
    ///
    /// Fails when the database cannot be read.
    pub fn head(&self) -> Result<ChainHead, LedgerError> {
        read_head(&self.connection).map_err(self.fail())
    }

    /// The events in the order of the chain: those of one run, or all.
    ///
    /// # Errors
    ///
    /// Fails when the database cannot be read or a row does not hold what Crucible writes.
    pub fn events(&self, run: Option<&RunId>) -> Result<Vec<EventRecord>, LedgerError> {
        let read = || -> Result<Vec<RawEvent>, rusqlite::Error> {
            match run {
                Some(run) => self
                    .connection
                    .prepare_cached(EVENTS_OF_RUN)?
                    .query_map([run.as_str()], RawEvent::read)?
                    .collect(),
                None => self
                    .connection
                    .prepare_cached(select_events!("ORDER BY seq"))?
                    .query_map([], RawEvent::read)?
                    .collect(),
            }
        };
        read()
            .map_err(self.fail())?
            .into_iter()
            .map(RawEvent::parse)
            .collect()
    }

    /// Returns the numbers of the events of a run whose hash does not match their content, in order. Whether they are linked
    /// with the rest of the chain is for [`Ledger::verify`].
    ///
    /// # Errors
    ///
    /// Fails when the database cannot be read.
    pub fn altered_events(&self, run: &RunId) -> Result<Vec<u64>, LedgerError> {
        let raw: Vec<RawEvent> = self
            .connection
            .prepare_cached(EVENTS_OF_RUN)
            .and_then(|mut select| select.query_map([run.as_str()], RawEvent::read)?.collect())
            .map_err(self.fail())?;
        let mut altered = Vec::new();
        for event in raw {
            if event.hash_at(event.seq)?.to_string() != event.hash {
                altered.push(event.seq.unsigned_abs());
            }
        }
        Ok(altered)
    }

    /// One event by its number.
    ///
    /// # Errors
    ///
    /// As [`Ledger::events`].
    pub fn event(&self, seq: u64) -> Result<Option<EventRecord>, LedgerError> {
        let Ok(seq) = i64::try_from(seq) else {
            return Ok(None);
        };
        let row = self
            .connection
            .prepare_cached(select_events!("WHERE seq = ?1"))
            .and_then(|mut select| select.query_row([seq], RawEvent::read).optional());
        row.map_err(self.fail())?.map(RawEvent::parse).transpose()
    }

    /// Whether the last event is the one that the head of the chain names.
    pub(crate) fn ends_at_its_head(&self) -> Result<bool, LedgerError> {
        self.connection
            .prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM chain_head JOIN events USING (seq, hash)
                 WHERE chain_head.id = 1 AND seq = (SELECT max(seq) FROM events))",
            )
            .and_then(|mut select| select.query_row([], |row| row.get(0)))
            .map_err(self.fail())
    }

    /// One event by its number, where it has the hash that it says it has; nothing where it was changed, or is not there.
    pub(crate) fn event_as_hashed(&self, seq: u64) -> Result<Option<EventRecord>, LedgerError> {
        let Ok(seq) = i64::try_from(seq) else {
            return Ok(None);
        };
        let row = self
            .connection
            .prepare_cached(select_events!("WHERE seq = ?1"))
            .and_then(|mut select| select.query_row([seq], RawEvent::read).optional());
        match row.map_err(self.fail())? {
            Some(raw) if raw.hash_at(raw.seq)?.to_string() == raw.hash => raw.parse().map(Some),
            Some(_) | None => Ok(None),
        }
    }
}

/// Appends within a transaction that the caller commits, so that an event and the rows it refers to are stored together or not at all.
pub(crate) fn append_within(
    transaction: &Connection,
    new: NewEvent,
    fail: &impl Fn(rusqlite::Error) -> LedgerError,
) -> Result<EventRecord, LedgerError> {
    new.check_sizes()?;
    let body = canonical_text(&new.body)?;
    check_size("body", body.len(), MAX_BODY_BYTES)?;
    if let Some(existing) = find_by_key(transaction, &new).map_err(fail)? {
        return accept_existing(new, existing);
    }
    let head = read_head(transaction).map_err(fail)?;
    let artifacts = new
        .artifacts
        .iter()
        .map(|digest| {
            artifact::describe(transaction, digest)
                .map_err(fail)?
                .ok_or(LedgerError::UnknownArtifact { digest: *digest })
        })
        .collect::<Result<Vec<_>, _>>()?;
    let artifact_list = canonical_text(&artifacts)?;
    check_size("list of artifacts", artifact_list.len(), MAX_BODY_BYTES)?;

    let mut raw = RawEvent {
        seq: i64::try_from(head.seq)
            .unwrap_or(i64::MAX)
            .saturating_add(1),
        run: new.run.to_string(),
        ts: new.ts.to_string(),
        role: new.role,
        event: new.event,
        path: new.path,
        key: new.key,
        artifacts: artifact_list,
        body,
        prev: head.hash.to_string(),
        hash: String::new(),
    };
    raw.hash = raw.hash_at(raw.seq)?.to_string();
    insert(transaction, &raw).map_err(fail)?;
    raw.parse()
}

pub(crate) fn read_head(connection: &Connection) -> Result<ChainHead, rusqlite::Error> {
    connection
        .prepare_cached("SELECT seq, hash FROM chain_head WHERE id = 1")?
        .query_row([], |row| {
            let seq: i64 = row.get(0)?;
            let hash: String = row.get(1)?;
            let seq =
                u64::try_from(seq).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(0, seq))?;
            let hash = hash.parse().map_err(|error| unreadable(1, error))?;
            Ok(ChainHead { seq, hash })
        })
}

/// A value of the wrong form in a column, reported like SQLite's own errors.
pub(crate) fn unreadable(
    column: usize,
    error: impl std::error::Error + Send + Sync + 'static,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(error))
}

fn canonical_text<T: serde::Serialize>(value: &T) -> Result<String, LedgerError> {
    let bytes = to_canonical_json(value)?;
    String::from_utf8(bytes).map_err(|_| LedgerError::Unreadable {
        what: "canonical JSON".to_owned(),
    })
}

fn insert(connection: &Connection, raw: &RawEvent) -> Result<usize, rusqlite::Error> {
    let sql =
        "INSERT INTO events (seq, run_id, ts, role, event, path, key, artifacts, body, prev, hash)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
    connection.prepare_cached(sql)?.execute(params![
        raw.seq,
        raw.run,
        raw.ts,
        raw.role,
        raw.event,
        raw.path,
        raw.key,
        raw.artifacts,
        raw.body,
        raw.prev,
        raw.hash
    ])
}

fn find_by_key(
    connection: &Connection,
    new: &NewEvent,
) -> Result<Option<RawEvent>, rusqlite::Error> {
    let Some(key) = &new.key else { return Ok(None) };
    connection
        .prepare_cached(select_events!("WHERE run_id = ?1 AND key = ?2"))?
        .query_row([new.run.as_str(), key], RawEvent::read)
        .optional()
}

fn accept_existing(new: NewEvent, existing: RawEvent) -> Result<EventRecord, LedgerError> {
    if existing.event == new.event {
        return existing.parse();
    }
    Err(LedgerError::KeyTaken {
        run: new.run,
        key: new.key.unwrap_or_default(),
        existing: existing.event,
    })
}

#[cfg(test)]
mod tests {
    use crucible_model::Timestamp;
    use serde_json::json;

    use super::*;

    #[test]
    fn run_events_are_found_by_index() {
        let dir = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::open(&dir.path().join("ledger.db")).unwrap();
        let ts: Timestamp = "2026-01-31T09:30:00Z".parse().unwrap();
        let (mine, other): (RunId, RunId) = ("mine".parse().unwrap(), "other".parse().unwrap());
        // Keys out of order: what comes back is in the order of the chain all the same.
        for (run, key) in [
            (&mine, Some("z")),
            (&other, Some("z")),
            (&mine, None),
            (&mine, Some("a")),
            (&other, None),
            (&mine, None),
        ] {
            let event = NewEvent::new(run.clone(), ts, "chair", "step", json!({}));
            ledger
                .append(NewEvent {
                    key: key.map(str::to_owned),
                    ..event
                })
                .unwrap();
        }
        let found = ledger.events(Some(&mine)).unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|event| (event.seq, event.key.as_deref()))
            .collect();
        assert_eq!(
            found,
            [(1, Some("z")), (3, None), (4, Some("a")), (6, None)]
        );

        let mut plan = ledger
            .connection
            .prepare(&format!("EXPLAIN QUERY PLAN {EVENTS_OF_RUN}"))
            .unwrap();
        let steps: Vec<String> = plan
            .query_map(["mine"], |row| row.get(3))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert!(
            steps.iter().all(|step| !step.starts_with("SCAN")),
            "{steps:?}"
        );
        for index in ["events_without_key", "events_once_per_key"] {
            assert!(steps.iter().any(|step| step.contains(index)), "{steps:?}");
        }
    }
}
