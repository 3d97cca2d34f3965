//! The documents of a run, parsed: what a page, a report or a trace shows of it.
//!
//! This is the one reader of a whole run directory. It only reads. A document that is missing is absent; one that
//! cannot be
//! parsed is named in [`RunDocuments::unreadable`], so that a planted file hides nothing else.

use crucible_attest::payload_of;
use crucible_ledger::{CallRow, EventRecord, Ledger};
use crucible_llm::Cost;
use crucible_model::{Digest, RunId, Timestamp};
use crucible_pack::ContextPack;
use crucible_verify::{HeldOutReport, VerifyReport};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::analysis::Analysis;
use crate::attempt::{self, AttemptOutcome};
use crate::contract::{Review, ReviewVerdict, RunRecord, Signature};
use crate::document;
use crate::error::RunError;
use crate::event_kind::{EventKind, full_gates_runs};
use crate::land::Landing;
use crate::layout::{self, RunDir, attempt_file, full_gates_files};
use crate::receipt::phase;
use crate::reservations::RecordedUsage;
use crate::role::chair::OmittedFiles;
use crate::status::{RunStatus, status_of};
use crate::timeline::attempt_of;

/// Everything that a run's directory and the ledger have about it.
#[derive(Debug, Clone)]
pub struct RunDocuments {
    /// Its state, budgets, artifacts and findings.
    pub status: RunStatus,
    /// Whether a process works on it: a description of that process.
    pub at_work: Option<String>,
    /// Its events, in the order of the chain.
    pub events: Vec<EventRecord>,
    /// Its model calls, as they were reserved and settled.
    pub calls: Vec<CallRow>,
    /// Its questions to models, as its receipt has them.
    pub exchanges: Vec<Exchange>,
    /// What the model saw.
    pub pack: Option<ContextPack>,
    /// Files that nobody requested, with the reasons.
    pub not_requested: Vec<UnrequestedFile>,
    /// What was not copied for the gates, with the reasons.
    pub not_copied: Vec<String>,
    /// The gates before any change.
    pub baseline: Vec<BaselineGate>,
    /// The plan, signed or drafted.
    pub plan: Option<String>,
    /// The reasons of the plan.
    pub reasons: Option<String>,
    /// The expected results.
    pub expected_results: Option<String>,
    /// The reviews of the plan.
    pub reviews: Vec<ReviewText>,
    /// The approval of the plan.
    pub signature: Option<Signature>,
    /// What was approved and permitted, by whom and when.
    pub approvals: Vec<ApprovalRecord>,
    /// Its attempts that have ended, in order.
    pub attempts: Vec<AttemptDocuments>,
    /// The report of the gates that ran before the landing, if any did.
    pub landing_report: Option<VerifyReport>,
    /// What held-out tests showed before the landing, if they ran.
    pub held_out: Option<HeldOutReport>,
    /// The commit.
    pub landing: Option<Landing>,
    /// The payloads of the signed statements about the commit. Their signatures are not checked here.
    pub statements: Vec<Vec<u8>>,
    /// Documents that exist and cannot be parsed, with the reasons.
    pub unreadable: Vec<String>,
    /// Rows of the run that the chain of the ledger does not confirm.
    pub row_faults: Vec<String>,
}

/// One question to a model or an agent, and its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// The number of the event that ended it.
    pub seq: u64,
    /// The role that asked.
    pub role: String,
    /// When it was asked; absent if no event records it.
    pub asked_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Timestamp,
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// The attempt that it belongs to, if it proposes a change.
    pub attempt: Option<u64>,
    /// Input tokens, if reported.
    pub tokens_in: Option<u64>,
    /// Output tokens, if reported.
    pub tokens_out: Option<u64>,
    /// The cost and its basis, if known.
    pub cost: Option<Cost>,
    /// The class of the error, if it failed.
    pub error: Option<String>,
}

/// A file that nobody requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnrequestedFile {
    /// Its path, possibly quoted.
    pub path: String,
    /// The reason.
    pub reason: String,
}

/// A gate before any change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaselineGate {
    /// Its id.
    pub id: String,
    /// Its command on one line; empty if no gate of this id is known.
    pub command: String,
    /// Whether it passed.
    pub is_passed: bool,
    /// How it ended.
    pub end: String,
    /// Why it does not count, if it does not.
    pub set_aside: Option<String>,
}

/// An approval or a permission that the events have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRecord {
    /// The number of its event.
    pub seq: u64,
    /// When it was given.
    pub at: Timestamp,
    /// Who gave it: a role, a name, or the fingerprint of a key.
    pub by: String,
    /// What was approved.
    pub what: &'static str,
}

