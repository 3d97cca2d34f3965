//! What a council did, without its texts: seats, loops, attacks, who moved, and how independent the seats were.
//!
//! A run records this with the answer of its council, so that a page can show it later. Similarities are whole percents,
//! because events contain no fractions.

use serde::Serialize;

use crate::after_attack::AfterAttack;
use crate::delta::DeltaVerdict;
use crate::result::{ExecutorResult, LoopRecord};
use crate::seat::{LoopGrammar, RedTeamFlavor, SeatId};
use crate::turn::TurnKind;

/// What a council did.
#[derive(Debug, Serialize)]
pub(crate) struct Deliberation {
    grammar: LoopGrammar,
    red_team: RedTeamFlavor,
    /// The most loops that were planned.
    planned_loops: u32,
    loops: Vec<LoopOutline>,
}

/// One loop.
#[derive(Debug, Serialize)]
struct LoopOutline {
    number: u32,
    seats: Vec<SeatOutline>,
    /// Attacks of the red team.
    critiques: usize,
    /// In a debate, the attacked seats.
    targets: Vec<SeatId>,
    /// `changed`, `unchanged`, `unclear`; absent if it was not checked.
    delta: Option<&'static str>,
    mean_similarity_percent: Option<u8>,
    moved_to_majority: Option<u32>,
    distinct_models: u32,
}

/// A seat in one loop.
#[derive(Debug, Serialize)]
struct SeatOutline {
    seat: SeatId,
    /// The models that answered for it, each once.
    models: Vec<String>,
    /// What happened to its position after the attack.
    after_attack: Option<AfterAttack>,
    /// How similar its position is to its own in the loop before.
    resemblance_percent: Option<u8>,
}

impl Deliberation {
    /// Returns what the council did; `None` if it was bypassed or not observed.
    pub(crate) fn from_result(result: &ExecutorResult) -> Option<Self> {
        let (triage, loops) = (result.triage.as_ref()?, result.reasoning_trace.as_ref()?);
        if loops.is_empty() {
            return None;
        }
        Some(Self {
            grammar: triage.loop_grammar,
            red_team: triage.red_team_flavor,
            planned_loops: triage.loop_count,
            loops: loops.iter().map(LoopOutline::from_record).collect(),
        })
    }
}

impl LoopOutline {
    fn from_record(record: &LoopRecord) -> Self {
        let mut seats: Vec<SeatOutline> = Vec::new();
        let mut critiques = 0;
        for turn in &record.turns {
            if turn.kind == TurnKind::Critique {
                critiques += 1;
                continue;
            }
            match seats.iter_mut().find(|outline| outline.seat == turn.seat) {
                Some(outline) if outline.models.contains(&turn.model) => {}
                Some(outline) => outline.models.push(turn.model.clone()),
                None => seats.push(SeatOutline {
                    seat: turn.seat,
                    models: vec![turn.model.clone()],
                    after_attack: record.after_attack.get(&turn.seat).copied(),
                    resemblance_percent: record
                        .resemblance_to_prior
                        .get(&turn.seat)
                        .map(|similarity| percent(*similarity)),
                }),
            }
        }
        let independence = &record.independence;
        Self {
            number: record.loop_number,
            seats,
            critiques,
            targets: record.targets.clone(),
            delta: record.delta.as_ref().map(|delta| match delta {
                DeltaVerdict::Changed => "changed",
                DeltaVerdict::Unchanged => "unchanged",
                DeltaVerdict::Unclear(_) => "unclear",
            }),
            mean_similarity_percent: independence.mean_similarity.map(percent),
            moved_to_majority: independence.moved_to_majority,
            distinct_models: independence.distinct_models,
        }
    }
}

/// Returns a share from 0 to 1 as whole percents.
fn percent(share: f64) -> u8 {
    (0..=100u8)
        .take_while(|percent| f64::from(*percent) <= share * 100.0 + 0.5)
        .last()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_and_bounded() {
        let bytes = [0.0, 0.004, 0.006, 0.5, 0.999, 1.0, 7.0, -1.0, f64::NAN].map(percent);
        assert_eq!(bytes, [0, 0, 1, 50, 100, 100, 100, 0, 0]);
    }
}
