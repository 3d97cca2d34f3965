//! Past sessions as JSON documents.

use crucible_ledger::{CrawlArtifactRow, CrawlMessageRow, CrawlRow, Ledger, LedgerError};
use crucible_model::{Digest, Failure, Timestamp};
use serde::Serialize;
use serde_json::Value;

/// The schema of a list of sessions.
const LIST_SCHEMA: &str = "crucible-crawl-history-v1";
/// The schema of one session.
const SCHEMA: &str = "crucible-crawl-session-v1";

/// A past session, with its documents and its debate.
#[derive(Debug, Serialize)]
pub struct PastCrawl {
    schema_version: &'static str,
    /// The row of the session.
    pub session: PastSession,
    /// The documents that it produced.
    pub documents: Vec<PastDocument>,
    /// The messages of its debate.
    pub messages: Vec<PastMessage>,
}

/// A row of the history.
#[derive(Debug, Serialize)]
pub struct PastSession {
    /// Its number.
    pub session_id: u64,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How it ended.
    pub status: &'static str,
    /// The text that was searched for.
    pub query: Option<String>,
    /// The repository.
    pub selected_repo: Option<String>,
    /// The branch, tag or commit.
    pub selected_ref: Option<String>,
    /// The detected build system.
    pub build_system: Option<String>,
    debate_rounds: u64,
    /// The hash of the plan.
    pub plan_hash: Option<String>,
    prompt_hash: Option<String>,
    /// The directory of the export.
    pub export_path: Option<String>,
}

/// A document of a session.
#[derive(Debug, Serialize)]
pub struct PastDocument {
    /// `search`, `inspect`, `plan`, `recipe` or `manifest`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The schema name.
    pub schema: String,
    created_at: Timestamp,
    /// The digest of the content.
    pub content_hash: String,
    /// The file name in the export.
    pub export_filename: Option<String>,
    content: Value,
}

/// A message of a debate.
#[derive(Debug, Serialize)]
pub struct PastMessage {
    seq: u64,
    created_at: Timestamp,
    /// The step of the debate.
    pub phase: String,
    /// The round, from 1; zero for the last message.
    pub round: u64,
    /// The side that answered.
    pub owner: String,
    /// The provider of the answer.
    pub provider: String,
    /// The model of the answer; empty if no model answered.
    pub model: String,
    /// `approved` or `objected` for a critique that was valid, else empty.
    pub verdict: String,
    /// What was wrong with the answer; empty if nothing was.
    pub error: String,
    /// The digest of the request and the answer, an artifact of the ledger.
    pub digest: Digest,
}

impl PastSession {
    /// Returns the newest sessions.
    ///
    /// # Errors
    ///
    /// Fails if the ledger cannot be read.
    pub fn list(ledger: Option<&Ledger>) -> Result<Vec<Self>, LedgerError> {
        let rows = ledger.map_or_else(|| Ok(Vec::new()), Ledger::crawls)?;
        Ok(rows.into_iter().map(Self::from).collect())
    }

    /// Returns one document with one line per session, so that `grep` finds whole sessions.
    ///
    /// # Errors
    ///
    /// Fails if a session has no JSON form.
    pub fn document(sessions: &[Self]) -> Result<String, Failure> {
        let lines: Result<Vec<String>, _> = sessions.iter().map(serde_json::to_string).collect();
        let lines = lines
            .map_err(|error| Failure::refused(format!("the history has no JSON form: {error}")))?;
        Ok(format!(
            "{{\"schema_version\":\"{LIST_SCHEMA}\",\"sessions\":[\n{}\n]}}",
            lines.join(",\n")
        ))
    }
}

impl From<CrawlRow> for PastSession {
    fn from(row: CrawlRow) -> Self {
        Self {
            session_id: row.id,
            started_at: row.started_at,
            ended_at: row.ended_at,
            status: row.status.as_str(),
            query: row.query,
            selected_repo: row.selected_repo,
            selected_ref: row.selected_ref,
            build_system: row.build_system,
            debate_rounds: row.debate_rounds,
            plan_hash: row.plan_hash,
            prompt_hash: row.prompt_hash,
            export_path: row.export_path,
        }
    }
}

impl PastCrawl {
    /// Reads the session of this number.
    ///
    /// # Errors
    ///
    /// Fails if there is no such session, or if the ledger cannot be read.
    pub fn read(ledger: Option<&Ledger>, number: u64) -> Result<Self, Failure> {
        let unknown = || {
            Failure::usage(format!("crawl session {number} does not exist"))
                .hint("`crucible crawl history` lists the sessions.")
        };
        let ledger = ledger.ok_or_else(unknown)?;
        let session = ledger.crawl(number)?.ok_or_else(unknown)?;
        let messages = ledger.crawl_messages(number)?;
        let messages = messages.into_iter().map(|row| message(ledger, row));
        Ok(Self {
            schema_version: SCHEMA,
            session: session.into(),
            documents: ledger
                .crawl_artifacts(number)?
                .into_iter()
                .map(document)
                .collect(),
            messages: messages.collect::<Result<_, _>>()?,
        })
    }
}

fn document(row: CrawlArtifactRow) -> PastDocument {
    PastDocument {
        content: serde_json::from_str(&row.content).unwrap_or_default(),
        kind: row.kind,
        schema: row.schema,
        created_at: row.created_at,
        content_hash: row.content_hash,
        export_filename: row.export_filename,
    }
}

fn message(ledger: &Ledger, row: CrawlMessageRow) -> Result<PastMessage, LedgerError> {
    let answer = ledger.artifact(&row.digest)?.unwrap_or_default();
    let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
    let text = |key: &str| answer[key].as_str().unwrap_or_default().to_owned();
    Ok(PastMessage {
        seq: row.seq,
        created_at: row.created_at,
        phase: row.phase,
        round: row.round,
        owner: row.owner,
        provider: row.provider,
        model: row.model,
        verdict: text("verdict"),
        error: text("error"),
        digest: row.digest,
    })
}
