//! The state of a loop for the next loop and the synthesis.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crucible_model::Untrusted;

use crate::council::Council;
use crate::delta::Positions;
use crate::seat::{LoopGrammar, SeatId};
use crate::turn::Turn;

/// The state of a loop for the next loop and the synthesis.
#[derive(Debug, Clone)]
pub(crate) struct LoopState {
    /// The number of the loop, from 1.
    pub(crate) number: u32,
    pub(crate) grammar: LoopGrammar,
    /// The position of each seat that answered, at the end of the loop; in the sequential grammar its
    /// draft.
    pub(crate) positions: Positions,
    /// The last critique of the red team.
    pub(crate) critique: Untrusted,
    /// In the sequential grammar, the drafts in writing order. The last one is current.
    pub(crate) drafts: Vec<Draft>,
    /// In a debate, the attacked seats.
    pub(crate) targets: Vec<SeatId>,
    /// In a debate, the positions of the defending seats before the attack.
    pub(crate) before_attack: Positions,
    /// All turns; empty if observability is off.
    pub(crate) turns: Vec<Turn>,
}

/// A draft of the sequential grammar.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) seat: SeatId,
    pub(crate) text: Untrusted,
    /// The red team's attack on it before the next seat spoke.
    pub(crate) attack: Untrusted,
}

impl LoopState {
    /// The positions to compare between loops. In the sequential grammar that is only the last draft,
    /// under the name of the council's last seat, whichever seat wrote it. If that seat is missing, the
    /// draft must not appear as another seat's position. In a debate it is the positions before the
    /// attack.
    pub(crate) fn comparable_positions(&self, council: &Council) -> Cow<'_, Positions> {
        match (self.drafts.last(), council.seats.last()) {
            (Some(draft), Some(last)) => {
                Cow::Owned(Positions::from([(last.id, draft.text.clone())]))
            }
            _ if self.before_attack.is_empty() => Cow::Borrowed(&self.positions),
            _ => Cow::Owned(Self::before_attack_values(
                self.positions.clone(),
                self.before_attack.clone(),
            )),
        }
    }

    /// The values of positions as stated, before any attack. In a debate each loop takes new positions,
    /// so these are what two loops have in common.
    pub(crate) fn before_attack_values<T>(
        at_the_end: BTreeMap<SeatId, T>,
        before_attack: BTreeMap<SeatId, T>,
    ) -> BTreeMap<SeatId, T> {
        let mut stated = at_the_end;
        stated.extend(before_attack);
        stated
    }
}
