//! `crucible crawl history`: past sessions, or one of them with its documents and its debate.

mod one;

use clap::Args;
use crucible_ledger::{CrawlRow, Ledger};
use crucible_model::{ExitStatus, Timestamp, one_line, short_line};
use serde::Serialize;

use super::flags::OutputArgs;
use crate::app::App;
use crate::error::CommandError;
use crate::table::table;

/// The schema name of the JSON result.
const SCHEMA: &str = "crucible-crawl-history-v1";

/// Characters of a query or an error in a table cell.
const SHOWN: usize = 100;

/// List the last 20 sessions, or show one with its documents
///
/// Each session is one line, as text and as JSON, newest first. One session is shown with its documents
/// and its debate. For example: `crucible crawl history`, then `crucible crawl history 3`; or an old
/// plan with
/// `crucible crawl history 3 --json | jq '.documents[] | select(.type == "plan").content'`
#[derive(Args)]
pub(crate) struct History {
    /// The number of a session
    #[arg(value_name = "SESSION")]
    session: Option<u64>,
    #[command(flatten)]
    pub(crate) output_args: OutputArgs,
}

impl History {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        match self.session {
            Some(session) => one::show(app, session),
            None => show(app),
        }
    }
}

/// Prints the sessions, or how to start one if no session exists.
pub(crate) fn show(app: &App) -> Result<ExitStatus, CommandError> {
    let sessions = match Ledger::open_existing(&app.ledger_path()?)? {
        Some(ledger) => ledger.crawls()?,
        None => Vec::new(),
    };
    if app.output.is_json() {
        let sessions: Vec<_> = sessions.iter().map(Session::of).collect();
        app.output.json_text(&document(&sessions)?);
        return Ok(ExitStatus::Success);
    }
    if sessions.is_empty() {
        app.output
            .line("no crawl yet; begin with: crucible crawl search QUERY");
        return Ok(ExitStatus::Success);
    }
    let mut all = table([
        "session",
        "began",
        "status",
        "repository",
        "ref",
        "builds with",
        "plan",
        "exported to",
    ]);
    for session in &sessions {
        let known = |text: &Option<String>| text.as_deref().unwrap_or("-").to_owned();
        let searched = session
            .query
            .as_ref()
            .map(|query| format!("search {:?}", short_line(query, SHOWN)));
        let row = [
            session.id.to_string(),
            session.started_at.to_string(),
            session.status.as_str().to_owned(),
            known(&session.selected_repo.clone().or(searched)),
            known(&session.selected_ref),
            known(&session.build_system),
            known(&session.plan_hash),
            known(&session.export_path),
        ];
        all.add_row(row.map(|text| one_line(&text)));
    }
    app.output.line(&all.trim_fmt());
    Ok(ExitStatus::Success)
}

/// One JSON document with one line per session, so that `grep` finds whole sessions.
fn document(sessions: &[Session<'_>]) -> Result<String, CommandError> {
    let lines: Result<Vec<String>, _> = sessions.iter().map(serde_json::to_string).collect();
    let lines = lines.map_err(|error| {
        CommandError::new(
            ExitStatus::Refused,
            format!("the history has no JSON form: {error}"),
        )
    })?;
    Ok(format!(
        "{{\"schema_version\":\"{SCHEMA}\",\"sessions\":[\n{}\n]}}",
        lines.join(",\n")
    ))
}

#[derive(Serialize)]
struct Session<'a> {
    session_id: u64,
    started_at: Timestamp,
    ended_at: Option<Timestamp>,
    status: &'static str,
    query: Option<&'a str>,
    selected_repo: Option<&'a str>,
    selected_ref: Option<&'a str>,
    build_system: Option<&'a str>,
    debate_rounds: u64,
    plan_hash: Option<&'a str>,
    prompt_hash: Option<&'a str>,
    export_path: Option<&'a str>,
}

impl<'a> Session<'a> {
    fn of(row: &'a CrawlRow) -> Self {
        Self {
            session_id: row.id,
            started_at: row.started_at,
            ended_at: row.ended_at,
            status: row.status.as_str(),
            query: row.query.as_deref(),
            selected_repo: row.selected_repo.as_deref(),
            selected_ref: row.selected_ref.as_deref(),
            build_system: row.build_system.as_deref(),
            debate_rounds: row.debate_rounds,
            plan_hash: row.plan_hash.as_deref(),
            prompt_hash: row.prompt_hash.as_deref(),
            export_path: row.export_path.as_deref(),
        }
    }
}
