//! One session of the history: its findings, its documents and its debate.

use crucible_ledger::{CrawlArtifactRow, CrawlMessageRow, Ledger};
use crucible_model::{Digest, ExitStatus, Timestamp, one_line, short_line};
use serde::Serialize;
use serde_json::Value;

use super::{SHOWN, Session};
use crate::app::App;
use crate::error::CommandError;
use crate::output::Output;
use crate::table::table;

/// The schema name of the JSON result.
const SCHEMA: &str = "crucible-crawl-session-v1";

#[derive(Serialize)]
struct Report<'a> {
    schema_version: &'static str,
    session: Session<'a>,
    documents: Vec<Document<'a>>,
    messages: Vec<Message<'a>>,
}

#[derive(Serialize)]
struct Document<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    schema: &'a str,
    created_at: Timestamp,
    content_hash: &'a str,
    export_filename: Option<&'a str>,
    content: Value,
}

#[derive(Serialize)]
struct Message<'a> {
    seq: u64,
    created_at: Timestamp,
    phase: &'a str,
    round: u64,
    owner: &'a str,
    provider: &'a str,
    model: &'a str,
    /// `approved` or `objected` for a critique that was valid, else empty.
    verdict: String,
    /// What was wrong with the answer; empty if nothing was.
    error: String,
    /// The digest of the request and the answer, an artifact of the ledger.
    digest: Digest,
}

/// Prints a session.
pub(super) fn show(app: &App, number: u64) -> Result<ExitStatus, CommandError> {
    let nobody = || {
        CommandError::usage(format!("crawl session {number} does not exist"))
            .hint("`crucible crawl history` lists the sessions.")
    };
    let ledger = Ledger::open_existing(&app.ledger_path()?)?.ok_or_else(nobody)?;
    let session = ledger.crawl(number)?.ok_or_else(nobody)?;
    let (documents, messages) = (
        ledger.crawl_artifacts(number)?,
        ledger.crawl_messages(number)?,
    );
    let report = Report {
        schema_version: SCHEMA,
        session: Session::of(&session),
        documents: documents.iter().map(document).collect(),
        messages: messages
            .iter()
            .map(|row| message(&ledger, row))
            .collect::<Result<_, _>>()?,
    };
    if app.output.is_json() {
        app.output.json(&report)?;
    } else {
        for_people(&app.output, &report);
    }
    Ok(ExitStatus::Success)
}

fn document(row: &CrawlArtifactRow) -> Document<'_> {
    Document {
        kind: &row.kind,
        schema: &row.schema,
        created_at: row.created_at,
        content_hash: &row.content_hash,
        export_filename: row.export_filename.as_deref(),
        content: serde_json::from_str(&row.content).unwrap_or_default(),
    }
}

fn message<'a>(ledger: &Ledger, row: &'a CrawlMessageRow) -> Result<Message<'a>, CommandError> {
    let said = ledger.artifact(&row.digest)?.unwrap_or_default();
    let said: Value = serde_json::from_slice(&said).unwrap_or_default();
    let text = |key: &str| said[key].as_str().unwrap_or_default().to_owned();
    Ok(Message {
        seq: row.seq,
        created_at: row.created_at,
        phase: &row.phase,
        round: row.round,
        owner: &row.owner,
        provider: &row.provider,
        model: &row.model,
        verdict: text("verdict"),
        error: text("error"),
        digest: row.digest,
    })
}

fn for_people(output: &Output, report: &Report<'_>) {
    let session = &report.session;
    let row = |name: &str, text: &str| output.line(&one_line(&format!("{name:<12} {text}")));
    row(
        "session",
        &format!("{} ({})", session.session_id, session.status),
    );
    let ended = session
        .ended_at
        .map_or_else(|| "not ended".to_owned(), |at| format!("ended {at}"));
    row("began", &format!("{}, {ended}", session.started_at));
    for (name, known) in [
        ("search", session.query),
        ("repository", session.selected_repo),
        ("ref", session.selected_ref),
        ("builds with", session.build_system),
        ("plan", session.plan_hash),
        ("exported to", session.export_path),
    ] {
        if let Some(known) = known {
            row(name, known);
        }
    }
    let mut documents = table(["document", "schema", "hash", "exported as"]);
    for document in &report.documents {
        let file = document.export_filename.unwrap_or("-");
        documents
            .add_row([document.kind, document.schema, document.content_hash, file].map(one_line));
    }
    if !report.documents.is_empty() {
        output.line(&format!("\n{}", documents.trim_fmt()));
    }
    let mut messages = table(["round", "who", "did", "model", "said"]);
    for message in &report.messages {
        let did = match (message.error.is_empty(), message.verdict.is_empty()) {
            (false, _) => format!(
                "{}: failed: {}",
                message.phase,
                short_line(&message.error, SHOWN)
            ),
            (true, false) => format!("{}: {}", message.phase, message.verdict),
            (true, true) => message.phase.to_owned(),
        };
        let model = if message.model.is_empty() {
            "no model"
        } else {
            message.model
        };
        let row = [
            if message.round == 0 {
                "last".to_owned()
            } else {
                message.round.to_string()
            },
            message.owner.to_owned(),
            did,
            format!("{model} of {}", message.provider),
            message.digest.to_string(),
        ];
        messages.add_row(row.map(|text| one_line(&text)));
    }
    if !report.messages.is_empty() {
        output.line(&format!("\n{}", messages.trim_fmt()));
        output.line("\nthe full text: crucible ledger show DIGEST");
    }
}
