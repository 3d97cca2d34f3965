//! The two roles of a debate as types: [`PlanAuthor`] drafts, revises and synthesises, [`PlanCritic`] criticises.
//!
//! Only [`PlanAuthor`] creates a [`PlanDraft`], only [`PlanCritic`] creates a [`PlanCritique`] of it, and only
//! [`PlanAuthor`] creates the final [`PlanSynthesis`].

use crucible_llm::ModelClient;

use super::error::DebateError;
use super::floor::{DebateContext, ModelReply};
use super::material::{self, piece};
use super::phase::DebatePhase;
use super::prompts::Slot;
use super::reply::{CritiqueReply, DraftReply, Issue, SynthesisReply};
use super::summary::sentence;

/// The model that drafts, revises and synthesises.
///
/// A round in the correct order:
///
/// ```no_run
/// use crucible_crawl::{PlanCritic, DebateError, DebateContext, PlanAuthor};
///
/// async fn one_round(gpt: &PlanAuthor, claude: &PlanCritic, floor: &mut DebateContext<'_>) -> Result<(), DebateError> {
///     let draft = gpt.draft(floor).await?;
///     let critique = claude.critique(&draft, floor).await?;
///     let _revision = gpt.revise(&draft, &critique, floor).await?;
///     Ok(())
/// }
/// ```
///
/// It cannot criticise its own plan:
///
/// ```compile_fail
/// use crucible_crawl::{PlanCritic, DebateError, DebateContext, PlanAuthor};
///
/// async fn one_round(gpt: &PlanAuthor, claude: &PlanCritic, floor: &mut DebateContext<'_>) -> Result<(), DebateError> {
///     let draft = gpt.draft(floor).await?;
///     let critique = gpt.critique(&draft, floor).await?;
///     let _revision = gpt.revise(&draft, &critique, floor).await?;
///     Ok(())
/// }
/// ```
///
/// A plan is not a critique, and a critique is not a plan:
///
/// ```compile_fail
/// use crucible_crawl::{PlanCritic, DebateError, DebateContext, PlanAuthor};
///
/// async fn one_round(gpt: &PlanAuthor, claude: &PlanCritic, floor: &mut DebateContext<'_>) -> Result<(), DebateError> {
///     let draft = gpt.draft(floor).await?;
///     let critique = claude.critique(&draft, floor).await?;
///     let _revision = gpt.revise(&critique, &draft, floor).await?;
///     Ok(())
/// }
/// ```
pub struct PlanAuthor(ModelClient);

/// The model that criticises and approves.
///
/// A debate takes its two models in this order:
///
/// ```no_run
/// use std::time::Duration;
///
/// use crucible_crawl::{PlanCritic, DebateError, DebateRounds, PlanAuthor, Inspection, Transcript, CrawlObserver, debate};
///
/// async fn held(
///     gpt: &PlanAuthor, claude: &PlanCritic, about: &Inspection, kept: &mut dyn Transcript, observer: &dyn CrawlObserver,
/// ) -> Result<(), DebateError> {
///     let (rounds, time) = (DebateRounds::default(), Duration::from_secs(600));
///     debate(gpt, claude, about, rounds, time, "crawl-1", kept, observer).await?;
///     Ok(())
/// }
/// ```
///
/// The reverse order does not compile:
///
/// ```compile_fail
/// use std::time::Duration;
///
/// use crucible_crawl::{PlanCritic, DebateError, DebateRounds, PlanAuthor, Inspection, Transcript, CrawlObserver, debate};
///
/// async fn held(
///     gpt: &PlanAuthor, claude: &PlanCritic, about: &Inspection, kept: &mut dyn Transcript, observer: &dyn CrawlObserver,
/// ) -> Result<(), DebateError> {
///     let (rounds, time) = (DebateRounds::default(), Duration::from_secs(600));
///     debate(claude, gpt, about, rounds, time, "crawl-1", kept, observer).await?;
///     Ok(())
/// }
/// ```
///
/// It has no method for a draft, a revision or a synthesis:
///
/// ```compile_fail
/// use crucible_crawl::{PlanCritic, DebateError, DebateContext};
///
/// async fn drafted(claude: &PlanCritic, floor: &mut DebateContext<'_>) -> Result<(), DebateError> {
///     claude.draft(floor).await?;
///     Ok(())
/// }
/// ```
///
/// ```compile_fail
/// use crucible_crawl::{PlanCritic, DebateError, DebateContext, PlanCritique, PlanDraft};
///
/// async fn revised(
///     claude: &PlanCritic, draft: &PlanDraft, critique: &PlanCritique, floor: &mut DebateContext<'_>,
/// ) -> Result<(), DebateError> {
///     claude.revise(draft, critique, floor).await?;
///     Ok(())
/// }
/// ```
///
/// ```compile_fail
/// use crucible_crawl::{PlanCritic, DebateError, DebateContext, PlanCritique, PlanDraft};
///
/// async fn settled(
///     claude: &PlanCritic, draft: &PlanDraft, critique: &PlanCritique, floor: &mut DebateContext<'_>,
/// ) -> Result<(), DebateError> {
///     claude.synthesise("", draft, critique, floor).await?;
///     Ok(())
/// }
/// ```
///
/// [`PlanAuthor`] has these methods:
///
/// ```no_run
/// use crucible_crawl::{DebateError, DebateContext, PlanAuthor, PlanCritique, PlanDraft};
///
/// async fn settled(
///     gpt: &PlanAuthor, draft: &PlanDraft, critique: &PlanCritique, floor: &mut DebateContext<'_>,
/// ) -> Result<(), DebateError> {
///     gpt.draft(floor).await?;
///     gpt.revise(draft, critique, floor).await?;
///     gpt.synthesise("", draft, critique, floor).await?;
///     Ok(())
/// }
/// ```
pub struct PlanCritic(ModelClient);

