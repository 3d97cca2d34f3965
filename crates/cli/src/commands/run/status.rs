//! `crucible run status`: where a run stands, and following it.

use std::time::Duration;

use clap::Args;
use crucible_ledger::{EventRecord, Ledger};
use crucible_model::{ExitStatus, Failure, RunId, Timestamp, one_line};
use crucible_run::{RunDir, RunState, status};
use serde::Serialize;
use tokio::time::sleep;

use crate::app::App;

/// How long to wait between two looks at the ledger.
const PAUSE: Duration = Duration::from_millis(200);

/// Show a run's state, artifacts, missing inputs and next step
///
/// With --watch, print each new event as a line until the run has ended or no process continues it.
#[derive(Args)]
pub(crate) struct Status {
    /// The run's id or a prefix of it [default: newest run of this repository]
    run: Option<String>,
    /// Follow the run; Ctrl-C stops only the following
    #[arg(long)]
    watch: bool,
}

/// One event, as `--watch --json` prints it: a JSON object a line.
#[derive(Serialize)]
struct EventLine<'a> {
    schema_version: &'static str,
    run_id: &'a RunId,
    seq: u64,
    ts: Timestamp,
    role: &'a str,
    event: &'a str,
    path: &'a str,
    hash: String,
}

impl Status {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let world = app.world_here()?;
        let (ledger, dir) = app.find_run(&world, self.run.as_deref())?;
        if self.watch {
            return app.block_on(follow(app, &dir, &ledger));
        }
        let status = status(&dir, &ledger)?;
        if app.output.is_json() {
            app.output.json(&status)?;
            return Ok(ExitStatus::Success);
        }
        for line in status.summary().into_iter().chain(status.detail_lines()) {
            app.output.line(&one_line(&line));
        }
        app.output.line("");
        for artifact in &status.artifacts {
            let digest = artifact
                .digest
                .map_or_else(|| "-".to_owned(), |digest| digest.short());
            app.output.line(&format!("{digest:<12}  {}", artifact.path));
        }
        for attempt in &status.attempts {
            app.output.line("");
            let end = serde_json::to_value(attempt.end)
                .ok()
                .and_then(|end| end.as_str().map(str::to_owned));
            app.output.line(&format!(
                "attempt {}: {}",
                attempt.number,
                end.unwrap_or_default().replace('_', " ")
            ));
            for finding in &attempt.findings {
                app.output.finding(finding);
            }
        }
        Ok(ExitStatus::Success)
    }
}

/// Prints each new event of a run, until the run has ended or nobody goes on with it.
async fn follow(app: &App, dir: &RunDir, ledger: &Ledger) -> Result<ExitStatus, Failure> {
    let begun = status(dir, ledger)?;
    let run = &begun.run.run_id;
    let mut seen = ledger
        .events(Some(run))?
        .last()
        .map_or(0, |event| event.seq);
    let mut head = ledger.head()?.seq;
    if !app.output.is_json() {
        app.output
            .line(&one_line(&format!("{run} is {}", begun.state.name())));
    }
    loop {
        // Whoever goes on with the run is asked after first: what it did before it ended is then there to be read.
        let at_work = dir.lock_holder()?;
        let now = ledger.head()?.seq;
        if now != head || at_work.is_none() {
            head = now;
            for event in ledger
                .events(Some(run))?
                .iter()
                .filter(|event| event.seq > seen)
            {
                show(app, event)?;
            }
            seen = seen.max(now);
        }
        if at_work.is_none() {
            return end(app, dir, ledger);
        }
        if app.output.is_lost() {
            return Ok(ExitStatus::Success);
        }
        sleep(PAUSE).await;
    }
}

fn show(app: &App, event: &EventRecord) -> Result<(), Failure> {
    let path = event.path.as_deref().unwrap_or_default();
    if !app.output.is_json() {
        let name = event.event.to_lowercase().replace('_', " ");
        app.output.line(&one_line(&format!(
            "{} {}: {name}  {path}",
            event.ts, event.role
        )));
        return Ok(());
    }
    let seen = EventLine {
        schema_version: "crucible-run-event-v1",
        run_id: &event.run,
        seq: event.seq,
        ts: event.ts,
        role: &event.role,
        event: &event.event,
        path,
        hash: event.hash.to_string(),
    };
    let text = serde_json::to_string(&seen)
        .map_err(|error| Failure::refused(format!("the event has no JSON form: {error}")))?;
    app.output.json_text(&text);
    Ok(())
}

/// Tells why the following ends, beside the events.
fn end(app: &App, dir: &RunDir, ledger: &Ledger) -> Result<ExitStatus, Failure> {
    let status = status(dir, ledger)?;
    let message = if status.state.is_end() {
        format!(
            "{} is {}. {}",
            status.run.run_id,
            status.state.name(),
            status.next
        )
    } else {
        let (run, state) = (&status.run.run_id, status.state.name());
        format!(
            "{run} is {state}, and no process continues it. {}",
            status.next
        )
    };
    if app.output.is_json() {
        app.output.remark(&one_line(&message));
    } else {
        app.output.line(&one_line(&message));
    }
    Ok(match status.state {
        RunState::Verified | RunState::Landed => ExitStatus::Success,
        RunState::New
        | RunState::Analysed
        | RunState::Context
        | RunState::Planned
        | RunState::Reviewed
        | RunState::Signed
        | RunState::Patched
        | RunState::Blocked
        | RunState::Failed
        | RunState::Declined => ExitStatus::Refused,
    })
}
