//! What a crawl hands out and what was said in it: rows beside the chain, contents in it.

use crucible_model::{Digest, Timestamp};
use rusqlite::{Row, params};
use serde_json::json;

use super::event;
use super::session::{ROLE, require_active};
use crate::artifact::put_within;
use crate::chain::{append_within, unreadable};
use crate::error::LedgerError;
use crate::moment::{Moment, instant, number, sql_id};
use crate::recorded_rows::commit;
use crate::store::Ledger;

/// A document that passed its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCrawlArtifact {
    /// The session it belongs to.
    pub crawl: u64,
    /// When.
    pub moment: Moment,
    /// `search`, `inspect`, `plan`, `recipe` or `manifest`.
    pub kind: &'static str,
    /// The schema's id.
    pub schema: &'static str,
    /// Canonical JSON, already free of secrets.
    pub content: String,
}

/// An artifact as it stands in the ledger. Its content is what the chain knows: reading checks that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrawlArtifactRow {
    /// The session it belongs to.
    pub crawl: u64,
    /// When it was stored.
    pub created_at: Timestamp,
    /// `search`, `inspect`, `plan`, `recipe` or `manifest`.
    pub kind: String,
    /// The schema's id.
    pub schema: String,
    /// The first twelve digits of its digest.
    pub content_hash: String,
    /// Canonical JSON.
    pub content: String,
    /// Its digest, by which events speak of it.
    pub digest: Digest,
    /// Its file's name in the export; absent until it is exported.
    pub export_filename: Option<String>,
}

/// A message of a debate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCrawlMessage {
    /// The session it belongs to.
    pub crawl: u64,
    /// When.
    pub moment: Moment,
    /// `draft`, `critique`, `revision` or `synthesis`.
    pub phase: String,
    /// The round, from 1; 0 of the synthesis.
    pub round: u32,
    /// `gpt` or `claude`.
    pub owner: String,
    /// Who was asked.
    pub provider: String,
    /// The model that answered; empty where none did.
    pub model: String,
    /// What was sent and what came back, as JSON, already free of secrets.
    pub content: String,
}

/// A message as it stands in the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrawlMessageRow {
    /// Its place in the debate, from 1 on.
    pub seq: u64,
    /// `draft`, `critique`, `revision` or `synthesis`.
    pub phase: String,
    /// The round, from 1; 0 of the synthesis.
    pub round: u64,
    /// `gpt` or `claude`.
    pub owner: String,
    /// Who was asked.
    pub provider: String,
    /// The model that answered; empty where none did.
    pub model: String,
    /// What was said, as an artifact of the ledger.
    pub digest: Digest,
    /// When.
    pub created_at: Timestamp,
}

const ARTIFACT_COLUMNS: &str =
    "crawl_session_id, created_at, artifact_type, schema_version, content_hash, content,
                                digest, export_filename";