/// A plan in debate: a draft or a revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanDraft(pub(super) ModelReply<DraftReply>);

/// A critique of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanCritique(pub(super) ModelReply<CritiqueReply>);

/// The final plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanSynthesis(pub(super) ModelReply<SynthesisReply>);

impl PlanAuthor {
    /// Assigns this model to the role.
    #[must_use]
    pub fn new(client: ModelClient) -> Self {
        Self(client)
    }

    /// Requests the first draft: the beginning of round 1.
    ///
    /// # Errors
    ///
    /// See [`DebateError`].
    pub async fn draft(&self, floor: &mut DebateContext<'_>) -> Result<PlanDraft, DebateError> {
        floor.round = 1;
        let material = material::of_draft(floor.inspection);
        floor
            .ask(&self.0, DebatePhase::Draft, &material)
            .await
            .map(PlanDraft)
    }

    /// Requests a revision of a plan after its critique: the beginning of the next round.
    ///
    /// # Errors
    ///
    /// See [`DebateError`].
    pub async fn revise(
        &self,
        draft: &PlanDraft,
        critique: &PlanCritique,
        floor: &mut DebateContext<'_>,
    ) -> Result<PlanDraft, DebateError> {
        floor.round = floor.round.saturating_add(1);
        let material = [
            piece(
                Slot::Plan,
                "the plan",
                serde_json::to_string_pretty(&draft.0.reply)?,
            ),
            piece(
                Slot::Critique,
                "the review",
                serde_json::to_string_pretty(&critique.0.reply)?,
            ),
        ];
        floor
            .ask(&self.0, DebatePhase::Revision, &material)
            .await
            .map(PlanDraft)
    }

    /// Requests the final plan from the summary of the debate, the last plan and its unresolved issues, without the earlier
    /// messages.
    ///
    /// # Errors
    ///
    /// See [`DebateError`].
    pub async fn synthesise(
        &self,
        summary: &str,
        last: &PlanDraft,
        critique: &PlanCritique,
        floor: &mut DebateContext<'_>,
    ) -> Result<PlanSynthesis, DebateError> {
        let unresolved: Vec<String> = critique.issues().iter().map(sentence).collect();
        let unresolved = if unresolved.is_empty() {
            "none".to_owned()
        } else {
            unresolved.join("\n")
        };
        let material = [
            piece(Slot::Summary, "summary of the debate", summary.to_owned()),
            piece(
                Slot::Plan,
                "the last revision",
                serde_json::to_string_pretty(&last.0.reply)?,
            ),
            piece(Slot::Unresolved, "unresolved issues", unresolved),
        ];
        floor
            .ask(&self.0, DebatePhase::Synthesis, &material)
            .await
            .map(PlanSynthesis)
    }
}

impl PlanCritic {
    /// Assigns this model to the role.
    #[must_use]
    pub fn new(client: ModelClient) -> Self {
        Self(client)
    }

    /// Requests a critique of a plan: the end of its round.
    ///
    /// # Errors
    ///
    /// See [`DebateError`].
    pub async fn critique(
        &self,
        draft: &PlanDraft,
        floor: &mut DebateContext<'_>,
    ) -> Result<PlanCritique, DebateError> {
        let mut material = material::of_critique(floor.inspection);
        let plan = serde_json::to_string_pretty(&draft.0.reply)?;
        material.push(piece(Slot::Plan, "proposed plan", plan));
        let critique = PlanCritique(floor.ask(&self.0, DebatePhase::Critique, &material).await?);
        if critique.0.reply.approved && critique.0.reply.has_error() {
            let round = floor.round;
            floor.note(format!(
                "claude approved the plan of round {round} and named an error in it; that counts as not approved"
            ));
        }
        Ok(critique)
    }
}

impl PlanCritique {
    /// Whether the plan is approved: the critic says so, and names no error.
    #[must_use]
    pub(crate) fn is_approval(&self) -> bool {
        self.0.reply.is_approval()
    }

    pub(super) fn issues(&self) -> &[Issue] {
        &self.0.reply.issues
    }
}