/// A review of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewText {
    /// Its path in the run directory.
    pub path: &'static str,
    /// The verdict and the digest of what was reviewed; absent if the text is no review.
    pub verdict: Option<(ReviewVerdict, Digest)>,
    /// Its text.
    pub text: String,
}

/// The documents of one attempt.
#[derive(Debug, Clone)]
pub struct AttemptDocuments {
    /// How it ended.
    pub outcome: AttemptOutcome,
    /// The model's answer.
    pub answer: Option<String>,
    /// The proposed patch.
    pub patch: Option<Vec<u8>>,
    /// The report of the gates, if they ran.
    pub report: Option<VerifyReport>,
    /// The patch gate's review.
    pub review: Option<String>,
    /// Standard output and standard error of the gates; empty if they did not run.
    pub logs: Vec<GateLog>,
}

/// What the gates of an attempt printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateLog {
    /// The name of the file.
    pub name: &'static str,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Reads the documents of a run.
///
/// # Errors
///
/// Fails when the run's start record cannot be understood, or a file or the ledger cannot be read.
pub fn documents(dir: &RunDir, ledger: &Ledger) -> Result<RunDocuments, RunError> {
    let run = dir.record()?;
    let events = ledger.events(Some(&run.run_id))?;
    let booked = RecordedUsage::read(ledger, &run.run_id, &events)?;
    let calls = ledger.calls(&run.run_id)?;
    let exchanges = exchanges(&run, &events);
    let status = status_of(dir, run, &events, &booked)?;
    let mut unreadable = Vec::new();
    let not_requested: Option<OmittedFiles> =
        parse_document(dir, layout::LEFT_OUT, &mut unreadable)?;
    let analysis: Option<Analysis> = parse_document(dir, layout::ANALYSIS, &mut unreadable)?;
    let pack = match dir.read_if_there(layout::CONTEXT_PACK)? {
        Some(bytes) => keep(
            ContextPack::parse(&bytes),
            layout::CONTEXT_PACK,
            &mut unreadable,
        ),
        None => None,
    };
    let mut reviews = Vec::new();
    for path in layout::REVIEWS {
        if let Some(text) = text(dir, path)? {
            let verdict = Review::parse_verdict(&text).ok();
            reviews.push(ReviewText {
                path,
                verdict,
                text,
            });
        }
    }
    let mut attempts = Vec::new();
    for outcome in attempt::recorded_outcomes(dir, &events)? {
        let file = |name: &str| attempt_file(outcome.number, name);
        let mut logs = Vec::new();
        for name in [attempt::STDOUT, attempt::STDERR] {
            let bytes = dir.read_if_there(&file(name))?.unwrap_or_default();
            if !bytes.is_empty() {
                logs.push(GateLog { name, bytes });
            }
        }
        attempts.push(AttemptDocuments {
            answer: text(dir, &file(attempt::ANSWER))?,
            patch: dir.read_if_there(&file(attempt::PATCH))?,
            report: parse_json(dir, &file(attempt::REPORT), &mut unreadable)?,
            review: text(dir, &file(attempt::REVIEW))?,
            logs,
            outcome,
        });
    }
    let landing_report = match full_gates_runs(&events) {
        0 => None,
        number => {
            let [path, ..] = full_gates_files(number);
            parse_json(dir, &path, &mut unreadable)?
        }
    };
    let plan = match text(dir, layout::PLAN)? {
        Some(plan) => Some(plan),
        None => text(dir, layout::PLAN_DRAFT)?,
    };
    let statements = dir.read_if_there(layout::ATTESTATION)?.unwrap_or_default();
    let faults = booked
        .row_faults
        .iter()
        .map(|fault| format!("{}: {}", fault.subject, fault.problem));
    let booking_fault = booked.fault().filter(|_| booked.row_faults.is_empty());
    Ok(RunDocuments {
        at_work: dir.lock_holder()?,
        pack,
        not_requested: not_requested
            .unwrap_or_default()
            .files
            .into_iter()
            .map(|file| UnrequestedFile {
                path: file.path,
                reason: file.reason,
            })
            .collect(),
        baseline: analysis.as_ref().map(baseline).unwrap_or_default(),
        not_copied: analysis
            .map(|analysis| analysis.left_out)
            .unwrap_or_default(),
        plan,
        reasons: text(dir, layout::REASONS)?,
        expected_results: text(dir, layout::EXPECTED_RESULTS)?,
        reviews,
        approvals: events.iter().filter_map(approval).collect(),
        signature: parse_document(dir, layout::SIGNATURE, &mut unreadable)?,
        attempts,
        landing_report,
        held_out: parse_json(dir, layout::HELD_OUT, &mut unreadable)?,
        landing: parse_document(dir, layout::LANDING, &mut unreadable)?,
        statements: statements
            .split_inclusive(|byte| *byte == b'\n')
            .filter_map(payload_of)
            .collect(),
        row_faults: faults
            .chain(booking_fault.map(|fault| fault.to_string()))
            .collect(),
        unreadable,
        status,
        events,
        calls,
        exchanges,
    })
}

