//! `crucible crawl history`: past sessions, or one of them with its documents and its debate.

mod one;

use clap::Args;
use crucible_crawl::PastSession;
use crucible_model::{ExitStatus, Failure, one_line, short_line};
use crucible_terminal::table;

use super::flags::OutputArgs;
use crate::app::App;

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
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        match self.session {
            Some(session) => one::show(app, session),
            None => show(app),
        }
    }
}

/// Prints the sessions, or how to start one if no session exists.
pub(crate) fn show(app: &App) -> Result<ExitStatus, Failure> {
    let sessions = PastSession::list(app.existing_ledger()?.as_ref())?;
    if app.output.is_json() {
        app.output.json_text(&PastSession::document(&sessions)?);
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
            session.session_id.to_string(),
            session.started_at.to_string(),
            session.status.to_owned(),
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
