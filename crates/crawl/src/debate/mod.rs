//! The debate about a plan: GPT drafts, revises and synthesises; Claude criticises.
//!
//! Types determine the roles: [`PlanAuthor`] has no method for a critique, and [`PlanCritic`] has no other. Code
//! determines the number of rounds: no model knows of rounds or can request one. Answers are parsed
//! strictly, and every message is in the transcript before the next one is sent.
//!
//! Nothing is stored here: a debate whose future is dropped leaves only its transcript.

mod error;
mod floor;
mod material;
mod owner;
mod phase;
mod plain_sight;
mod prompts;
mod reply;
mod summary;
mod transcript;

#[cfg(test)]
mod tests;

use std::time::Duration;

pub use error::{DebateError, ReplyFault};
pub use floor::DebateContext;
pub use owner::{PlanAuthor, PlanCritic, PlanCritique, PlanDraft, PlanSynthesis};
pub use phase::{
    CRITIQUE_TOKENS, DRAFT_TOKENS, DebatePhase, DebateRole, DebateRounds, REVISION_TOKENS,
    SYNTHESIS_TOKENS,
};
pub use prompts::prompt_hash;
pub use transcript::{MessageRecord, RedactedMessage, Transcript};

use crate::artifact::{Dependencies, PlanStep};
use crate::inspect::Inspection;
use crate::observer::CrawlObserver;
use summary::SuggestionOutcomes;

/// The result of a debate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DebateOutcome {
    /// The requirements of the steps.
    pub dependencies: Dependencies,
    /// The steps of the plan, in order.
    pub steps: Vec<PlanStep>,
    /// Warnings for the executor: notes about the debate, then unresolved issues, then warnings of the
    /// synthesis.
    pub warnings: Vec<String>,
    /// Suggestions that the steps follow, with their source.
    pub accepted_suggestions: Vec<String>,
    /// Suggestions that the steps do not follow, with source and reason.
    pub rejected_suggestions: Vec<String>,
    /// The number of rounds.
    pub rounds: u32,
    /// The summary for the synthesis, at most 1000 characters.
    pub summary: String,
    /// The drafting model, as its provider reports it; empty without one.
    pub gpt_model: String,
    /// The reviewing model; empty without one.
    pub claude_model: String,
}

/// Runs the debate: rounds until the critic approves or none is left, then the synthesis. Each model call gets `timeout`.
///
/// # Errors
///
/// See [`DebateError`].
#[expect(
    clippy::too_many_arguments,
    reason = "two models, their subject, two bounds, and three who keep or hear it"
)]
pub async fn debate(
    gpt: &PlanAuthor,
    claude: &PlanCritic,
    inspection: &Inspection,
    rounds: DebateRounds,
    timeout: Duration,
    session: &str,
    transcript: &mut dyn Transcript,
    observer: &dyn CrawlObserver,
) -> Result<DebateOutcome, DebateError> {
    let floor = &mut DebateContext::new(inspection, timeout, session, transcript, observer);
    let mut suggestion_outcomes = SuggestionOutcomes::default();
    let mut plan = gpt.draft(floor).await?;
    let gpt_model = plan.0.model.clone();
    let mut critique = claude.critique(&plan, floor).await?;
    for _ in 1..rounds.get() {
        if critique.is_approval() {
            break;
        }
        let revision = gpt.revise(&plan, &critique, floor).await?;
        suggestion_outcomes.add_revision(&plan.0.reply, &critique.0.reply, &revision.0.reply);
        plan = revision;
        critique = claude.critique(&plan, floor).await?;
    }
    let mut in_the_end = suggestion_outcomes.clone();
    suggestion_outcomes.reject_unanswered(&critique.0.reply);
    let rounds = floor.round;
    if !critique.is_approval() {
        floor.note(format!(
            "the debate ended without approval; rounds: {rounds}"
        ));
    }
    let end = if critique.is_approval() {
        "the plan was approved"
    } else {
        "the plan was not approved"
    };
    let summary = summary::summary(rounds, end, &suggestion_outcomes, critique.issues());
    let last = gpt.synthesise(&summary, &plan, &critique, floor).await?;
    let unheard = last.0.reply.steps.iter().filter(|step| {
        !plan
            .0
            .reply
            .steps
            .iter()
            .any(|old| does_the_same(old, step))
    });
    for step in unheard {
        floor.note(format!(
            "the final plan's step \"{}\" is in no plan that claude reviewed",
            step.name
        ));
    }
    let synthesis = last.0.reply;
    // The model's statements about suggestions are claims; the steps show what was done.
    in_the_end.add_final_steps(&plan.0.reply.steps, &critique.0.reply, &synthesis.steps);
    let unresolved = critique
        .issues()
        .iter()
        .map(|issue| format!("unresolved {}", summary::sentence(issue)));
    Ok(DebateOutcome {
        dependencies: synthesis.dependencies,
        steps: synthesis.steps,
        // The program's own notes come first, because a list that is too long is cut at its end.
        warnings: std::mem::take(&mut floor.notes)
            .into_iter()
            .chain(unresolved)
            .chain(synthesis.warnings)
            .collect(),
        accepted_suggestions: in_the_end
            .accepted
            .iter()
            .map(summary::with_source)
            .collect(),
        rejected_suggestions: in_the_end
            .rejected
            .iter()
            .map(|suggestion| {
                format!(
                    "{} — the plan does not follow it",
                    summary::with_source(suggestion)
                )
            })
            .collect(),
        rounds,
        summary,
        gpt_model,
        claude_model: critique.0.model,
    })
}

/// Whether two steps run the same command, whatever their names.
fn does_the_same(one: &PlanStep, other: &PlanStep) -> bool {
    (&one.cmd, &one.cwd, &one.env) == (&other.cmd, &other.cwd, &other.env)
}
