//! The result of a run.
//!
//! Invariant: a trace exists only if observability is on; degradations (a missing seat, a cut-off answer)
//! are always reported.

use std::collections::BTreeMap;

use crucible_model::Untrusted;
use serde::Serialize;

use crate::after_attack::AfterAttack;
use crate::degradation::{Degradation, Part};
use crate::delta::{DeltaVerdict, Positions};
use crate::independence::Independence;
use crate::seat::SeatId;
use crate::triage::TriageOutput;
use crate::turn::Turn;
use crate::usage::CallUsage;

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
