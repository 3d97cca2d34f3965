//! The parts of a run in time, derived from its events: stages, attempts, and runs of the gates.
//!
//! The ledger records when something was done, not when a command began to work. So a stage begins when the stage before
//! it ended, and includes time in which no command worked. A part that no later event closes is open.

use crucible_ledger::EventRecord;
use crucible_model::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event_kind::{AttemptStep, EventKind, attempt_key, attempt_number};

/// A stage of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// The repository is inspected, and its gates run before any change.
    Inspect,
    /// The files that the model sees are selected.
    Context,
    /// The plan is written, reviewed and signed.
    Plan,
    /// Changes are proposed and verified.
    Change,
    /// The verified change is committed.
    Land,
}

impl Stage {
    /// The stage's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inspect => "inspect",
            Self::Context => "context",
            Self::Plan => "plan",
            Self::Change => "change",
            Self::Land => "land",
        }
    }
}

/// What a part of a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum PartKind {
    /// A stage. A stage occurs again after a permission.
    Stage {
        /// Which one.
        stage: Stage,
    },
    /// An attempt at a change.
    Attempt {
        /// Its number, from 1.
        number: u64,
    },
    /// The gates on the change of an attempt.
    Gates {
        /// The number of the attempt.
        attempt: u64,
    },
}

/// A part of a run in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimelinePart {
    /// What it is.
    #[serde(flatten)]
    pub kind: PartKind,
    /// When it began.
    pub started_at: Timestamp,
    /// When its last event was recorded.
    pub ended_at: Timestamp,
    /// The number of the event that shows that it is over; absent while it is open.
    pub closed_by: Option<u64>,
}

/// Returns the parts of a run with these events, in the order of their beginnings.
#[must_use]
pub fn timeline(events: &[EventRecord]) -> Vec<TimelinePart> {
    let mut parts = stages(events);
    parts.extend(attempts(events));
    parts.sort_by_key(|part| part.started_at);
    parts
}

/// Returns the number of the first event after which no attempt can follow without a further permission; absent before.
#[must_use]
pub fn first_end(events: &[EventRecord]) -> Option<u64> {
    events
        .iter()
        .find(|event| EventKind::parse(&event.event).is_some_and(is_end))
        .map(|event| event.seq)
}

const fn is_end(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::VerifyPassed | EventKind::RunFailed | EventKind::RunDeclined | EventKind::Landed
    )
}

fn stages(events: &[EventRecord]) -> Vec<TimelinePart> {
    let mut parts: Vec<(Stage, TimelinePart)> = Vec::new();
    for event in events {
        let Some(kind) = EventKind::parse(&event.event) else {
            continue;
        };
        let open = parts
            .last_mut()
            .filter(|(_, part)| part.closed_by.is_none());
        let current = open.as_ref().map(|(stage, _)| *stage);
        let stage = match stage_of(kind) {
            Some(stage) => stage,
            None if attempt_of(event).is_some() => Stage::Change,
            // It belongs to the stage at work, or to none.
            None => match current {
                Some(stage) => stage,
                None => continue,
            },
        };
        let begins = match open {
            Some((current, part)) if *current == stage => {
                part.ended_at = event.ts;
                None
            }
            Some((_, part)) => {
                part.closed_by = Some(event.seq);
                Some(part.ended_at)
            }
            None => Some(event.ts),
        };
        if let Some(started_at) = begins {
            let part = TimelinePart {
                kind: PartKind::Stage { stage },
                started_at,
                ended_at: event.ts,
                closed_by: None,
            };
            parts.push((stage, part));
        }
        if let (true, Some((_, part))) = (is_end(kind), parts.last_mut()) {
            part.closed_by = Some(event.seq);
        }
    }
    parts.into_iter().map(|(_, part)| part).collect()
}

