//! The configuration of a council, as the triage returns it.

use crucible_model::{Untrusted, short_line};
use serde::Serialize;

use crate::seat::{ComplexityDomain, CouncilRole, LoopGrammar, RedTeamFlavor};

/// The most characters of a model hint.
const MAX_HINT_LEN: usize = 200;

/// How the triage configures the council.
#[derive(Debug, Clone, Serialize)]
pub struct TriageOutput {
    /// The unambiguous question, or the original one with [`Wording::AsAsked`](crate::Wording::AsAsked).
    pub reconstructed_query: Untrusted,
    /// How complex the question is.
    pub complexity: ComplexityDomain,
    /// Whether the council may be bypassed; only for a simple question.
    pub short_circuit_allowed: bool,
    /// The seats, 3 to 5, with exactly one red team.
    pub council: Vec<CouncilSeat>,
    /// The order in which they speak.
    pub loop_grammar: LoopGrammar,
    /// The most loops, 2 to 5.
    pub loop_count: u32,
    /// What the red team attacks.
    pub red_team_flavor: RedTeamFlavor,
    /// Whether the loops may end when nothing changes.
    pub allow_early_exit: bool,
    /// The requested form of the answer.
    pub synthesis_instruction: Untrusted,
}

/// A seat in the triage's configuration.
#[derive(Debug, Clone, Serialize)]
pub struct CouncilSeat {
    /// The contribution of the seat.
    pub role: CouncilRole,
    /// The instructions for its behaviour.
    pub system_prompt: Untrusted,
    /// The requested model, on one line of at most 200 characters. Invisible characters are escaped. An
    /// escaped or shortened name is refused.
    pub model_hint: Option<String>,
}

/// The stored form of a hint: one bounded line with invisible characters escaped. Nothing if it names no
/// model.
pub(crate) fn stored_hint(hint: &str) -> Option<String> {
    let hint = hint.trim();
    (!hint.is_empty()).then(|| short_line(hint, MAX_HINT_LEN))
}

/// Whether a stored hint was escaped or shortened: names of models contain neither `\` nor `…`.
pub(crate) fn is_escaped_or_shortened(stored: &str) -> bool {
    stored.contains(['\\', '…'])
}
