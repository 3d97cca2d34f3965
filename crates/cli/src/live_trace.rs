//! Sends what a command added to a run as spans, if the user's environment names a collector.
//!
//! The result of the command is printed before. A collector that cannot be reached costs a warning, and the few seconds of
//! its time limit at most; it changes no exit code.

use crucible_ledger::Ledger;
use crucible_model::{ExitStatus, Failure, RunId};
use crucible_run::RunDir;
use crucible_trace::{Collector, Content, Delivery, RunTrace};
use crucible_view::RunView;

use crate::app::App;

/// Sends the spans of a run that events after `known` closed. Content is never sent.
pub(crate) fn send_trace(app: &App, dir: &RunDir, known: u64) {
    let collector = match Collector::from_environment(&app.env) {
        Ok(None) => return,
        Ok(Some(collector)) => collector,
        Err(error) => return warn(app, &error.to_string()),
    };
    let address = collector.shown_address();
    if let Err(failure) = send(app, dir, known, collector) {
        let reason = match failure.status {
            ExitStatus::Interrupted => "interrupted".to_owned(),
            _ => failure.message,
        };
        warn(app, &format!("{address}: {reason}"));
    }
}

/// Returns the newest event of a run. If it cannot be read, no event is newer than the result, so nothing will be sent.
pub(crate) fn newest_event(dir: &RunDir, ledger: &Ledger) -> u64 {
    let name = dir.root().file_name().and_then(|name| name.to_str());
    let run = name.and_then(|name| name.parse::<RunId>().ok());
    let events = run.map(|run| ledger.events(Some(&run)));
    match events {
        Some(Ok(events)) => events.last().map_or(0, |event| event.seq),
        Some(Err(_)) | None => u64::MAX,
    }
}

fn send(app: &App, dir: &RunDir, known: u64, collector: Collector) -> Result<(), Failure> {
    let ledger = app.required_ledger()?;
    let Some(view) = RunView::read(dir, &ledger)? else {
        return Ok(());
    };
    let trace = RunTrace::new(&view, Content::Omitted);
    let spans = trace.closed_after(known);
    if spans.is_empty() {
        return Ok(());
    }
    let failure = |error: crucible_trace::DeliveryError| Failure::refused(error.to_string());
    let version = env!("CARGO_PKG_VERSION");
    let delivery = Delivery::start(collector, version, &trace.id, &spans).map_err(failure)?;
    app.block_on(async { delivery.finish().await.map_err(failure) })
}

fn warn(app: &App, reason: &str) {
    app.output
        .remark(&format!("warning: the trace was not sent: {reason}"));
}
