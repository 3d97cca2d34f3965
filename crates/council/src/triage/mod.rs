//! The triage (seed 001 §2.2): one call that configures the council and answers nothing.
//!
//! Invariants: there is one call, without a second attempt or repair. Only this call sees the caller's
//! context. Every output keeps the rules of §4.2.

mod check;
mod prompt;
mod reply;

use crucible_model::{Untrusted, short_line};
use serde::Serialize;

use crate::caller::{Ask, Caller, Ending};
use crate::config::Wording;
use crate::error::CouncilError;
use crate::result::{Degradation, DegradationKind, Part};
use crate::seat::{ComplexityDomain, CouncilRole, LoopGrammar, RedTeamFlavor};

/// The most characters of a model's name in an error.
const MOST_OF_A_NAME: usize = 100;
/// The most characters of a model hint.
const MOST_OF_A_HINT: usize = 200;

/// The number of characters above which a question is long. A rewording of less than half of a long
/// question is noted.
const LONG: usize = 2000;

/// How the triage configures the council (seed 001 §2.1).
#[derive(Debug, Clone, Serialize)]
pub struct TriageOutput {
    /// The unambiguous question, or the original one with [`Wording::AsAsked`].
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

/// Runs the triage, and checks its answer.
pub(crate) async fn triage(
    caller: &Caller<'_>,
    query: &Untrusted,
    context: Option<&Untrusted>,
) -> Result<TriageOutput, CouncilError> {
    let (hinted, wording) = (&caller.config().hinted_models, caller.config().wording);
    let ask = Ask {
        part: Part::Triage,
        loop_number: None,
        model: String::new(),
        messages: prompt::messages(query, context, hinted, wording),
        schema: Some((reply::NAME, reply::schema(hinted))),
    };
    let said = caller
        .ask(ask)
        .await
        .map_err(|no_answer| no_answer.fatal(Part::Triage, None))?;
    let model = short_line(&said.model, MOST_OF_A_NAME);
    if let Ending::CutShort(why) = said.ending {
        return Err(CouncilError::TriageCutShort { model, why });
    }
    let draft = match reply::read(said.text.as_str()) {
        Ok(draft) => draft,
        Err(why) => return Err(CouncilError::TriageUnreadable { model, why }),
    };
    let accepted = check::accept(draft);
    let triage =
        accepted.map_err(|violations| CouncilError::TriageViolations { model, violations })?;
    match wording {
        Wording::Rewritten => {
            note_shortened(caller, query, &triage);
            Ok(triage)
        }
        Wording::AsAsked => Ok(TriageOutput {
            reconstructed_query: query.clone(),
            ..triage
        }),
    }
}

/// Notes a long question whose rewording, which is all that the council sees, is short.
fn note_shortened(caller: &Caller<'_>, query: &Untrusted, triage: &TriageOutput) {
    let asked = query.as_str().chars().count();
    let handed_on = triage.reconstructed_query.as_str().chars().count();
    if asked > LONG && handed_on < asked.div_ceil(2) {
        caller.note(Degradation {
            loop_number: None,
            part: Part::Triage,
            kind: DegradationKind::QuestionShortened,
            detail: format!(
                "the question has {asked} characters, but its rewording for the council has only \
            {handed_on}"
            ),
        });
    }
}

/// The stored form of a hint: one bounded line with invisible characters escaped. Nothing if it names no
/// model.
pub(crate) fn stored_hint(hint: &str) -> Option<String> {
    let hint = hint.trim();
    (!hint.is_empty()).then(|| short_line(hint, MOST_OF_A_HINT))
}

/// Whether a stored hint was escaped or shortened: names of models contain neither `\` nor `…`.
pub(crate) fn stands_for_another_text(stored: &str) -> bool {
    stored.contains(['\\', '…'])
}
