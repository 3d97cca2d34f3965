//! Determines the next answer to request: rounds of samples, and the cost of malformed answers. Pure, so a
//! replay asks the same.
//!
//! A run has `max_iterations` rounds, and each is for so many answers as there are candidates. All answers of
//! a round are asked for with the same brief, which describes the round before. Of those that pass, the best
//! ends the run. The first few malformed answers of a run take no place in a round: the next answer is for
//! the same place. Neither does an answer that asks for more files; how often a model may do that is limited
//! before its answer is taken for a request.

use crate::attempt::{AttemptEnd, AttemptOutcome};
use crate::contract::{RunRole, RunSettings, Service};

/// The place of the next answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CandidateSlot<'o> {
    /// The round, from 1; above the run's `max_iterations` none is left.
    pub(crate) round: u64,
    /// The number of the candidate in its round, counted from 1.
    pub(crate) candidate: u64,
    /// The attempt of the round before that came furthest.
    pub(crate) before: Option<&'o AttemptOutcome>,
    /// The last attempt, if its answer was malformed.
    pub(crate) malformed: Option<&'o AttemptOutcome>,
}

impl<'o> CandidateSlot<'o> {
    /// The place that follows these attempts of a run.
    pub(crate) fn after(ended: &'o [AttemptOutcome], settings: &RunSettings) -> Self {
        let candidates = candidates(settings);
        let (mut taken, mut free) = (0u64, settings.max_malformed);
        let mut rounds = Vec::with_capacity(ended.len());
        for outcome in ended {
            rounds.push(taken / candidates);
            match outcome.end {
                AttemptEnd::FilesRequested => {}
                _ if outcome.chosen_from.is_some() => {}
                AttemptEnd::Malformed if free > 0 => free -= 1,
                _ => taken += 1,
            }
        }
        let round = taken / candidates;
        let of_before = ended.iter().zip(rounds).filter(|(_, of)| of + 1 == round);
        let of_before = of_before.filter(|(outcome, _)| outcome.end != AttemptEnd::FilesRequested);
        Self {
            round: round + 1,
            candidate: taken % candidates + 1,
            before: of_before
                .map(|(outcome, _)| outcome)
                .max_by_key(|outcome| reach(outcome.end)),
            malformed: ended
                .last()
                .filter(|last| last.end == AttemptEnd::Malformed),
        }
    }
}

/// Returns the number of answers per round: one from a person.
pub(crate) fn candidates(settings: &RunSettings) -> u64 {
    let dispatch = settings.dispatch();
    let proposers = [RunRole::Patchmaker, RunRole::Fixer].map(|role| dispatch.service(role));
    if proposers.contains(&Service::ManualOutbox) {
        1
    } else {
        settings.candidates.max(1)
    }
}

/// How many of its `max_iterations` a run with these attempts has used.
pub(crate) fn rounds_used(ended: &[AttemptOutcome], settings: &RunSettings) -> u64 {
    let next = CandidateSlot::after(ended, settings);
    next.round - 1 + u64::from(next.candidate > 1)
}

/// Returns how often the model requested more files.
pub(crate) fn files_requested(ended: &[AttemptOutcome]) -> u64 {
    ended
        .iter()
        .filter(|outcome| outcome.end == AttemptEnd::FilesRequested)
        .count() as u64
}

