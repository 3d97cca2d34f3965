//! The triage (seed 001 §2.2): one call that configures the council and answers nothing.
//!
//! What holds: one call, no second try, nothing repaired; only here is the caller's context shown to a model; what comes out of
//! this module keeps every rule of §4.2.

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

/// Characters of a model's name, as errors show it.
const MOST_OF_A_NAME: usize = 100;
/// Characters of a model's name that a hint may have.
const MOST_OF_A_HINT: usize = 200;

/// A question of more characters is long: where the triage hands on less than half of one, it is told.
const LONG: usize = 2000;

/// How the triage configures the council (seed 001 §2.1).
#[derive(Debug, Clone, Serialize)]
pub struct TriageOutput {
    /// The question without ambiguity; as it was asked, where [`Wording::AsAsked`] says so.
    pub reconstructed_query: Untrusted,
    /// How hard it is.
    pub complexity: ComplexityDomain,
    /// Whether the council may be bypassed; only where the question is simple.
    pub short_circuit_allowed: bool,
    /// The seats, 3 to 5, exactly one of them the red team's.
    pub council: Vec<CouncilSeat>,
    /// In which order they speak.
    pub loop_grammar: LoopGrammar,
    /// How many loops there are at the most, 2 to 5.
    pub loop_count: u32,
    /// What the red team attacks.
    pub red_team_flavor: RedTeamFlavor,
    /// Whether the loops may end when nothing changes any more.
    pub allow_early_exit: bool,
    /// What the answer should look like.
    pub synthesis_instruction: Untrusted,
}

/// A seat as the triage configures it.
#[derive(Debug, Clone, Serialize)]
pub struct CouncilSeat {
    /// What it contributes.
    pub role: CouncilRole,
    /// How it is to behave.
    pub system_prompt: Untrusted,
    /// The model that it asks for, on one line of 200 characters at the most. What nobody sees is escaped; one that is escaped or
    /// shortened is not granted.
    pub model_hint: Option<String>,
}

/// Asks the triage, and checks all that it says.
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
    let said = caller.ask(ask).await.map_err(|no_answer| no_answer.fatal(Part::Triage, None))?;
    let model = short_line(&said.model, MOST_OF_A_NAME);
    if let Ending::CutShort(why) = said.ending {
        return Err(CouncilError::TriageCutShort { model, why });
    }
    let draft = match reply::read(said.text.as_str()) {
        Ok(draft) => draft,
        Err(why) => return Err(CouncilError::TriageUnreadable { model, why }),
    };
    let accepted = check::accept(draft);
    let triage = accepted.map_err(|violations| CouncilError::TriageViolations { model, violations })?;
    match wording {
        Wording::Rewritten => {
            note_shortened(caller, query, &triage);
            Ok(triage)
        }
        Wording::AsAsked => Ok(TriageOutput { reconstructed_query: query.clone(), ..triage }),
    }
}

/// Notes where a long question is handed on as a short one: the council sees only that.
fn note_shortened(caller: &Caller<'_>, query: &Untrusted, triage: &TriageOutput) {
    let asked = query.as_str().chars().count();
    let handed_on = triage.reconstructed_query.as_str().chars().count();
    if asked > LONG && handed_on < asked.div_ceil(2) {
        caller.note(Degradation {
            loop_number: None,
            part: Part::Triage,
            kind: DegradationKind::QuestionShortened,
            detail: format!("the question has {asked} characters, but its rewording for the council has only \
            {handed_on}"),
        });
    }
}

/// The form in which a hint is kept: on one line, bounded, what nobody sees escaped. Nothing where it names nothing.
pub(crate) fn stored_hint(hint: &str) -> Option<String> {
    let hint = hint.trim();
    (!hint.is_empty()).then(|| short_line(hint, MOST_OF_A_HINT))
}

/// Whether a stored hint is another text than the one that was given, escaped or shortened: names of models hold neither `\` nor
/// `…`.
pub(crate) fn stands_for_another_text(stored: &str) -> bool {
    stored.contains(['\\', '…'])
}
