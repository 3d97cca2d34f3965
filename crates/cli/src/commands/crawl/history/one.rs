//! One session of the history: its findings, its documents and its debate.

use crucible_crawl::PastCrawl;
use crucible_model::{ExitStatus, Failure, one_line, short_line};
use crucible_terminal::{Output, table};

use super::SHOWN;
use crate::app::App;

/// Prints a session.
pub(super) fn show(app: &App, number: u64) -> Result<ExitStatus, Failure> {
    let report = PastCrawl::read(app.existing_ledger()?.as_ref(), number)?;
    app.output.show(
        || &report,
        || {
            for_people(&app.output, &report);
        },
    )
}

fn for_people(output: &Output, report: &PastCrawl) {
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
        ("search", &session.query),
        ("repository", &session.selected_repo),
        ("ref", &session.selected_ref),
        ("builds with", &session.build_system),
        ("plan", &session.plan_hash),
        ("exported to", &session.export_path),
    ] {
        if let Some(known) = known {
            row(name, known);
        }
    }
    let mut documents = table(["document", "schema", "hash", "exported as"]);
    for document in &report.documents {
        let file = document.export_filename.as_deref().unwrap_or("-");
        documents.add_row(
            [
                &document.kind,
                &document.schema,
                &document.content_hash,
                file,
            ]
            .map(one_line),
        );
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
            (true, true) => message.phase.clone(),
        };
        let model = if message.model.is_empty() {
            "no model"
        } else {
            &message.model
        };
        let row = [
            if message.round == 0 {
                "last".to_owned()
            } else {
                message.round.to_string()
            },
            message.owner.clone(),
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
