//! The recording of a run's model calls: its parameters, and its check against the ledger.
//!
//! The event of each answer has the digest of its line in the recording, with request and answer. A line that
//! was edited, removed, moved or inserted is therefore detected. Two kinds of lines may lack an event: failed
//! calls, and one final answer whose event was lost in a crash.

use std::collections::BTreeMap;

use crucible_ledger::{EventRecord, Ledger};
use crucible_llm::{CallError, Cassette, CassetteError, TornTail};
use crucible_model::{Code, Digest, Finding, RunId, Verdict};
use serde_json::Value;

use crate::contract::RunSettings;
use crate::error::RunError;
use crate::event_kind::EventKind;
use crate::layout::{self, RunDir};

/// The field of a `MODEL_ANSWERED` event that holds the digest of the answer's line.
pub(crate) const LINE: &str = "recorded_line";

/// The parameter that distinguishes attempts; never part of a run's settings.
pub(crate) const SEED: &str = "seed";

const EDITED: Code = Code::new("ledger-recording-edited");
const UNKNOWN: Code = Code::new("ledger-recording-unknown-answer");

/// What is known of a run when its model is opened, under the run's lock.
#[derive(Debug)]
pub struct ClientContext<'r> {
    /// How the run works.
    pub settings: &'r RunSettings,
    /// The run.
    pub run: &'r RunId,
    /// How many answers it used up so far ([`crate::answers_used`]).
    pub answered: u64,
    /// Calls it may make by now ([`crate::raise_budget`]).
    pub calls: u64,
}

/// Where the answers of a new run come from.
#[derive(Debug, Clone, Default)]
pub enum AnswerSource {
    /// Its provider, by itself.
    #[default]
    Provider,
    /// This recording, of which the run keeps a copy ([`crate::SOURCE`]).
    Recording(std::sync::Arc<[u8]>),
}

/// Returns the parameters with which a run repeats a recorded first call.
#[must_use]
pub(crate) fn parameters_of_recording(
    first_call: &BTreeMap<String, Value>,
) -> BTreeMap<String, Value> {
    let mut parameters = first_call.clone();
    parameters.remove(SEED);
    parameters
}

/// Checks a run's recording against the ledger.
///
/// # Errors
///
/// Fails when ledger or recording cannot be read; a recording that differs is a verdict.
pub(crate) fn check_recording(
    dir: &RunDir,
    run: &RunId,
    ledger: &Ledger,
) -> Result<Verdict, RunError> {
    let known = known_lines(&ledger.events(Some(run))?);
    let bytes = dir.read_if_there(layout::CASSETTE)?;
    if bytes.is_none() && known.is_empty() {
        return Ok(Verdict::default());
    }
    match Cassette::parse(&bytes.unwrap_or_default()) {
        Ok(cassette) => Ok(compare(&cassette, &known, run.as_str())),
        Err(error @ (CassetteError::NotACassette | CassetteError::BadLine { .. })) => {
            let hint = format!("{error}; restore the recording from a copy");
            Ok(Verdict::new(vec![Finding::error(
                EDITED,
                run.as_str(),
                hint,
            )]))
        }
        Err(error) => Err(CallError::from(error).into()),
    }
}

/// The digests of the recorded answers, in the order in which they were used, each with its event's number.
fn known_lines(events: &[EventRecord]) -> Vec<(u64, Digest)> {
    let answered = events
        .iter()
        .filter(|event| event.event == EventKind::ModelAnswered.name());
    answered
        .filter_map(|event| Some((event.seq, event.body.get(LINE)?.as_str()?.parse().ok()?)))
        .collect()
}

/// Compares the lines of a recording with those that the events name. Pure.
fn compare(cassette: &Cassette, known: &[(u64, Digest)], run: &str) -> Verdict {
    let answers = cassette.calls.iter().zip(&cassette.lines);
    let lines: Vec<Digest> = answers
        .filter(|(call, _)| call.outcome.is_answer())
        .map(|(_, line)| *line)
        .collect();
    let mut verdict = Verdict::default();
    if cassette.tail == TornTail::LeftOut {
        let hint = "the last line of the recording is incomplete and does not count";
        verdict.push(Finding::warning(EDITED, run, hint));
    }
    let (mut next, mut missing) = (0, 0);
    for (seq, line) in known {
        if let Some(ahead) = lines.iter().skip(next).position(|present| present == line) {
            next += ahead + 1;
        } else {
            missing += 1;
            let hint = format!(
                "the recorded call of event {seq} was edited, moved or removed; restore the recording from a copy"
            );
            verdict.push(Finding::error(EDITED, run, hint));
        }
    }
    // One answer whose event was lost in a crash: the run continues with it.
    let unused = usize::from(lines.len() > next);
    // An edited line counts as a missing one.
    let unknown = lines
        .len()
        .saturating_sub(known.len() - missing)
        .saturating_sub(missing + unused);
    if unknown > 0 {
        let hint = format!(
            "the recording has answers that belong to no event: {unknown}; restore the recording from a copy"
        );
        verdict.push(Finding::error(UNKNOWN, run, hint));
    }
    verdict
}
