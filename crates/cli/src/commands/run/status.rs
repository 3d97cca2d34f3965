//! `crucible run status`: where a run stands, and following it.

use std::time::Duration;

use clap::Args;
use crucible_ledger::{EventRecord, Ledger};
use crucible_model::{ExitStatus, RunId, Timestamp, one_line};
use crucible_run::{RunDir, RunState, RunStatus, status};
use serde::Serialize;
use tokio::time::sleep;

use super::summary;
use crate::app::App;
use crate::error::CommandError;

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
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let sandbox = app.runtime().sandbox;
        let config = app.config(app.env.working_directory(), &[])?;
        let world = app.world(&sandbox, &config)?;
        let (ledger, dir) = app.find_run(&world, self.run.as_deref())?;
        if self.watch {
            return app.block_on(follow(app, &dir, &ledger));
        }
        let status = status(&dir, &ledger)?;
        if app.output.is_json() {
            app.output.json(&status)?;
            return Ok(ExitStatus::Success);
        }
        for line in summary(&status).into_iter().chain(accounts(&status)) {
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

/// What is missing, who owes what, and the budgets.
fn accounts(status: &RunStatus) -> Vec<String> {
    let mut lines = Vec::new();
    if !status.missing.is_empty() {
        lines.push(format!("missing   {}", status.missing.join(", ")));
    }
    if let Some(owed) = &status.owed {
        lines.push(format!(
            "owed      {} by the {}: {} (asked in {})",
            owed.target, owed.role, owed.action, owed.prompt
        ));
    }
    let budgets = &status.budgets;
    let left =
        |used: u64, most: u64| format!("{used} of {most} used, {} left", most.saturating_sub(used));
    lines.push(format!(
        "calls     {}",
        left(budgets.calls, budgets.max_calls)
    ));
    lines.push(format!(
        "tries     {}",
        left(budgets.iterations, budgets.max_iterations)
    ));
    let settings = &status.run.settings;
    if settings.max_file_requests > 0 {
        lines.push(format!(
            "requests  {}",
            left(budgets.file_requests, budgets.max_file_requests)
        ));
    }
    let from = match settings.context_window {
        Some(tokens) => format!(", for a context window of {tokens} tokens"),
        None => String::new(),
    };
    let (files, bytes) = (settings.max_files, settings.max_total_bytes);
    lines.push(format!(
        "context   at most {files} files, {bytes} bytes{from}"
    ));
    if budgets.max_outbox_prompts > 0 {
        lines.push(format!(
            "prompts   {}",
            left(budgets.outbox_prompts, budgets.max_outbox_prompts)
        ));
    }
    if budgets.tokens > 0 {
        lines.push(format!("tokens    {}", budgets.tokens));
    }
    lines
}

/// Prints each new event of a run, until the run has ended or nobody goes on with it.
async fn follow(app: &App, dir: &RunDir, ledger: &Ledger) -> Result<ExitStatus, CommandError> {
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
        let at_work = dir.at_work()?;
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

fn show(app: &App, event: &EventRecord) -> Result<(), CommandError> {
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
    let text = serde_json::to_string(&seen).map_err(|error| {
        CommandError::new(
            ExitStatus::Refused,
            format!("the event has no JSON form: {error}"),
        )
    })?;
    app.output.json_text(&text);
    Ok(())
}

/// Tells why the following ends, beside the events.
fn end(app: &App, dir: &RunDir, ledger: &Ledger) -> Result<ExitStatus, CommandError> {
    let status = status(dir, ledger)?;
    let said = if status.state.is_end() {
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
        app.output.remark(&one_line(&said));
    } else {
        app.output.line(&one_line(&said));
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
        | RunState::Failed => ExitStatus::Refused,
    })
}