impl Ledger {
    /// Stores an artifact of an active session and records it in the chain.
    ///
    /// # Errors
    ///
    /// [`LedgerError::NoActiveCrawl`] when the session is not active; when the content is too large; and for all that can be
    /// wrong with the database.
    pub fn put_crawl_artifact(&mut self, new: &NewCrawlArtifact) -> Result<Digest, LedgerError> {
        let fail = self.fail();
        let transaction = self.connection.transaction().map_err(&fail)?;
        require_active(&transaction, new.crawl, &fail)?;
        let digest = put_within(&transaction, new.schema, new.content.as_bytes(), &fail)?;
        let sql = "INSERT INTO crawl_artifacts (crawl_session_id, created_at, artifact_type, schema_version, content_hash,
                                                content, digest) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let values = params![
            sql_id(new.crawl),
            new.moment.at.to_string(),
            new.kind,
            new.schema,
            digest.short(),
            new.content,
            digest.to_string()
        ];
        transaction
            .prepare_cached(sql)
            .and_then(|mut insert| insert.execute(values))
            .map_err(&fail)?;
        let body =
            json!({ "type": new.kind, "schema": new.schema, "content_hash": digest.short() });
        let new_event = event(new.moment, new.crawl, ROLE, "CRAWL_ARTIFACT", body)?;
        append_within(&transaction, new_event.with_artifact(digest), &fail)?;
        commit(transaction, new.moment.at, &fail)?;
        Ok(digest)
    }

    /// The artifacts of a session in the order in which they were stored.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Damaged`] when one is not what the chain knows; fails when the database cannot be read.
    pub fn crawl_artifacts(&self, crawl: u64) -> Result<Vec<CrawlArtifactRow>, LedgerError> {
        let sql = format!(
            "SELECT {ARTIFACT_COLUMNS} FROM crawl_artifacts WHERE crawl_session_id = ?1 ORDER BY id"
        );
        let rows: Vec<CrawlArtifactRow> = self
            .connection
            .prepare_cached(&sql)
            .and_then(|mut select| select.query_map([sql_id(crawl)], read_artifact)?.collect())
            .map_err(self.fail())?;
        rows.into_iter().map(|row| self.unedited(row)).collect()
    }

    /// Keeps a message of an active session's debate and records it in the chain, under its owner's name.
    ///
    /// # Errors
    ///
    /// As [`Ledger::put_crawl_artifact`].
    pub fn put_crawl_message(&mut self, new: &NewCrawlMessage) -> Result<u64, LedgerError> {
        let fail = self.fail();
        let transaction = self.connection.transaction().map_err(&fail)?;
        require_active(&transaction, new.crawl, &fail)?;
        let digest = put_within(&transaction, "crawl-message", new.content.as_bytes(), &fail)?;
        let sql = "INSERT INTO crawl_messages (crawl_session_id, seq, phase, round, owner, provider, model, digest, created_at)
                   VALUES (?1, (SELECT ifnull(max(seq), 0) + 1 FROM crawl_messages WHERE crawl_session_id = ?1),
                           ?2, ?3, ?4, ?5, ?6, ?7, ?8) RETURNING seq";
        let values = params![
            sql_id(new.crawl),
            new.phase,
            new.round,
            new.owner,
            new.provider,
            new.model,
            digest.to_string(),
            new.moment.at.to_string()
        ];
        let seq = transaction
            .prepare_cached(sql)
            .and_then(|mut insert| insert.query_row(values, |row| number(row, 0)))
            .map_err(&fail)?;
        let body = json!({ "seq": seq, "phase": new.phase, "round": new.round, "provider": new.provider, "model": new.model });
        let new_event = event(new.moment, new.crawl, &new.owner, "CRAWL_MESSAGE", body)?;
        append_within(&transaction, new_event.with_artifact(digest), &fail)?;
        commit(transaction, new.moment.at, &fail)?;
        Ok(seq)
    }

    /// The messages of a session in their order.
    ///
    /// # Errors
    ///
    /// Fails when the database cannot be read or a row does not hold what Crucible writes.
    pub fn crawl_messages(&self, crawl: u64) -> Result<Vec<CrawlMessageRow>, LedgerError> {
        let sql = "SELECT seq, phase, round, owner, provider, model, digest, created_at FROM crawl_messages
                   WHERE crawl_session_id = ?1 ORDER BY seq";
        self.connection
            .prepare_cached(sql)
            .and_then(|mut select| select.query_map([sql_id(crawl)], read_message)?.collect())
            .map_err(self.fail())
    }

    fn unedited(&self, row: CrawlArtifactRow) -> Result<CrawlArtifactRow, LedgerError> {
        if Digest::compute(row.content.as_bytes()) == row.digest
            && row.digest.short() == row.content_hash
        {
            return Ok(row);
        }
        let detail = format!(
            "the {} artifact of crawl {} was edited",
            row.kind, row.crawl
        );
        Err(LedgerError::Damaged {
            path: self.path().to_owned(),
            detail,
        })
    }
}

fn digest(row: &Row<'_>, column: usize) -> Result<Digest, rusqlite::Error> {
    row.get::<_, String>(column)?
        .parse()
        .map_err(|error: crucible_model::DigestError| unreadable(column, error))
}

fn read_artifact(row: &Row<'_>) -> Result<CrawlArtifactRow, rusqlite::Error> {
    Ok(CrawlArtifactRow {
        crawl: number(row, 0)?,
        created_at: instant(row, 1)?,
        kind: row.get(2)?,
        schema: row.get(3)?,
        content_hash: row.get(4)?,
        content: row.get(5)?,
        digest: digest(row, 6)?,
        export_filename: row.get(7)?,
    })
}

fn read_message(row: &Row<'_>) -> Result<CrawlMessageRow, rusqlite::Error> {
    Ok(CrawlMessageRow {
        seq: number(row, 0)?,
        phase: row.get(1)?,
        round: number(row, 2)?,
        owner: row.get(3)?,
        provider: row.get(4)?,
        model: row.get(5)?,
        digest: digest(row, 6)?,
        created_at: instant(row, 7)?,
    })
}
