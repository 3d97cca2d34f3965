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
use crate::engine::TriageContext;
use crate::error::CouncilError;
use crate::result::Part;
use crate::seat::{ComplexityDomain, CouncilRole, LoopGrammar, RedTeamFlavor};

/// Characters of a model's name, as errors show it.
const MOST_OF_A_NAME: usize = 100;

/// How the triage configures the council (seed 001 §2.1).
#[derive(Debug, Clone, Serialize)]
pub struct TriageOutput {
    /// The question without ambiguity.
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
    /// The model that it asks for.
    pub model_hint: Option<String>,
}

/// Asks the triage, and checks all that it says.
pub(crate) async fn triage(
    caller: &Caller<'_>,
    query: &Untrusted,
    context: &TriageContext,
) -> Result<TriageOutput, CouncilError> {
    let hinted = &caller.config().hinted_models;
    let ask = Ask {
        part: Part::Triage,
        loop_number: None,
        model: String::new(),
        messages: prompt::messages(query, context, hinted),
        schema: Some((reply::NAME, reply::schema(hinted))),
    };
    let said = caller.ask(ask).await.map_err(|no_answer| no_answer.fatal(Part::Triage))?;
    let model = short_line(&said.model, MOST_OF_A_NAME);
    if said.ending == Ending::CutShort {
        return Err(CouncilError::TriageCutShort { model });
    }
    match reply::read(said.text.as_str()) {
        Ok(draft) => {
            check::accept(draft).map_err(|violations| CouncilError::TriageViolations { model, violations })
        }
        Err(why) => Err(CouncilError::TriageUnreadable { model, why }),
    }
}

/// The models of a list that a triage can name: each once, without what stands around it.
fn nameable(models: &[String]) -> Vec<&str> {
    let mut named: Vec<&str> = Vec::new();
    for model in models.iter().map(|model| model.trim()) {
        if !model.is_empty() && !named.contains(&model) {
            named.push(model);
        }
    }
    named
}