/// The stage that an event of this kind belongs to; `None` if that depends on the events before it.
const fn stage_of(kind: EventKind) -> Option<Stage> {
    match kind {
        EventKind::RunCreated
        | EventKind::GoalStated
        | EventKind::RecordingTaken
        | EventKind::GuardrailsWritten
        | EventKind::DispatchWritten
        | EventKind::RepositoryAnalysed => Some(Stage::Inspect),
        EventKind::WorkflowFound
        | EventKind::PagesTaken
        | EventKind::FilesLeftOut
        | EventKind::FilesRequested => Some(Stage::Context),
        EventKind::ReasonsWritten
        | EventKind::ResultsExpected
        | EventKind::PlanDrafted
        | EventKind::ContractReviewed
        | EventKind::CostReviewed
        | EventKind::ContractReviewedAgain
        | EventKind::CostReviewedAgain
        | EventKind::PlanWritten
        | EventKind::PlanSigned
        | EventKind::ScopeAllowed => Some(Stage::Plan),
        EventKind::PatchProposed
        | EventKind::PatchAccepted
        | EventKind::PatchRejected
        | EventKind::VerifyStarted
        | EventKind::MoreFilesRequested
        | EventKind::AttemptEnded
        | EventKind::ChangeVerifiedAgain
        | EventKind::VerifyFailed
        | EventKind::ObjectionsJudged
        | EventKind::CandidatePassed
        | EventKind::VerifyPassed
        | EventKind::RunFailed
        | EventKind::RunDeclined => Some(Stage::Change),
        EventKind::FullGatesRun
        | EventKind::HeldOutRun
        | EventKind::LandingStarted
        | EventKind::EvidenceJudged
        | EventKind::Attested
        | EventKind::Landed => Some(Stage::Land),
        EventKind::ContextPacked
        | EventKind::BudgetRaised
        | EventKind::PlanApproved
        | EventKind::OutboxPrompted
        | EventKind::ModelAsked
        | EventKind::ModelAnswered
        | EventKind::ModelFailed
        | EventKind::AnswerTaken
        | EventKind::BundleCreated => None,
    }
}

/// The attempt that an event belongs to, by its body or its key.
pub(crate) fn attempt_of(event: &EventRecord) -> Option<u64> {
    let of_body = event.body.get("attempt").and_then(Value::as_u64);
    of_body.or_else(|| attempt_number(event.key.as_deref()?))
}

fn attempts(events: &[EventRecord]) -> Vec<TimelinePart> {
    let mut parts: Vec<(u64, TimelinePart)> = Vec::new();
    let mut gates: Vec<TimelinePart> = Vec::new();
    for event in events {
        let Some(number) = attempt_of(event) else {
            continue;
        };
        let at = match parts.iter().position(|(known, _)| *known == number) {
            Some(at) => at,
            None => {
                let part = TimelinePart {
                    kind: PartKind::Attempt { number },
                    started_at: event.ts,
                    ended_at: event.ts,
                    closed_by: None,
                };
                parts.push((number, part));
                parts.len() - 1
            }
        };
        let Some((_, part)) = parts
            .get_mut(at)
            .filter(|(_, part)| part.closed_by.is_none())
        else {
            continue;
        };
        part.ended_at = event.ts;
        if event.event == EventKind::VerifyStarted.name() {
            gates.push(TimelinePart {
                kind: PartKind::Gates { attempt: number },
                started_at: event.ts,
                ..*part
            });
        }
        let is_over = event.key.as_deref() == Some(&attempt_key(number, AttemptStep::Ended));
        if is_over {
            part.closed_by = Some(event.seq);
            let of_this = PartKind::Gates { attempt: number };
            for gates in gates.iter_mut().filter(|gates| gates.kind == of_this) {
                (gates.ended_at, gates.closed_by) = (event.ts, Some(event.seq));
            }
        }
    }
    parts
        .into_iter()
        .map(|(_, part)| part)
        .chain(gates)
        .collect()
}

#[cfg(test)]
mod tests {
    use crucible_model::Digest;
    use serde_json::json;

    use super::*;

