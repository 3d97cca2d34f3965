//! The status of a run, for people and programs: its state, the artifacts with their digests, and the next
//! step.

use crucible_ledger::{EventRecord, Ledger};
use crucible_model::{ClockSource, Digest, Finding, Level, SourcePattern};
use crucible_verify::VerifyReport;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::allow::{Permissions, permission_of};
use crate::attempt::{self, AttemptOutcome};
use crate::budget::allowed;
use crate::contract::{Plan, RunRecord};
use crate::error::RunError;
use crate::event_kind::EventKind;
use crate::journal::{self, is_pinned};
use crate::layout::{self, RunDir, attempt_file};
use crate::progress::{PendingRequest, pending_request, progress};
use crate::recorded::state_of_events;
use crate::reservations::RecordedUsage;
use crate::rounds::{files_requested, rounds_used};
use crate::shown::{held_out_line, report_lines};
use crate::state::RunState;

/// The artifacts of a status, in order of creation.
pub(crate) const LISTED: [&str; 21] = [
    layout::GUARDRAILS,
    layout::DISPATCH,
    layout::ANALYSIS,
    layout::FIND_RESULT,
    layout::FIND_WEB,
    layout::LEFT_OUT,
    layout::FILE_REQUEST,
    layout::CONTEXT_PACK,
    layout::PLAN_DRAFT,
    layout::REASONS,
    layout::EXPECTED_RESULTS,
    layout::REVIEW_CONTRACT,
    layout::REVIEW_COST,
    layout::SECOND_REVIEW_CONTRACT,
    layout::SECOND_REVIEW_COST,
    layout::PLAN,
    layout::SIGNATURE,
    layout::PATCH,
    layout::REVIEW_PATCH,
    layout::VERIFY_REPORT,
    layout::LANDING,
];

/// The artifacts that every run has in the end.
const ALWAYS: [&str; 14] = [
    layout::GUARDRAILS,
    layout::DISPATCH,
    layout::ANALYSIS,
    layout::FILE_REQUEST,
    layout::CONTEXT_PACK,
    layout::PLAN_DRAFT,
    layout::REASONS,
    layout::EXPECTED_RESULTS,
    layout::REVIEW_CONTRACT,
    layout::REVIEW_COST,
    layout::PLAN,
    layout::SIGNATURE,
    layout::PATCH,
    layout::VERIFY_REPORT,
];

/// Returns the missing artifacts, out of those that every run has in the end. A file at the path of an owed
/// answer was refused, and so was its artifact.
pub(crate) fn missing_artifacts(dir: &RunDir, owed: Option<&str>) -> Vec<&'static str> {
    let refused = |path: &str| {
        owed == Some(path) || (owed == Some(layout::PATCH) && path == layout::VERIFY_REPORT)
    };
    ALWAYS
        .into_iter()
        .filter(|path| refused(path) || !dir.has(path))
        .collect()
}

/// How much of a run's budgets is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetStatus {
    /// Calls made.
    pub calls: u64,
    /// Calls allowed.
    pub max_calls: u64,
    /// Tokens of questions and answers together, as far as reported.
    pub tokens: u64,
    /// The cost in millionths of a US dollar, as far as reported.
    pub micro_dollars: u64,
    /// Attempts that have ended.
    pub iterations: u64,
    /// Attempts allowed.
    pub max_iterations: u64,
    /// File requests made.
    pub file_requests: u64,
    /// File requests allowed.
    pub max_file_requests: u64,
    /// Prompts written for a person.
    pub outbox_prompts: u64,
    /// Prompts for a person allowed.
    pub max_outbox_prompts: u64,
}

/// One artifact of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArtifactStatus {
    /// Its path in the run directory.
    pub path: &'static str,
    /// Its digest; absent while it is not there.
    pub digest: Option<Digest>,
}