/// How far an attempt came.
fn reach(end: AttemptEnd) -> u8 {
    match end {
        AttemptEnd::Malformed | AttemptEnd::FilesRequested => 0,
        AttemptEnd::Repeated => 1,
        AttemptEnd::Refused => 2,
        AttemptEnd::VerifyFailed => 3,
        AttemptEnd::Candidate => 4,
        AttemptEnd::Verified => 5,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use AttemptEnd::{FilesRequested, Malformed, Refused, Repeated, VerifyFailed};
    use crucible_model::Digest;

    use super::*;
    use crate::attempt::AttemptVersion;
    use crate::contract::{DispatchConfig, MANUAL_OUTBOX};
    use crate::gatekeeper::tests::record;

    fn ended(ends: &[AttemptEnd]) -> Vec<AttemptOutcome> {
        let outcome = |(number, end): (u64, &AttemptEnd)| AttemptOutcome {
            schema_version: AttemptVersion::V1,
            number,
            end: *end,
            round: None,
            chosen_from: None,
            asked_for: None,
            read_as: None,
            answer: Digest::compute(&number.to_be_bytes()),
            patch: None,
            again: None,
            findings: Vec::new(),
            output: String::new(),
        };
        (1..).zip(ends).map(outcome).collect()
    }

    /// Returns the round, the candidate, and the attempts for the brief.
    fn place(
        ends: &[AttemptEnd],
        malformed: u64,
        samples: u64,
    ) -> (u64, u64, Option<u64>, Option<u64>) {
        let mut settings = record(Path::new("/r"), &[]).settings;
        (settings.max_malformed, settings.candidates) = (malformed, samples);
        let ended = ended(ends);
        let place = CandidateSlot::after(&ended, &settings);
        let number = |outcome: Option<&AttemptOutcome>| outcome.map(|outcome| outcome.number);
        (
            place.round,
            place.candidate,
            number(place.before),
            number(place.malformed),
        )
    }

    #[test]
    fn next_attempt_has_last_brief() {
        assert_eq!(place(&[], 0, 1), (1, 1, None, None));
        assert_eq!(place(&[Refused], 0, 1), (2, 1, Some(1), None));
        assert_eq!(
            place(&[Refused, VerifyFailed, Repeated], 3, 1),
            (4, 1, Some(3), None)
        );
    }

    #[test]
    fn malformed_answers_within_budget_are_free() {
        assert_eq!(place(&[Malformed], 2, 1), (1, 1, None, Some(1)));
        assert_eq!(
            place(&[VerifyFailed, Malformed, Malformed], 2, 1),
            (2, 1, Some(1), Some(3))
        );
        assert_eq!(
            place(&[VerifyFailed, Malformed, Malformed, Malformed], 2, 1),
            (3, 1, Some(4), Some(4))
        );
        assert_eq!(
            place(&[Malformed, Refused, Malformed], 2, 1),
            (2, 1, Some(2), Some(3))
        );
        assert_eq!(place(&[Malformed], 0, 1), (2, 1, Some(1), Some(1)));
    }

    #[test]
    fn file_requests_use_no_attempt() {
        assert_eq!(place(&[FilesRequested], 0, 1), (1, 1, None, None));
        assert_eq!(
            place(&[FilesRequested, Refused, FilesRequested], 0, 1),
            (2, 1, Some(2), None)
        );
        assert_eq!(
            place(&[Malformed, FilesRequested, Malformed], 1, 1),
            (2, 1, Some(3), Some(3))
        );
        assert_eq!(place(&[Refused, FilesRequested], 0, 3), (1, 2, None, None));
        assert_eq!(
            files_requested(&ended(&[FilesRequested, Refused, FilesRequested])),
            2
        );
    }

    #[test]
    fn candidates_share_a_round_and_its_brief() {
        assert_eq!(place(&[Refused], 0, 3), (1, 2, None, None));
        assert_eq!(place(&[Refused, Malformed], 1, 3), (1, 2, None, Some(2)));
        let first = [Refused, VerifyFailed, Refused];
        assert_eq!(place(&first, 0, 3), (2, 1, Some(2), None));
        assert_eq!(
            place(&[first.as_slice(), &[Refused]].concat(), 0, 3),
            (2, 2, Some(2), None)
        );
        assert_eq!(place(&[Refused, Refused], 0, 0), (3, 1, Some(2), None));
        let mut settings = record(Path::new("/r"), &[]).settings;
        (settings.max_malformed, settings.candidates) = (1, 3);
        let used = |ends: &[AttemptEnd]| rounds_used(&ended(ends), &settings);
        assert_eq!(
            [
                used(&[]),
                used(&[Malformed]),
                used(&[Refused]),
                used(&first)
            ],
            [0, 0, 1, 1]
        );
        assert_eq!(used(&[Malformed, Malformed, Refused, Refused, Refused]), 2);
        settings.dispatch = Some(DispatchConfig::for_model(MANUAL_OUTBOX));
        assert_eq!(candidates(&settings), 1);
    }
}
