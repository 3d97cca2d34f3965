//! One event: what a caller states, what the ledger adds, and the bytes that are hashed.
//!
//! The hash covers every column: it is the SHA-256 of the canonical JSON of `HashedEvent`, in which the body and
//! the artifact list stand by the digest of the bytes that are stored. `verify` hashes what it reads, byte for
//! byte, and never a value parsed from it.

use crucible_model::{CanonicalError, Digest, RunId, Timestamp, to_canonical_json};
use rusqlite::Row;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::LedgerError;

/// The largest body of an event, in bytes of canonical JSON. What is larger belongs into an artifact.
pub const MAX_BODY_BYTES: usize = 1 << 20;

/// The longest name of a role, an event, a path or a key, in bytes.
pub(crate) const MAX_NAME_BYTES: usize = 4096;

/// An event as its author states it.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEvent {
    /// The run it belongs to.
    pub run: RunId,
    /// When it happened.
    pub ts: Timestamp,
    /// Who acted: `chair`, `librarian`, `verifier`, …
    pub role: String,
    /// What happened: `plan-signed`, `gate-finished`, …
    pub event: String,
    /// The subject file, relative to the run directory or the repository, if any.
    pub path: Option<String>,
    /// Names the step within its run. A second event with the same key is not appended: the first is returned.
    /// Absent for events that may repeat.
    pub key: Option<String>,
    /// The artifacts it refers to; they must be stored already.
    pub artifacts: Vec<Digest>,
    /// Additional data, already free of secrets.
    pub body: Value,
}

impl NewEvent {
    /// An event without path, key and artifacts.
    #[must_use]
    pub fn new(
        run: RunId,
        ts: Timestamp,
        role: impl Into<String>,
        event: impl Into<String>,
        body: Value,
    ) -> Self {
        Self {
            run,
            ts,
            role: role.into(),
            event: event.into(),
            path: None,
            key: None,
            artifacts: Vec::new(),
            body,
        }
    }

    /// The same event about a file.
    #[must_use]
    pub fn about(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// The same event, appended at most once in its run.
    #[must_use]
    pub fn once(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Adds a reference to an artifact.
    #[must_use]
    pub fn with_artifact(mut self, digest: Digest) -> Self {
        self.artifacts.push(digest);
        self
    }

    pub(crate) fn check_sizes(&self) -> Result<(), LedgerError> {
        let names = [
            ("role", Some(&self.role)),
            ("name", Some(&self.event)),
            ("path", self.path.as_ref()),
            ("key", self.key.as_ref()),
        ];
        for (part, text) in names {
            check_size(part, text.map_or(0, String::len), MAX_NAME_BYTES)?;
        }
        Ok(())
    }
}

pub(crate) fn check_size(part: &'static str, size: usize, limit: usize) -> Result<(), LedgerError> {
    if size > limit {
        return Err(LedgerError::TooLarge {
            part,
            size: size as u64,
            limit: limit as u64,
        });
    }
    Ok(())
}

/// A reference from an event to an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArtifactRef {
    /// The digest of its bytes.
    pub digest: Digest,
    /// What it is, as it was first stored.
    pub kind: String,
    /// Its length in bytes.
    pub size: u64,
}

/// A stored event.
#[derive(Debug, Clone, PartialEq)]
pub struct EventRecord {
    /// Its place in the chain, from 1 on, without gaps.
    pub seq: u64,
    /// The run it belongs to.
    pub run: RunId,
    /// When it happened.
    pub ts: Timestamp,
    /// Who acted.
    pub role: String,
    /// What happened.
    pub event: String,
    /// The file it is about, where it is about one.
    pub path: Option<String>,
    /// The key that makes it the only one of its kind in its run, where it has one.
    pub key: Option<String>,
    /// The artifacts it refers to.
    pub artifacts: Vec<ArtifactRef>,
    /// Everything else.
    pub body: Value,
    /// The hash of the event before it; [`Digest::ZERO`] for the first.
    pub prev: Digest,
    /// Its own hash.
    pub hash: Digest,
}

/// A row of the table of events, column for column, as it is stored and hashed.
#[derive(Debug)]
pub(crate) struct RawEvent {
    pub(crate) seq: i64,
    pub(crate) run: String,
    pub(crate) ts: String,
    pub(crate) role: String,
    pub(crate) event: String,
    pub(crate) path: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) artifacts: String,
    pub(crate) body: String,
    pub(crate) prev: String,
    pub(crate) hash: String,
}

/// What is hashed. `schema_version` names the shape; another shape gets another name, so hashes of two shapes
/// never mix.
#[derive(Serialize)]
struct HashedEvent<'a> {
    schema_version: &'static str,
    prev: &'a str,
    seq: i64,
    run: &'a str,
    ts: &'a str,
    role: &'a str,
    event: &'a str,
    path: Option<&'a str>,
    key: Option<&'a str>,
    artifacts_digest: Digest,
    body_digest: Digest,
}

impl RawEvent {
    /// Reads the columns `seq, run_id, ts, role, event, path, key, artifacts, body, prev, hash`.
    pub(crate) fn read(row: &Row<'_>) -> Result<Self, rusqlite::Error> {
        Ok(Self {
            seq: row.get(0)?,
            run: row.get(1)?,
            ts: row.get(2)?,
            role: row.get(3)?,
            event: row.get(4)?,
            path: row.get(5)?,
            key: row.get(6)?,
            artifacts: row.get(7)?,
            body: row.get(8)?,
            prev: row.get(9)?,
            hash: row.get(10)?,
        })
    }

    /// The hash that this event has at place `seq`.
    pub(crate) fn hash_at(&self, seq: i64) -> Result<Digest, CanonicalError> {
        let sealed = HashedEvent {
            schema_version: "crucible-event-v1",
            prev: &self.prev,
            seq,
            run: &self.run,
            ts: &self.ts,
            role: &self.role,
            event: &self.event,
            path: self.path.as_deref(),
            key: self.key.as_deref(),
            artifacts_digest: Digest::compute(self.artifacts.as_bytes()),
            body_digest: Digest::compute(self.body.as_bytes()),
        };
        Ok(Digest::compute(&to_canonical_json(&sealed)?))
    }

    /// The artifacts it refers to.
    pub(crate) fn artifact_refs(&self) -> Result<Vec<ArtifactRef>, LedgerError> {
        serde_json::from_str(&self.artifacts).map_err(|_| self.unreadable("artifact list"))
    }

    /// The event as callers see it.
    pub(crate) fn parse(self) -> Result<EventRecord, LedgerError> {
        Ok(EventRecord {
            seq: u64::try_from(self.seq).map_err(|_| self.unreadable("number"))?,
            run: self.run.parse().map_err(|_| self.unreadable("run"))?,
            ts: self.ts.parse().map_err(|_| self.unreadable("instant"))?,
            artifacts: self.artifact_refs()?,
            body: serde_json::from_str(&self.body).map_err(|_| self.unreadable("body"))?,
            prev: self
                .prev
                .parse()
                .map_err(|_| self.unreadable("previous hash"))?,
            hash: self.hash.parse().map_err(|_| self.unreadable("hash"))?,
            role: self.role,
            event: self.event,
            path: self.path,
            key: self.key,
        })
    }

    fn unreadable(&self, column: &str) -> LedgerError {
        LedgerError::Unreadable {
            what: format!("the {column} of event {}", self.seq),
        }
    }
}
