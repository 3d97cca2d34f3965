//! What a run gives back (seed 001 §2.1, *ExecutorResult*; §5).
//!
//! What holds: the parts that make up a trace exist only where observability is on; what was worse than asked for (a seat that
//! was missing, an answer that was cut off) is told in any case.

use std::collections::BTreeMap;
use std::fmt;

use crucible_llm::CostBasis;
use crucible_model::Untrusted;
use serde::{Serialize, Serializer};

use crate::after_attack::AfterAttack;
use crate::caller::CallAnswer;
use crate::delta::{DeltaVerdict, Positions};
use crate::independence::Independence;
use crate::seat::SeatId;
use crate::triage::TriageOutput;

/// What a run gives back.
#[derive(Debug, Clone, Serialize)]
pub struct ExecutorResult {
    /// The one answer.
    pub final_response: Untrusted,
    /// How many loops ran; 0 where the council was bypassed.
    pub loops_executed: u32,
    /// Whether it ended before the planned number of loops: nothing changed any more, or the council was bypassed.
    pub early_exit: bool,
    /// One record for each loop; none where observability is off.
    pub reasoning_trace: Option<Vec<LoopRecord>>,
    /// How the triage configured the council; none where observability is off.
    pub triage: Option<TriageOutput>,
    /// What was worse than asked for: by loop, within one by part in the order of [`Part`], and of one part by kind; what the triage
    /// is to blame for stands before all loops, what the answer is behind them. That is not always the order in which it happened,
    /// but it is the same whoever of those that are asked at the same time answers first.
    pub degradations: Vec<Degradation>,
    /// What the whole run took.
    pub usage: CallUsage,
    /// What each part of it took.
    pub usage_by_part: BTreeMap<Part, CallUsage>,
}

/// What happened in one loop.
#[derive(Debug, Clone, Serialize)]
pub struct LoopRecord {
    /// From 1.
    pub loop_number: u32,
    /// The position of each seat at the end of the loop; in a debate that is its defence, where it had to defend itself, and in the
    /// sequential grammar the draft that it wrote, all of which but the last were replaced.
    pub council_responses: Positions,
    /// What the red team said last in the loop.
    pub red_team_critique: Untrusted,
    /// Whether the loop counts as having changed something.
    pub delta_detected: bool,
    /// What decided that; none where nobody was asked (in the first loop, the last one, where early exit is not allowed, and with
    /// [`DeltaChoice::Never`](crate::DeltaChoice::Never)).
    pub delta: Option<DeltaVerdict>,
    /// Everything that was said, in order; what was said at the same time stands in the order of the seats.
    pub turns: Vec<Turn>,
    /// In a debate, the seats that were attacked.
    pub targets: Vec<SeatId>,
    /// What became of each position of this loop after the attack that it met in it. In the parallel grammar that shows in the next
    /// loop, and stands here all the same; in the sequential one it is about the draft that the seat wrote.
    pub after_attack: BTreeMap<SeatId, AfterAttack>,
    /// How much each seat's position resembles its position of the loop before, from 0 to 1; empty in the first loop. In a debate both
    /// are what the seat stated before the attack: what it made of that, `after_attack` tells.
    pub resemblance_to_prior: BTreeMap<SeatId, f64>,
    /// How far the seats spoke for themselves.
    pub independence: Independence,
    /// In tests of this crate, that it was counted when it was made.
    #[cfg(test)]
    #[serde(skip)]
    pub(crate) _counted: crate::trace::made::Counted,
}

/// Something that was said.
#[derive(Debug, Clone, Serialize)]
pub struct Turn {
    /// Who said it.
    pub seat: SeatId,
    /// As what.
    pub kind: TurnKind,
    /// The words.
    pub text: Untrusted,
    /// The model that answered, as the provider names it.
    pub model: String,
    /// What it took.
    pub usage: CallUsage,
    /// In tests of this crate, that it was counted when it was made.
    #[cfg(test)]
    #[serde(skip)]
    pub(crate) _counted: crate::trace::made::Counted,
}

impl Turn {
    /// What a seat said: these words of its answer.
    pub(crate) fn of(seat: SeatId, kind: TurnKind, text: &Untrusted, said: &CallAnswer) -> Self {
        Self {
            seat,
            kind,
            text: text.clone(),
            model: said.model.clone(),
            usage: said.usage,
            #[cfg(test)]
            _counted: crate::trace::made::turn(),
        }
    }
}

/// As what something was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnKind {
    /// A position, or in the sequential grammar a draft.
    Position,
    /// What the red team says.
    Critique,
    /// The answer of an attacked seat.
    Defense,
}

/// A part of a run that asks a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The triage.
    Triage,
    /// The one answer where the council is bypassed.
    DirectAnswer,
    /// A seat, the red team's included.
    Seat(SeatId),
    /// The judge of changes.
    Judge,
    /// The synthesis.
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

/// What calls took. What a provider does not tell is counted as not told, never as nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CallUsage {
    /// Calls that were sent, failed ones included; the retries of a call are none of their own.
    pub calls: u64,
    /// Attempts to make them: calls with their retries, each of which may have been paid. Of the whole run those count, too, that
    /// nobody waited for any more when another call ended it.
    pub attempts: u64,
    /// Tokens of requests.
    pub tokens_input: u64,
    /// Tokens of answers.
    pub tokens_output: u64,
    /// Calls of which no tokens are known.
    pub calls_without_tokens: u64,
    /// What it cost, in millionths of a US dollar.
    pub micro_dollars: u64,
    /// Calls of which no cost is known.
    pub calls_without_cost: u64,
    /// Who says what it cost: estimated as soon as a part of it is; none where no cost is known.
    pub cost_basis: Option<CostBasis>,
    /// Milliseconds. Of a part: the sum over its calls; of the whole: from the first call to the end.
    pub elapsed_ms: u64,
}

/// Something that was worse than asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Degradation {
    /// In which loop; none outside of loops.
    pub loop_number: Option<u32>,
    /// Whose it is.
    pub part: Part,
    /// What it is.
    pub kind: DegradationKind,
    /// More about it on one line. May quote a piece of what a provider or a model said, so escape it before showing it.
    pub detail: String,
}

impl Degradation {
    /// Puts what a run noted into an order that does not depend on who answered first.
    pub(crate) fn sort(noted: &mut [Self]) {
        noted.sort_by_key(|degradation| {
            let Self { loop_number, part, kind, .. } = degradation;
            let place = match (loop_number, part) {
                (Some(number), _) => *number,
                (None, Part::Triage | Part::Seat(_) | Part::Judge) => 0,
                (None, Part::DirectAnswer | Part::Synthesis) => u32::MAX,
            };
            (place, *part, *kind)
        });
    }
}

/// What was worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DegradationKind {
    /// The seat gave no position; the loop went on without it.
    SeatMissing,
    /// The attacked seat gave no defence; its position stands as it was.
    DefenseMissing,
    /// The answer did not end by itself: its limit of tokens or a filter of the provider cut it off, or the provider gives another
    /// reason. It is used as far as it goes.
    AnswerCutShort,
    /// Secrets were taken out of the answer.
    AnswerRedacted,
    /// The red team raised no objection.
    RedTeamYielded,
    /// Whether anything changed could not be told, so the loop counts as changed.
    DeltaUnclear,
    /// The triage named a model that may not be asked; the default model was.
    HintRefused,
    /// The backend knows no list of fallback models.
    FallbackIgnored,
    /// The synthesis was shown only part of the deliberation.
    SummaryCut,
    /// The triage handed on less than half of a long question, and the council sees nothing else of it.
    QuestionShortened,
}
