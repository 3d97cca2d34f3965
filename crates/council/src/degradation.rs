//! What was worse than requested in a run, and the part that it affects.

use std::fmt;

use crucible_model::short_line;
use serde::{Serialize, Serializer};

use crate::seat::SeatId;

/// Characters of a refused hint in a message.
const MAX_SHOWN: usize = 100;

/// A part of a run that calls a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The call that configures the council.
    Triage,
    /// The single answer if the council is bypassed.
    DirectAnswer,
    /// A seat, including the red team.
    Seat(SeatId),
    /// The judge of the delta check.
    Judge,
    /// The call that writes the final answer.
    Synthesis,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Triage => f.write_str("triage"),
            Self::DirectAnswer => f.write_str("direct_answer"),
            Self::Seat(seat) => seat.fmt(f),
            Self::Judge => f.write_str("judge"),
            Self::Synthesis => f.write_str("synthesis"),
        }
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Something that was worse than requested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Degradation {
    /// The loop, if any.
    pub loop_number: Option<u32>,
    /// The part that it affects.
    pub part: Part,
    /// The kind of degradation.
    pub kind: DegradationKind,
    /// Details on one line. They may quote a provider or a model, so escape them before display.
    pub detail: String,
}

impl Degradation {
    /// Sorts the degradations of a run, so that the order does not depend on which call finished first.
    pub(crate) fn sort(degradations: &mut [Self]) {
        degradations.sort_by_key(|degradation| {
            let Self {
                loop_number,
                part,
                kind,
                ..
            } = degradation;
            let place = match (loop_number, part) {
                (Some(number), _) => *number,
                (None, Part::Triage | Part::Seat(_) | Part::Judge) => 0,
                (None, Part::DirectAnswer | Part::Synthesis) => u32::MAX,
            };
            (place, *part, *kind)
        });
    }
}

/// The kind of a degradation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DegradationKind {
    /// The seat gave no position; the loop went on without it.
    SeatMissing,
    /// The attacked seat gave no defence; its position is unchanged.
    DefenseMissing,
    /// A token limit, a provider filter or another reason ended the answer early. The partial text is
    /// used.
    AnswerCutShort,
    /// Secrets were removed from the answer.
    AnswerRedacted,
    /// The attack is too short to state an objection.
    RedTeamYielded,
    /// The delta verdict was unclear, so the loop counts as changed.
    DeltaUnclear,
    /// The triage named a model that is not allowed; the default model was used.
    HintRefused,
    /// The backend does not support fallback models.
    FallbackIgnored,
    /// The synthesis was shown only part of the deliberation.
    SummaryCut,
    /// The triage's rewording has less than half of a long question's length, and the council sees only
    /// the rewording.
    QuestionShortened,
}

/// The note that a model hint was not followed.
pub(crate) fn hint_refused(part: Part, hint: &str, why: &str) -> Degradation {
    let hint = short_line(hint, MAX_SHOWN);
    let detail =
        format!("the triage asked for the model `{hint}`, {why}; the default model is used");
    Degradation {
        loop_number: None,
        part,
        kind: DegradationKind::HintRefused,
        detail,
    }
}
