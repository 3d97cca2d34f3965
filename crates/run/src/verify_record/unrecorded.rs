//! The files of a run directory that no event of the run accounts for: planted, left behind, or somebody's own.
//!
//! An event accounts for a file when it names it (with its digest, as a prompt, or as the place of an answer), or when the
//! file is made from what events name: copies of an attempt's files, the evidence that was laid for somebody, what is derived. What
//! a step that was cut off wrote is made again when the run goes on, so in a run that has not ended it is nothing to worry about.
//!
//! What always holds: no link is followed, and no more than a fixed number of entries is listed.

use std::collections::BTreeSet;
use std::path::Path;

use crucible_ledger::EventRecord;
use serde_json::Value;

use crate::attempt;
use crate::dispatch::evidence;
use crate::dispatch::outbox::TARGET;
use crate::event_kind::{AttemptStep, EventKind, asked_key, attempt_key, attempt_step};
use crate::journal::recorded_files;
use crate::layout::{self, RunDir, attempt_file};

/// The most entries of a run directory that are looked at.
const MOST: usize = 10_000;

/// How deep directories are entered.
const DEEPEST: usize = 8;

/// The files that are made when the run begins and recorded a little later, and those that are derived or grow.
const ALWAYS: [&str; 9] = [
    layout::RUN,
    layout::SOURCE,
    layout::GUARDRAILS,
    layout::DISPATCH,
    layout::EVENTS,
    layout::TRACE,
    layout::RECEIPT,
    layout::CASSETTE,
    layout::LOCK,
];

/// The files of an attempt.
pub(super) const OF_ATTEMPT: [&str; 7] = [
    attempt::ANSWER,
    attempt::PATCH,
    attempt::REVIEW,
    attempt::OUTCOME,
    attempt::STDOUT,
    attempt::STDERR,
    attempt::REPORT,
];

/// The files of a run directory that no event of these accounts for, in order. Where there is no event at all, none is told.
#[must_use]
pub fn unrecorded(dir: &RunDir, events: &[EventRecord]) -> BTreeSet<String> {
    if events.is_empty() {
        return BTreeSet::new();
    }
    let known = accounted_for(events);
    let mut present = Vec::new();
    list(dir.root(), "", 0, &mut present);
    present.into_iter().filter(|path| !known.contains(path)).collect()
}

/// Whether something at this path of a run directory is taken for an artifact by whoever reads the run.
pub(super) fn looks_like_an_artifact(path: &str) -> bool {
    let place = path.split_once('/').map(|(place, _)| place);
    let name = path.rsplit('/').next().unwrap_or(path);
    matches!(place, Some("artifacts" | "reviews" | "attempts" | "logs")) && !name.starts_with('.')
}

/// The paths that events account for.
fn accounted_for(events: &[EventRecord]) -> BTreeSet<String> {
    let mut known: BTreeSet<String> = ALWAYS.map(str::to_owned).into();
    known.extend(recorded_files(events).into_keys().map(str::to_owned));
    let has = |key: &str| events.iter().any(|event| event.key.as_deref() == Some(key));
    for event in events {
        let kind = EventKind::of(&event.event);
        if matches!(kind, Some(EventKind::OutboxPrompted)) {
            known.extend(event.path.clone());
        }
        if matches!(kind, Some(EventKind::OutboxPrompted | EventKind::ModelAnswered)) {
            known.extend(event.body.get(TARGET).and_then(Value::as_str).map(str::to_owned));
        }
        if matches!(kind, Some(EventKind::OutboxPrompted | EventKind::ModelAsked)) {
            known.extend(evidence::names().map(|name| format!("outbox/{name}")));
        }
    }
    for number in 1.. {
        let (step, ended) = (attempt_step(number), has(&attempt_key(number, AttemptStep::Ended)));
        if !ended && !has(&asked_key(&step)) {
            break;
        }
        if !ended {
            // It goes on.
            known.extend(OF_ATTEMPT.map(|name| attempt_file(number, name)));
        }
        known.insert(attempt_file(number, attempt::REVIEW));
        known.insert(layout::REVIEW_PATCH.to_owned());
        for (copy, name) in COPIES {
            if known.contains(&attempt_file(number, name)) {
                known.insert(copy.to_owned());
            }
        }
    }
    known
}

/// What is kept a second time outside of `attempts/`, beside the review.
pub(super) const COPIES: [(&str, &str); 4] = [
    (layout::PATCH, attempt::PATCH),
    (layout::VERIFY_REPORT, attempt::REPORT),
    (layout::STDOUT_LOG, attempt::STDOUT),
    (layout::STDERR_LOG, attempt::STDERR),
];

fn list(directory: &Path, name: &str, depth: usize, present: &mut Vec<String>) {
    // A directory that cannot be read has no files that anybody reads.
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        if present.len() >= MOST {
            return;
        }
        let file_name = entry.file_name();
        let file_name = file_name.to_string_lossy();
        let path = if name.is_empty() { file_name.into_owned() } else { format!("{name}/{file_name}") };
        match entry.file_type() {
            // Emptied before every use, and read by nobody.
            Ok(kind) if kind.is_dir() && path == layout::SCRATCH => {}
            Ok(kind) if kind.is_dir() && depth < DEEPEST => list(&entry.path(), &path, depth + 1, present),
            Ok(_) | Err(_) => present.push(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_where_artifacts_stand_is_taken_for_one() {
        for path in
            ["reviews/review_security.md", "attempts/002/diff.patch", "artifacts/x.json", "logs/a.log"]
        {
            assert!(looks_like_an_artifact(path), "{path}");
        }
        for path in ["notes.txt", "outbox/mine.md", "artifacts/.tmp-1", "answers/more.txt"] {
            assert!(!looks_like_an_artifact(path), "{path}");
        }
    }
}