/// Where a run stands.
#[derive(Debug, Clone, Serialize)]
pub struct RunStatus {
    /// `crucible-run-status-v1`.
    pub schema_version: &'static str,
    /// What the run was started with.
    pub run: RunRecord,
    /// Its directory.
    pub directory: std::path::PathBuf,
    /// Its state.
    pub state: RunState,
    /// Its artifacts.
    pub artifacts: Vec<ArtifactStatus>,
    /// Missing artifacts, out of those that every run has in the end.
    pub missing: Vec<&'static str>,
    /// What the run waits for, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owed: Option<PendingRequest>,
    /// Directories whose sources the plan allows to change, in addition to its listed files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scope_sources: Vec<SourcePattern>,
    /// How much of its budgets is used.
    pub budgets: BudgetStatus,
    /// Its attempts so far.
    pub attempts: Vec<AttemptOutcome>,
    /// What the verification has shown, in words; absent unless the run is verified or landed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<String>,
    /// Why the last attempt of a failed run was refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Finding>,
    /// The tests that fail with the last change that ran through the gates; the first 50 of each gate.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failing_tests: Vec<String>,
    /// The failure bundle of a failed run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle: Option<std::path::PathBuf>,
    /// Why it failed, if it did.
    pub failure: Option<Finding>,
    /// Files of the run that were changed after they had been recorded. Nothing lands while there is one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edited: Vec<String>,
    /// What to do next, one sentence.
    pub next: String,
}

/// Reads the state of a run. The end of an attempt, a verification, a landing or a failure counts only if the
/// ledger has it, never from a file alone.
///
/// # Errors
///
/// Fails when a file of the run cannot be read or understood, or the ledger cannot be read.
pub fn status(dir: &RunDir, ledger: &Ledger) -> Result<RunStatus, RunError> {
    let run = dir.record()?;
    let events = ledger.events(Some(&run.run_id))?;
    let booked = RecordedUsage::read(ledger, &run.run_id, &events)?;
    status_of(dir, run, &events, &booked)
}

