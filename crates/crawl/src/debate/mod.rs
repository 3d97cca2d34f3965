//! The debate about a plan: GPT drafts, revises and synthesises; Claude criticises (seed 000 §6).
//!
//! Who may say what is a matter of types: [`Gpt`] cannot be asked for a critique and [`Claude`] for nothing else. How long
//! it goes on is a loop in code: no model is told of rounds, and none can ask for another one. What a model answers is read
//! strictly or not at all, and every message is in the transcript before the next one is sent.
//!
//! Nothing is kept here: a debate whose future is dropped leaves what its transcript has, and nothing else.

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
pub use floor::DebateFloor;
pub use owner::{Claude, Gpt, PlanCritique, PlanDraft, PlanSynthesis};
pub use phase::{
    CRITIQUE_TOKENS, DRAFT_TOKENS, DebateOwner, DebatePhase, DebateRounds, REVISION_TOKENS, SYNTHESIS_TOKENS,
};
pub use prompts::prompt_hash;
pub use transcript::{MessageRecord, RedactedMessage, Transcript};

use crate::artifact::{Dependencies, PlanStep};
use crate::inspect::Inspection;
use crate::witness::CrawlObserver;
use summary::Settled;

/// What a debate settled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DebateOutcome {
    /// What the steps need.
    pub dependencies: Dependencies,
    /// What to run.
    pub steps: Vec<PlanStep>,
    /// What the executor should know: what was noticed of the debate, then issues that it left open, then what the synthesis
    /// warns of.
    pub warnings: Vec<String>,
    /// Suggestions that the plan follows, as its steps show, with their source.
    pub accepted_suggestions: Vec<String>,
    /// Suggestions that it does not follow, with source and reason.
    pub rejected_suggestions: Vec<String>,
    /// Rounds that took place.
    pub rounds: u32,
    /// What the synthesis got to see of the debate, at most 1000 characters.
    pub summary: String,
    /// The model that drafted, as its provider names it; empty without one.
    pub gpt_model: String,
    /// The model that criticised; empty without one.
    pub claude_model: String,
}

/// Holds the debate: rounds until the critic approves or none is left, then the last word. Each call of a model gets `timeout`.
///
/// # Errors
///
/// See [`DebateError`].
#[expect(
    clippy::too_many_arguments,
    reason = "two models, their subject, two bounds, and three who keep or hear it"
)]
pub async fn debate(
    gpt: &Gpt,
    claude: &Claude,
    inspection: &Inspection,
    rounds: DebateRounds,
    timeout: Duration,
    session: &str,
    transcript: &mut dyn Transcript,
    witness: &dyn CrawlObserver,
) -> Result<DebateOutcome, DebateError> {
    let floor = &mut DebateFloor::new(inspection, timeout, session, transcript, witness);
    let mut settled = Settled::default();
    let mut plan = gpt.draft(floor).await?;
    let gpt_model = plan.0.model.clone();
    let mut critique = claude.critique(&plan, floor).await?;
    for _ in 1..rounds.get() {
        if critique.is_approval() {
            break;
        }
        let revision = gpt.revise(&plan, &critique, floor).await?;
        settled.by_revision(&plan.0.reply, &critique.0.reply, &revision.0.reply);
        plan = revision;
        critique = claude.critique(&plan, floor).await?;
    }
    let mut in_the_end = settled.clone();
    settled.unanswered(&critique.0.reply);
    let rounds = floor.round;
    if !critique.is_approval() {
        floor.note(format!("the debate ended without approval; rounds: {rounds}"));
    }
    let end = if critique.is_approval() { "the plan was approved" } else { "the plan was not approved" };
    let summary = summary::summary(rounds, end, &settled, critique.issues());
    let last = gpt.synthesise(&summary, &plan, &critique, floor).await?;
    let unheard = last
        .0
        .reply
        .steps
        .iter()
        .filter(|step| !plan.0.reply.steps.iter().any(|old| does_the_same(old, step)));
    for step in unheard {
        floor.note(format!("the final plan's step \"{}\" is in no plan that claude reviewed", step.name));
    }
    let synthesis = last.0.reply;
    // What the model says of suggestions is a claim; the steps show what became of them.
    in_the_end.by_last_word(&plan.0.reply.steps, &critique.0.reply, &synthesis.steps);
    let unresolved = critique.issues().iter().map(|issue| format!("unresolved {}", summary::sentence(issue)));
    Ok(DebateOutcome {
        dependencies: synthesis.dependencies,
        steps: synthesis.steps,
        // What this program noticed comes first: a list that is too long is cut at its end.
        warnings: std::mem::take(&mut floor.notes)
            .into_iter()
            .chain(unresolved)
            .chain(synthesis.warnings)
            .collect(),
        accepted_suggestions: in_the_end.accepted.iter().map(summary::with_source).collect(),
        rejected_suggestions: in_the_end
            .rejected
            .iter()
            .map(|suggestion| format!("{} — the plan does not follow it", summary::with_source(suggestion)))
            .collect(),
        rounds,
        summary,
        gpt_model,
        claude_model: critique.0.model,
    })
}

/// Whether two steps run the same, whatever they are called.
fn does_the_same(one: &PlanStep, other: &PlanStep) -> bool {
    (&one.cmd, &one.cwd, &one.env) == (&other.cmd, &other.cwd, &other.env)
}