    /// Events of these kinds, a second apart; the number is that of an attempt, 0 for none.
    fn events(kinds: &[(EventKind, u64)]) -> Vec<EventRecord> {
        let event = |(at, (kind, attempt)): (usize, &(EventKind, u64))| {
            let is_ended = matches!(
                kind,
                EventKind::AttemptEnded | EventKind::PatchRejected | EventKind::MoreFilesRequested
            );
            let key = is_ended.then(|| attempt_key(*attempt, AttemptStep::Ended));
            EventRecord {
                seq: at as u64 + 1,
                run: "r".parse().unwrap(),
                ts: format!("2026-01-01T00:00:{at:02}Z").parse().unwrap(),
                role: "crucible".to_owned(),
                event: kind.name().to_owned(),
                path: None,
                key,
                artifacts: Vec::new(),
                body: match attempt {
                    0 => json!({}),
                    number => json!({ "attempt": number }),
                },
                prev: Digest::ZERO,
                hash: Digest::ZERO,
            }
        };
        kinds.iter().enumerate().map(event).collect()
    }

    fn rendered(parts: &[TimelinePart]) -> Vec<String> {
        let seconds = |at: Timestamp| at.unix_millis() / 1000 % 60;
        let part = |part: &TimelinePart| {
            let name = match part.kind {
                PartKind::Stage { stage } => stage.name().to_owned(),
                PartKind::Attempt { number } => format!("attempt {number}"),
                PartKind::Gates { attempt } => format!("gates {attempt}"),
            };
            let (from, to) = (seconds(part.started_at), seconds(part.ended_at));
            let end = part
                .closed_by
                .map_or("open".to_owned(), |seq| seq.to_string());
            format!("{name} {from}-{to} {end}")
        };
        parts.iter().map(part).collect()
    }

    #[test]
    fn parts_of_a_landed_run_follow_each_other() {
        use EventKind::{
            AttemptEnded, ContextPacked, FilesRequested, Landed, LandingStarted, ModelAnswered,
            ModelAsked, PatchRejected, PlanSigned, ReasonsWritten, RepositoryAnalysed, RunCreated,
            VerifyPassed, VerifyStarted,
        };
        let events = events(&[
            (RunCreated, 0),
            (RepositoryAnalysed, 0),
            (FilesRequested, 0),
            (ContextPacked, 0),
            (ReasonsWritten, 0),
            (PlanSigned, 0),
            (ModelAsked, 1),
            (ModelAnswered, 0),
            (PatchRejected, 1),
            (ModelAsked, 2),
            (VerifyStarted, 2),
            (AttemptEnded, 2),
            (VerifyPassed, 0),
            (LandingStarted, 0),
            (Landed, 0),
        ]);
        assert_eq!(
            rendered(&timeline(&events)),
            [
                "inspect 0-1 3",
                "context 1-3 5",
                "plan 3-5 7",
                "change 5-12 13",
                "attempt 1 6-8 9",
                "attempt 2 9-11 12",
                "gates 2 10-11 12",
                "land 13-14 15",
            ]
        );
        assert_eq!(first_end(&events), Some(13));
    }

    #[test]
    fn unfinished_parts_are_open() {
        use EventKind::{
            ModelAsked, PlanSigned, RunCreated, RunFailed, ScopeAllowed, VerifyStarted,
        };
        let failed = [
            (RunCreated, 0),
            (PlanSigned, 0),
            (ModelAsked, 1),
            (VerifyStarted, 1),
        ];
        let parts = timeline(&events(&failed));
        let open = ["change 1-3 open", "attempt 1 2-3 open", "gates 1 3-3 open"];
        assert_eq!(rendered(&parts)[2..], open);
        assert_eq!(first_end(&events(&failed)), None);
        let again = [
            (RunCreated, 0),
            (RunFailed, 0),
            (ScopeAllowed, 0),
            (ModelAsked, 1),
        ];
        assert_eq!(
            rendered(&timeline(&events(&again))),
            [
                "inspect 0-0 2",
                "change 0-1 2",
                "plan 2-2 4",
                "change 2-3 open",
                "attempt 1 3-3 open"
            ]
        );
    }

    #[test]
    fn unknown_and_missing_events_make_no_part() {
        let mut unknown = events(&[(EventKind::RunCreated, 0)]);
        unknown[0].event = "NOTED".to_owned();
        assert!(timeline(&unknown).is_empty() && timeline(&[]).is_empty());
    }
}
