//! One contribution to the deliberation.

use crucible_model::Untrusted;
use serde::Serialize;

use crate::caller::CallAnswer;
use crate::seat::SeatId;
use crate::usage::CallUsage;

/// One contribution to the deliberation.
#[derive(Debug, Clone, Serialize)]
pub struct Turn {
    /// The seat that spoke.
    pub seat: SeatId,
    /// The kind of contribution.
    pub kind: TurnKind,
    /// What the model wrote.
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
    pub(crate) fn new(seat: SeatId, kind: TurnKind, text: &Untrusted, answer: &CallAnswer) -> Self {
        Self {
            seat,
            kind,
            text: text.clone(),
            model: answer.model.clone(),
            usage: answer.usage,
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