/// Returns the state of a run with these events.
pub(crate) fn status_of(
    dir: &RunDir,
    run: RunRecord,
    events: &[EventRecord],
    booked: &RecordedUsage,
) -> Result<RunStatus, RunError> {
    let mut state = progress(dir, events)?.state();
    let mut artifacts = Vec::new();
    for path in LISTED {
        artifacts.push(ArtifactStatus {
            path,
            digest: dir
                .read_if_there(path)?
                .map(|bytes| Digest::compute(&bytes)),
        });
    }
    let mut edited = journal::edited(dir, events)?;
    // Beside an edited original, its copy proves nothing.
    let recorded_state = state_of_events(events);
    let ended = matches!(
        recorded_state,
        Some(RunState::Verified | RunState::Landed | RunState::Failed | RunState::Declined)
    );
    if ended && edited.is_empty() {
        edited.extend(
            attempt::edited_copies(dir, events)?
                .into_iter()
                .map(str::to_owned),
        );
    }
    // The list of runs has the state of the newest event. A file that was edited, or that no event records, moves nothing.
    if let Some(listed) = booked.state {
        state = listed;
    } else if let Some(recorded_state) = recorded_state.filter(|_| ended && !edited.is_empty()) {
        state = recorded_state;
    }
    let failure = match state {
        RunState::Failed | RunState::Declined
            if !edited.iter().any(|path| path == layout::FAILURE) =>
        {
            Some(dir.read_json(layout::FAILURE)?)
        }
        _ => None,
    };
    let owed = if state == RunState::Blocked {
        pending_request(events)
    } else {
        None
    };
    let next = match edited.first() {
        Some(first) => journal::restore_hint(dir, events, first),
        _ if let Some(fault) = booked.fault().filter(|_| state != RunState::Landed) => {
            fault.to_string()
        }
        _ if state == RunState::Verified
            && (run.clock == ClockSource::Pinned || events.iter().any(is_pinned)) =>
        {
            RunError::PinnedClock.to_string()
        }
        _ if !matches!(
            state,
            RunState::Landed | RunState::Failed | RunState::Declined
        ) && !run.repo.is_dir() =>
        {
            RunError::RepositoryElsewhere {
                repo: run.repo.clone(),
            }
            .to_string()
        }
        _ => next(&run, state, owed.as_ref(), refused_at_landing(events)),
    };
    let attempts = attempt::recorded_outcomes(dir, events)?;
    let next = match permission_of(&run.run_id, &attempts)
        .filter(|_| state == RunState::Failed && edited.is_empty())
    {
        Some(command) => {
            format!(
                "Allow what the last answer was refused for with `{command}`, or start a new run."
            )
        }
        None => next,
    };
    let laid = events
        .iter()
        .filter(|event| event.event == EventKind::OutboxPrompted.name());
    let of_plan = attempts
        .get(Permissions::from_events(events).attempts..)
        .unwrap_or_default();
    let budgets = BudgetStatus {
        calls: booked.usage.calls,
        max_calls: allowed(&run, events),
        tokens: booked.usage.tokens,
        micro_dollars: booked.usage.cost.0,
        iterations: rounds_used(of_plan, &run.settings),
        max_iterations: run.settings.max_iterations,
        file_requests: files_requested(&attempts),
        max_file_requests: run.settings.max_file_requests,
        outbox_prompts: laid.count() as u64,
        max_outbox_prompts: run.settings.dispatch().budgets.max_outbox_prompts,
    };
    let plan = dir.read_if_there(layout::PLAN)?;
    let plan = plan.and_then(|bytes| Plan::parse(std::str::from_utf8(&bytes).ok()?).ok());
    let is_shown = matches!(state, RunState::Verified | RunState::Landed)
        && !edited.iter().any(|path| path == layout::VERIFY_REPORT);
    let mut lines = if is_shown && dir.has(layout::VERIFY_REPORT) {
        report_lines(&dir.read_json(layout::VERIFY_REPORT)?)
    } else {
        Vec::new()
    };
    let is_refused = matches!(state, RunState::Failed);
    let last = attempts.last().filter(|_| is_refused);
    let refused = last.map(errors).unwrap_or_default();
    let is_whole = edited.is_empty() && (is_refused || is_shown);
    let tried = attempts
        .iter()
        .rev()
        .find(|outcome| outcome.end.has_run_gates());
    let failing_tests = match tried.filter(|_| is_whole) {
        Some(tried) => failing_tests(dir, tried)?,
        None => Vec::new(),
    };
    let bundle = (is_refused && dir.has(layout::BUNDLE)).then(|| dir.path(layout::BUNDLE));
    if is_shown && dir.has(layout::HELD_OUT) {
        lines.push(held_out_line(&dir.read_json(layout::HELD_OUT)?));
    }
    Ok(RunStatus {
        refused,
        failing_tests,
        bundle,
        shown: lines,
        scope_sources: plan.map(|plan| plan.scope_sources).unwrap_or_default(),
        missing: missing_artifacts(dir, owed.as_ref().map(|owed| owed.target.as_str())),
        owed,
        budgets,
        schema_version: "crucible-run-status-v1",
        directory: dir.root().to_owned(),
        state,
        artifacts,
        attempts,
        failure,
        edited,
        next,
        run,
    })
}

/// The errors of an attempt.
fn errors(outcome: &AttemptOutcome) -> Vec<Finding> {
    let errors = outcome.findings.iter();
    errors
        .filter(|finding| finding.level == Level::Error)
        .cloned()
        .collect()
}

/// The failing tests that the report of an attempt lists.
fn failing_tests(dir: &RunDir, tried: &AttemptOutcome) -> Result<Vec<String>, RunError> {
    let path = attempt_file(tried.number, attempt::REPORT);
    if !dir.has(&path) {
        return Ok(Vec::new());
    }
    let report: VerifyReport = dir.read_json(&path)?;
    let lists = report
        .tests
        .iter()
        .flat_map(|gate| [&gate.broken, &gate.new_failing, &gate.still_failing]);
    Ok(lists.flat_map(|list| list.names.iter().cloned()).collect())
}

