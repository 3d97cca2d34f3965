//! The result of a run (seed 001 §2.1, *ExecutorResult*; §5).
//!
//! Invariant: a trace exists only if observability is on; degradations (a missing seat, a cut-off answer)
//! are always reported.

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

/// The result of a run.
#[derive(Debug, Clone, Serialize)]
pub struct ExecutorResult {
    /// The answer.
    pub final_response: Untrusted,
    /// The number of loops that ran; 0 if the council was bypassed.
    pub loops_executed: u32,
    /// Whether the run ended before the planned number of loops: nothing changed, or the council was
    /// bypassed.
    pub early_exit: bool,
    /// One record per loop; absent if observability is off.
    pub reasoning_trace: Option<Vec<LoopRecord>>,
    /// The triage's configuration of the council; absent if observability is off.
    pub triage: Option<TriageOutput>,
    /// Everything that was worse than requested, ordered by loop, then by part in the order of [`Part`],
    /// then by kind. Entries of the triage come before all loops, entries of the answer after them. The
    /// order does not depend on which concurrent call finished first.
    pub degradations: Vec<Degradation>,
    /// The usage of the whole run.
    pub usage: CallUsage,
    /// The usage of each part.
    pub usage_by_part: BTreeMap<Part, CallUsage>,
}

/// The record of one loop.
#[derive(Debug, Clone, Serialize)]
pub struct LoopRecord {
    /// The number of the loop, from 1.
    pub loop_number: u32,
    /// The position of each seat at the end of the loop. In a debate, that is the defence of an attacked
    /// seat; in the sequential grammar, the draft that the seat wrote.
    pub council_responses: Positions,
    /// The last critique of the red team in the loop.
    pub red_team_critique: Untrusted,
    /// Whether the loop counts as having changed something.
    pub delta_detected: bool,
    /// The verdict of the delta check; absent if there was no check (in the first loop, the last one, if
    /// early exit is not allowed, and with [`DeltaChoice::Never`](crate::DeltaChoice::Never)).
    pub delta: Option<DeltaVerdict>,
    /// All turns in order; concurrent ones in the order of the seats.
    pub turns: Vec<Turn>,
    /// In a debate, the attacked seats.
    pub targets: Vec<SeatId>,
    /// What happened to each position of this loop after the attack in it. In the parallel grammar the
    /// next loop shows that; in the sequential grammar the entry is about the seat's draft.
    pub after_attack: BTreeMap<SeatId, AfterAttack>,
    /// The similarity of each seat's position to its position in the previous loop, from 0 to 1; empty in
    /// the first loop. In a debate both are the positions before the attack.
    pub resemblance_to_prior: BTreeMap<SeatId, f64>,
    /// How independent the seats were.
    pub independence: Independence,
    /// Proof, in this crate's tests, that the record was counted.
    #[cfg(test)]
    #[serde(skip)]
    pub(crate) _counted: crate::trace::made::Counted,
}

/// One contribution to the deliberation.
#[derive(Debug, Clone, Serialize)]
pub struct Turn {
    /// The seat that spoke.
    pub seat: SeatId,
    /// The kind of contribution.
    pub kind: TurnKind,
    /// The text.
    pub text: Untrusted,
    /// The model that answered, as the provider reports it.
    pub model: String,
    /// The usage of the call.
    pub usage: CallUsage,
    /// Proof, in this crate's tests, that the turn was counted.
    #[cfg(test)]
    #[serde(skip)]
    pub(crate) _counted: crate::trace::made::Counted,
}

impl Turn {
    /// Creates a turn from a seat's answer, with this text.
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

/// The kind of a contribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnKind {
    /// A position, or a draft in the sequential grammar.
    Position,
    /// A critique of the red team.
    Critique,
    /// The defence of an attacked seat.
    Defense,
}

/// A part of a run that calls a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The triage.
    Triage,
    /// The single answer if the council is bypassed.
    DirectAnswer,
    /// A seat, including the red team.
    Seat(SeatId),
    /// The judge of the delta check.
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

/// The usage of calls. Values that the provider does not report are counted as unknown, not as zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CallUsage {
    /// Calls that were sent, failed ones included; retries do not count separately.
    pub calls: u64,
    /// Attempts: calls with their retries, each of which may have been charged. For the whole run they
    /// include attempts that were in flight when another call ended it.
    pub attempts: u64,
    /// Input tokens.
    pub tokens_input: u64,
    /// Output tokens.
    pub tokens_output: u64,
    /// Calls without a token count.
    pub calls_without_tokens: u64,
    /// Cost in millionths of a US dollar.
    pub micro_dollars: u64,
    /// Calls without a known cost.
    pub calls_without_cost: u64,
    /// The basis of the cost: estimated if any part of it is; absent if no cost is known.
    pub cost_basis: Option<CostBasis>,
    /// Milliseconds. For a part: the sum over its calls; for the whole run: from the first call to the
    /// end.
    pub elapsed_ms: u64,
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
    pub(crate) fn sort(noted: &mut [Self]) {
        noted.sort_by_key(|degradation| {
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
    /// The red team raised no objection.
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
