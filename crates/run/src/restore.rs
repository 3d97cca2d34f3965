//! Restores files of a run directory from the ledger after a machine crash.
//!
//! A file whose bytes the ledger holds is written without a flush ([`RunDir::write_recorded`]). After a crash
//! it may be missing, empty, truncated or end in zeros, although its event exists. Whenever a run is opened
//! for work, each such file is restored from the ledger. So are the copies of an attempt's files, and the
//! review of a refused patch, which follows from its outcome.
//!
//! What always holds: only a file that is missing, or of which nothing is left but its beginning, gives way;
//! one that says anything else was edited, stays as it is, and is refused by the checks of the caller. What
//! is put back has the digest that its event names.

use crucible_ledger::{EventRecord, Ledger, LedgerError};
use crucible_model::{Digest, Verdict};
use serde_json::Value;

use crate::attempt::{self, AttemptEnd, AttemptOutcome};
use crate::contract::Review;
use crate::dispatch::service::TARGET;
use crate::error::RunError;
use crate::event_kind::EventKind;
use crate::layout::{RunDir, attempt_file};
use crate::recorded::{recorded_files, state_of_events};
use crate::state::RunState;

/// The state of a run's file on disk.
enum Present {
    Missing,
    File(Vec<u8>),
    /// A link, a directory, something too large: for others to refuse.
    Other,
}

/// Restores missing or truncated files, and returns their paths.
pub(crate) fn restore(
    dir: &RunDir,
    ledger: &Ledger,
    events: &[EventRecord],
) -> Result<Vec<String>, RunError> {
    let mut restored = Vec::new();
    for (path, digest) in recorded_files(events) {
        let Ok(digest) = digest.parse::<Digest>() else {
            continue;
        };
        let present = Present::at(dir, path);
        if !present.is_whole(&digest)
            && let Some(recorded) = bytes_of(ledger, &digest)?
        {
            restored.extend(present.put_back(dir, path, &recorded)?);
        }
    }
    restored.extend(restore_of_attempts(dir, events)?);
    Ok(restored)
}

/// Restores a file with content `whole` if it is missing or truncated; returns its path if restored.
pub(crate) fn restore_file(
    dir: &RunDir,
    path: &str,
    full_content: &[u8],
) -> Result<Option<String>, RunError> {
    Present::at(dir, path).put_back(dir, path, full_content)
}

/// Returns whether a crash may have left `present` of `whole`: a prefix, possibly with zeros instead of the
/// rest. False for a complete file.
pub(crate) fn is_torn(present: &[u8], full_content: &[u8]) -> bool {
    let zeros = present.iter().rev().take_while(|byte| **byte == 0).count();
    let nonzero_prefix = &present[..present.len() - zeros];
    present.len() <= full_content.len()
        && present != full_content
        && full_content.starts_with(nonzero_prefix)
}

/// The text of the review that a refused attempt amounts to.
pub(crate) fn rejection_review(outcome: &AttemptOutcome) -> String {
    let verdict = Verdict::new(outcome.findings.clone());
    Review::from_verdict(
        "patch gate",
        outcome.patch.unwrap_or(outcome.answer),
        &verdict,
    )
    .render()
}

impl Present {
    fn at(dir: &RunDir, path: &str) -> Self {
        match dir.read(path) {
            Ok(bytes) => Self::File(bytes),
            Err(error) if error.is_not_found() => Self::Missing,
            Err(_) => Self::Other,
        }
    }

    fn is_whole(&self, digest: &Digest) -> bool {
        matches!(self, Self::File(bytes) if Digest::compute(bytes) == *digest)
    }

    fn put_back(
        &self,
        dir: &RunDir,
        path: &str,
        full_content: &[u8],
    ) -> Result<Option<String>, RunError> {
        let gives_way = match self {
            Self::Missing => true,
            Self::File(bytes) => is_torn(bytes, full_content),
            Self::Other => false,
        };
        if gives_way {
            dir.write_recorded(path, full_content)?;
        }
        Ok(gives_way.then(|| path.to_owned()))
    }
}

/// Returns the content with this digest, if known. Content edited in the ledger is ignored.
fn bytes_of(ledger: &Ledger, digest: &Digest) -> Result<Option<Vec<u8>>, RunError> {
    if *digest == Digest::compute(b"") {
        return Ok(Some(Vec::new()));
    }
    match ledger.artifact(digest) {
        Err(LedgerError::Damaged { .. }) => Ok(None),
        other => Ok(other?),
    }
}

/// Restores the review of a refused patch from its outcome, and the copies outside `attempts/`.
fn restore_of_attempts(dir: &RunDir, events: &[EventRecord]) -> Result<Vec<String>, RunError> {
    let mut restored = Vec::new();
    let attempts = attempt::recorded_outcomes(dir, events)?;
    for outcome in attempts.iter().filter(|outcome| outcome.end.is_refused()) {
        let path = attempt_file(outcome.number, attempt::REVIEW);
        restored.extend(restore_file(
            dir,
            &path,
            rejection_review(outcome).as_bytes(),
        )?);
    }
    let is_verified = attempts
        .last()
        .is_some_and(|last| last.end == AttemptEnd::Verified);
    let has_ended = is_verified || state_of_events(events).is_some_and(RunState::is_end);
    let recorded = recorded_files(events);
    for (copy, name) in attempt::COPIES {
        // A file at a path where a person writes the next answer is the person's until the run has ended.
        if !has_ended && is_prompted_for(events, copy) {
            continue;
        }
        let original = attempts.iter().rev().find_map(|outcome| {
            let path = attempt_file(outcome.number, name);
            let recorded_digest = recorded
                .get(path.as_str())
                .and_then(|digest| digest.parse().ok());
            let of_review = || Digest::compute(rejection_review(outcome).as_bytes());
            let is_refused_review = name == attempt::REVIEW && outcome.end.is_refused();
            recorded_digest
                .or_else(|| is_refused_review.then(of_review))
                .map(|digest| (path, digest))
        });
        let Some((original, digest)) = original else {
            continue;
        };
        // An edited original is not copied.
        if let Some(bytes) = dir
            .read_if_there(&original)?
            .filter(|bytes| Digest::compute(bytes) == digest)
        {
            restored.extend(restore_file(dir, copy, &bytes)?);
        }
    }
    Ok(restored)
}

/// Returns whether a person was asked to write this file.
fn is_prompted_for(events: &[EventRecord], target: &str) -> bool {
    let prompts = events
        .iter()
        .filter(|event| event.event == EventKind::OutboxPrompted.name());
    prompts
        .filter_map(|event| event.body.get(TARGET).and_then(Value::as_str))
        .any(|prompted| prompted == target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_prefixes_and_zeros_are_torn() {
        let full_content = b"one\ntwo\0\0three\n";
        for torn in [
            &b""[..],
            b"o",
            b"one\ntwo",
            b"one\ntwo\0",
            b"one\0\0\0",
            &[0; 15],
            &full_content[..14],
        ] {
            assert!(is_torn(torn, full_content), "{torn:?}");
        }
        let longer = [full_content.as_slice(), b"\0"].concat();
        for edited in [
            &full_content[..],
            b"one\ntwO",
            b"One",
            b"one\0two",
            b" ",
            &longer,
            &[0; 16],
        ] {
            assert!(!is_torn(edited, full_content), "{edited:?}");
        }
        assert!(!is_torn(b"", b""));
    }
}
