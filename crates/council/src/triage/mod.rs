//! The triage: one call that configures the council and answers nothing.
//!
//! Invariants: there is one call, without a second attempt or repair. Only this call sees the caller's
//! context. Every output keeps the rules of `check`.

mod check;
mod output;
mod prompt;
mod reply;

use crucible_model::{Untrusted, short_line};

use crate::caller::{CallRequest, Caller, Ending};
use crate::config::Wording;
use crate::degradation::{Degradation, DegradationKind, Part};
use crate::error::CouncilError;

pub use output::{CouncilSeat, TriageOutput};

pub(crate) use output::{is_escaped_or_shortened, stored_hint};

/// The most characters of a model's name in an error.
const MAX_NAME_LEN: usize = 100;

/// The number of characters above which a question is long. A rewording of less than half of a long
/// question is noted.
const LONG: usize = 2000;

/// Runs the triage, and checks its answer.
pub(crate) async fn triage(
    caller: &Caller<'_>,
    query: &Untrusted,
    context: Option<&Untrusted>,
) -> Result<TriageOutput, CouncilError> {
    let (hinted, wording) = (&caller.config().hinted_models, caller.config().wording);
    let ask = CallRequest {
        part: Part::Triage,
        loop_number: None,
        model: String::new(),
        messages: prompt::messages(query, context, hinted, wording),
        schema: Some((reply::NAME, reply::schema(hinted))),
    };
    let answer = caller
        .ask(ask)
        .await
        .map_err(|no_answer| no_answer.fatal(Part::Triage, None))?;
    let model = short_line(&answer.model, MAX_NAME_LEN);
    if let Ending::TruncatedAnswer(why) = answer.ending {
        return Err(CouncilError::TriageCutShort { model, why });
    }
    let draft = match reply::read(answer.text.as_str()) {
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
    let query_chars = query.as_str().chars().count();
    let reconstructed_chars = triage.reconstructed_query.as_str().chars().count();
    if query_chars > LONG && reconstructed_chars < query_chars.div_ceil(2) {
        caller.note(Degradation {
            loop_number: None,
            part: Part::Triage,
            kind: DegradationKind::QuestionShortened,
            detail: format!(
                "the question has {query_chars} characters, but its rewording for the council has only \
            {reconstructed_chars}"
            ),
        });
    }
}