/// Returns how many answers of a run are used up: their attempt has ended, or they became an artifact. A
/// later recorded answer is used when the run continues, instead of another call.
///
/// # Errors
///
/// Fails when the events cannot be read.
pub fn answers_used(dir: &RunDir) -> Result<u64, RunError> {
    let events = dir.read_if_there(layout::EVENTS)?.unwrap_or_default();
    let uses_one_up = |kind| {
        matches!(
            kind,
            EventKind::PatchRejected
                | EventKind::MoreFilesRequested
                | EventKind::AttemptEnded
                | EventKind::AnswerTaken
        )
    };
    Ok(journal::read_lines(&events)
        .filter(|line| line.kind().is_some_and(uses_one_up))
        .count() as u64)
}

/// Returns the report of the gates that refused the newest landing, if they did.
fn refused_at_landing(events: &[EventRecord]) -> Option<&str> {
    let last = events
        .iter()
        .rfind(|event| event.event == EventKind::FullGatesRun.name())?;
    let failed = last.body.get("result").and_then(Value::as_str) != Some("PASS");
    last.path.as_deref().filter(|_| failed)
}

fn next(
    run: &RunRecord,
    state: RunState,
    owed: Option<&PendingRequest>,
    refused_at_landing: Option<&str>,
) -> String {
    let id = &run.run_id;
    if let Some(PendingRequest { prompt, target, .. }) = owed {
        return format!(
            "Answer {prompt}, write the answer to {target}, and continue with `crucible run advance {id}`."
        );
    }
    match state {
        RunState::New
        | RunState::Analysed
        | RunState::Context
        | RunState::Planned
        | RunState::Reviewed
        | RunState::Signed
        | RunState::Patched => format!("Continue with `crucible run advance {id}`."),
        RunState::Verified => match refused_at_landing {
            Some(report) => format!(
                "Landing failed because its gates refused the change, see {report}. Fix the cause outside the change and run `crucible run land {id}` again, or start a new run."
            ),
            None => format!("Commit the change with `crucible run land {id}`."),
        },
        RunState::Landed => "Nothing is left to do.".to_owned(),
        RunState::Blocked => {
            "A reviewer blocked the plan. Read reviews/, fix the cause, and start a new run."
                .to_owned()
        }
        RunState::Declined => {
            "Nothing landed. Change the goal or what it conflicts with, and start a new run."
                .to_owned()
        }
        RunState::Failed => {
            format!("Inspect the run with `crucible run bundle {id}`, then start a new run.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_answers_are_counted_by_event_kind() {
        let temp_dir = tempfile::tempdir().unwrap();
        let dir = RunDir::from_path(temp_dir.path().to_owned());
        assert_eq!(answers_used(&dir).unwrap(), 0);
        let line = |event: &str, path: &str| {
            serde_json::json!({
                "event": event, "hash": Digest::compute(b"x"), "path": path, "role": "r", "seq": 1,
                "ts": "2026-01-31T09:30:00Z",
            })
            .to_string()
        };
        let ended = line("ATTEMPT_ENDED", "");
        let lines = [
            line("MODEL_ASKED", "cassette.jsonl"),
            ended
                .replace(':', " : ")
                .replace("09 : 30 : 00", "09:30:00")
                .replace("sha256 : ", "sha256:"),
            line("PATCH_REJECTED", ""),
            line("MORE_FILES_REQUESTED", ""),
            ended.clone(),
            r#"{"event":"NOTED","about":{"event":"ATTEMPT_ENDED"}}"#.to_owned(),
            line("NOTED", r#""event":"ATTEMPT_ENDED""#),
            ended[..ended.len() - 9].to_owned(),
        ];
        dir.write(layout::EVENTS, lines.join("\n").as_bytes())
            .unwrap();
        assert_eq!(answers_used(&dir).unwrap(), 4);
    }
}
