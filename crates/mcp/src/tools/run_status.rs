//! `run_status`: where a run stands, and following it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use crucible_ledger::EventRecord;
use crucible_model::{Failure, RunId, Timestamp};
use crucible_run::{BudgetStatus, PendingRequest, RunStatus as Stand, status};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::answer::Answer;
use crate::arguments;
use crate::reach::ReachedRun;
use crate::session::Session;
use crate::tool::{Effect, ToolKind, schema_of};
use crate::work;

/// The longest wait, in seconds. Clients give up after a minute.
const MAX_WAIT: u32 = 30;
/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(200);
/// Events of one answer.
const MAX_EVENTS: usize = 100;

/// The tool.
pub(crate) struct RunStatus;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The run, by its id or a prefix of it.
    run: String,
    /// Seconds to wait for something new, at most 30. The answer comes earlier if the run ends or waits for you. Default: 0.
    #[serde(default)]
    #[schemars(range(max = 30))]
    wait_s: u32,
    /// The `seq` of the last event that you know; the answer has those after it. Default: 0.
    #[serde(default)]
    after: u64,
}

/// The answer.
#[derive(Serialize)]
struct StatusDocument {
    schema_version: &'static str,
    run_id: RunId,
    state: &'static str,
    /// Whether a process advances the run.
    is_at_work: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    owed: Option<PendingRequest>,
    attempts: usize,
    budgets: BudgetStatus,
    next: String,
    events: Vec<StatusEvent>,
}

#[derive(Serialize)]
struct StatusEvent {
    seq: u64,
    ts: Timestamp,
    role: String,
    event: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
}

#[async_trait(?Send)]
impl ToolKind for RunStatus {
    fn name(&self) -> &'static str {
        "run_status"
    }

    fn title(&self) -> &'static str {
        "Follow a run"
    }

    fn description(&self) -> &'static str {
        "Tell the state of a run, whether a process works on it, what it waits for, and its events. With `wait_s`, wait for \
         something new first. If the run owes a change of yours, the answer has its prompt."
    }

    fn effect(&self) -> Effect {
        Effect::Reads
    }

    fn schema(&self) -> Arc<JsonObject> {
        schema_of::<Arguments>()
    }

    async fn call(&self, session: &Session<'_>, arguments: JsonObject) -> Result<Answer, Failure> {
        let arguments: Arguments = arguments::read(self.name(), arguments)?;
        let (_, _, world) = session.runs_here()?;
        let run = session.run(&world, &arguments.run)?;
        let id = status(&run.dir, &run.ledger)?.run.run_id;
        let mut looks = u64::from(arguments.wait_s.min(MAX_WAIT)) * 1000 / 200;
        loop {
            // Asked first: what the process did before it ended is then there to be read.
            let is_at_work = work::is_at_work(session, &id, &run.dir)?;
            let events = run
                .ledger
                .events(Some(&id))
                .map_err(crucible_run::RunError::from)?;
            let has_news = events.last().is_some_and(|last| last.seq > arguments.after);
            if !is_at_work || has_news || looks == 0 {
                return answer(session, &run, is_at_work, &events, arguments.after);
            }
            looks -= 1;
            sleep(PAUSE).await;
        }
    }
}

fn answer(
    session: &Session<'_>,
    run: &ReachedRun,
    is_at_work: bool,
    events: &[EventRecord],
    after: u64,
) -> Result<Answer, Failure> {
    let run_status = status(&run.dir, &run.ledger)?;
    let is_stuck = !is_at_work && run_status.owed.is_none() && !run_status.state.is_end();
    let new = events.iter().filter(|event| event.seq > after);
    let shown = new.take(MAX_EVENTS).map(|event| StatusEvent {
        seq: event.seq,
        ts: event.ts,
        role: event.role.clone(),
        event: event.event.clone(),
        path: event.path.clone(),
    });
    let events = shown.collect();
    let Stand {
        run: record,
        state,
        owed,
        attempts,
        budgets,
        next,
        ..
    } = run_status;
    let prompt = owed.as_ref().filter(|owed| !is_at_work && owed.is_change());
    let prompt = prompt.map(|owed| run.dir.read(&owed.prompt)).transpose()?;
    let document = StatusDocument {
        schema_version: "crucible-mcp-status-v1",
        run_id: record.run_id.clone(),
        state: state.name(),
        is_at_work,
        owed,
        attempts: attempts.len(),
        budgets,
        next,
        events,
    };
    let sentence = match (is_at_work, is_stuck, &prompt) {
        (true, _, _) => "The run is at work.\n",
        (false, true, _) => "The run has stopped before its end.\n",
        (false, false, Some(_)) => "The run waits for your change: call submit_proposal.\n",
        (false, false, None) => "The run is not at work.\n",
    };
    let answer = Answer::document(sentence, "run", &document)?;
    if let Some(prompt) = prompt {
        let text = String::from_utf8_lossy(&prompt).into_owned();
        let sentence = "The prompt of the change. Its limits hold; answer with submit_proposal, not with a file.\n";
        return Ok(answer.and_text(sentence, "prompt", &text));
    }
    let words = if is_stuck {
        work::last_words(session, &record.run_id)?
    } else {
        String::new()
    };
    Ok(if words.is_empty() {
        answer
    } else {
        answer.and_text(
            "What its last process printed at its end.\n",
            "messages",
            &words,
        )
    })
}