/// Parses the start record of a run from the bytes that the ledger has under [`crate::RECORD_KEY`]; `None` if they are
/// of another
/// version.
#[must_use]
pub fn parse_record(bytes: &[u8]) -> Option<RunRecord> {
    document::read(bytes).ok()
}

/// Returns whether a run of this id has a directory. Nothing is restored or removed.
#[must_use]
pub fn existing_run(runs_root: &std::path::Path, id: &RunId) -> Option<RunDir> {
    let dir = RunDir::new(runs_root, id);
    dir.has(layout::RUN).then_some(dir)
}

/// The questions to models, in order. A question is asked by the newest `MODEL_ASKED` before its end.
fn exchanges(record: &RunRecord, events: &[EventRecord]) -> Vec<Exchange> {
    let (mut asked_at, mut attempt) = (None, None);
    let mut exchanges = Vec::new();
    for event in events {
        if event.event == EventKind::ModelAsked.name() {
            (asked_at, attempt) = (Some(event.ts), attempt_of(event));
        }
        let Some(phase) = phase(record, event) else {
            continue;
        };
        exchanges.push(Exchange {
            seq: event.seq,
            role: phase.phase_id,
            asked_at: asked_at.take(),
            ended_at: event.ts,
            provider: phase.llm.provider.unwrap_or_default(),
            model: phase.llm.model_used.unwrap_or_default(),
            attempt: attempt_of(event).or(attempt.take()),
            tokens_in: phase.llm.tokens_input,
            tokens_out: phase.llm.tokens_output,
            cost: phase.llm.cost,
            error: phase.llm.error,
        });
    }
    exchanges
}

fn approval(event: &EventRecord) -> Option<ApprovalRecord> {
    let named = |pointer: &str| event.body.pointer(pointer).and_then(Value::as_str);
    let is = |kind: EventKind| event.event == kind.name();
    let (by, what) = match () {
        () if is(EventKind::PlanSigned) => (None, "the plan, after its reviews"),
        () if is(EventKind::PlanApproved) => (named("/approval/keyid"), "the plan, with a key"),
        () if is(EventKind::ScopeAllowed) => (named("/by"), "more than the plan allowed"),
        () if is(EventKind::BudgetRaised) => (None, "more calls"),
        () => return None,
    };
    Some(ApprovalRecord {
        seq: event.seq,
        at: event.ts,
        by: by.unwrap_or(&event.role).to_owned(),
        what,
    })
}

fn baseline(analysis: &Analysis) -> Vec<BaselineGate> {
    let command = |id: &str| {
        let gate = analysis.gates.iter().find(|gate| gate.id.as_str() == id);
        gate.map(|gate| gate.command_line()).unwrap_or_default()
    };
    let gate = |gate: &crate::analysis::GateResult| BaselineGate {
        command: command(&gate.id),
        id: gate.id.clone(),
        is_passed: gate.passed,
        end: gate.end.clone(),
        set_aside: gate.set_aside.clone(),
    };
    analysis.baseline.iter().map(gate).collect()
}

fn text(dir: &RunDir, path: &str) -> Result<Option<String>, RunError> {
    let bytes = dir.read_if_there(path)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

fn parse_document<T: document::Document>(
    dir: &RunDir,
    path: &str,
    unreadable: &mut Vec<String>,
) -> Result<Option<T>, RunError> {
    let bytes = dir.read_if_there(path)?;
    Ok(bytes.and_then(|bytes| keep(document::read(&bytes), path, unreadable)))
}

fn parse_json<T: DeserializeOwned>(
    dir: &RunDir,
    path: &str,
    unreadable: &mut Vec<String>,
) -> Result<Option<T>, RunError> {
    let bytes = dir.read_if_there(path)?;
    Ok(bytes.and_then(|bytes| keep(serde_json::from_slice(&bytes), path, unreadable)))
}

fn keep<T, E: std::fmt::Display>(
    parsed: Result<T, E>,
    path: &str,
    unreadable: &mut Vec<String>,
) -> Option<T> {
    parsed
        .map_err(|error| unreadable.push(format!("{path}: {error}")))
        .ok()
}
