//! One run: everything that a page, a report or a trace shows of it.

use crucible_ledger::Ledger;
use crucible_model::Digest;
use crucible_run::{
    AttemptEnd, BudgetStatus, RunDir, RunDocuments, RunError, RunState, TimelinePart, documents,
    first_end, timeline,
};
use serde::{Deserialize, Serialize};

use crate::attempt::{AttemptView, FindingView};
use crate::call::{CallView, ExchangeView};
use crate::check::HeldOutView;
use crate::context::ContextView;
use crate::council::CouncilView;
use crate::event::{ChainView, EventView};
use crate::landing::{LandingView, StatementView};
use crate::list::RunSummary;
use crate::plan::PlanView;
use crate::text::RedactedText;
use crate::verification::{GateView, VerificationView};

/// One run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunView {
    /// `crucible-run-view-v1`.
    pub schema_version: String,
    /// Its row in the list of runs; `totals` there equal [`RunView::budgets`].
    #[serde(flatten)]
    pub summary: RunSummary,
    /// Its state as a value of the closed list.
    pub derived_state: RunState,
    /// The process that works on it, if any.
    pub at_work: Option<RedactedText>,
    /// The commit that it starts from.
    pub base_commit: RedactedText,
    /// The branch that the change lands on, in words.
    pub branch: RedactedText,
    /// The run's directory.
    pub directory: RedactedText,
    /// What to do next, one sentence.
    pub next: RedactedText,
    /// What it waits for, if it does.
    pub owed: Option<PendingView>,
    /// Why it failed, if it did.
    pub failure: Option<FindingView>,
    /// How much of its budgets is used.
    pub budgets: BudgetStatus,
    /// Its artifacts with their digests.
    pub artifacts: Vec<ArtifactView>,
    /// What the model saw and what was left out.
    pub context: Option<ContextView>,
    /// The gates before any change.
    pub baseline: Vec<GateView>,
    /// The plan with its approvals.
    pub plan: Option<PlanView>,
    /// Its attempts that have ended, in order.
    pub attempts: Vec<AttemptView>,
    /// What the gates showed before the landing, if they ran again.
    pub landing_verification: Option<VerificationView>,
    /// The held-out tests, if the run has any.
    #[serde(default)]
    pub held_out: Option<HeldOutView>,
    /// The commit, if the change landed.
    pub landing: Option<LandingView>,
    /// The signed statements about the commit.
    pub statements: Vec<StatementView>,
    /// Its model calls, the source of all totals.
    pub model_calls: Vec<CallView>,
    /// Its questions to models, as its receipt has them.
    pub exchanges: Vec<ExchangeView>,
    /// The councils that answered for its roles.
    pub councils: Vec<CouncilView>,
    /// Its events.
    pub events: Vec<EventView>,
    /// Its stages and attempts in time.
    #[serde(default)]
    pub parts: Vec<TimelinePart>,
    /// The number of the event that ended it for the first time, if one did.
    #[serde(default)]
    pub first_end: Option<u64>,
    /// What the chain says about it.
    pub chain: ChainView,
    /// Documents that cannot be parsed.
    pub unreadable: Vec<RedactedText>,
}

/// What a run waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingView {
    /// The role that owes it.
    pub role: RedactedText,
    /// What is requested.
    pub action: RedactedText,
    /// Where the answer is expected, in the run directory.
    pub target: RedactedText,
}

/// An artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactView {
    /// Its path in the run directory.
    pub path: RedactedText,
    /// Its digest; absent if it does not exist.
    pub digest: Option<Digest>,
}

impl RunView {
    /// Reads a run; `None` if the list of runs in the ledger does not have it.
    ///
    /// # Errors
    ///
    /// Fails when the ledger or a file of the run cannot be read.
    pub fn read(dir: &RunDir, ledger: &Ledger) -> Result<Option<Self>, RunError> {
        ledger.snapshot(|ledger| {
            let read = documents(dir, ledger)?;
            let run = &read.status.run.run_id;
            let Some(mut summary) = RunSummary::read(ledger, run)? else {
                return Ok(None);
            };
            // Both are equal, unless somebody edited the row; the page says so.
            summary.set_state(read.status.state);
            let head = ledger.head()?;
            let altered = ledger.altered_events(run)?;
            let chain = ChainView::new(head, altered, &read.row_faults, &read.status.edited);
            Ok(Some(Self::new(&read, summary, chain)))
        })
    }

    fn new(read: &RunDocuments, summary: RunSummary, chain: ChainView) -> Self {
        let status = &read.status;
        let text = RedactedText::new;
        Self {
            schema_version: "crucible-run-view-v1".to_owned(),
            summary,
            derived_state: status.state,
            at_work: read.at_work.as_deref().map(text),
            base_commit: text(status.run.base_commit.as_ref()),
            branch: text(&status.run.branch.to_string()),
            directory: text(&status.directory.to_string_lossy()),
            next: text(&status.next),
            owed: status.owed.as_ref().map(|owed| PendingView {
                role: text(&owed.role),
                action: text(&owed.action),
                target: text(&owed.target),
            }),
            failure: status.failure.as_ref().map(FindingView::from_finding),
            budgets: status.budgets,
            artifacts: status
                .artifacts
                .iter()
                .map(|artifact| ArtifactView {
                    path: text(artifact.path),
                    digest: artifact.digest,
                })
                .collect(),
            context: ContextView::from_documents(read),
            baseline: read.baseline.iter().map(GateView::from_gate).collect(),
            plan: PlanView::from_documents(read),
            attempts: read
                .attempts
                .iter()
                .map(AttemptView::from_attempt)
                .collect(),
            landing_verification: read
                .landing_report
                .as_ref()
                .map(VerificationView::from_report),
            held_out: HeldOutView::new(
                status.run.settings.held_out.files.len(),
                read.held_out.as_ref(),
            ),
            landing: read.landing.as_ref().map(LandingView::from_landing),
            statements: read
                .statements
                .iter()
                .map(|payload| StatementView::from_payload(payload))
                .collect(),
            model_calls: read.calls.iter().map(CallView::of_row).collect(),
            exchanges: read
                .exchanges
                .iter()
                .map(ExchangeView::from_exchange)
                .collect(),
            councils: read
                .events
                .iter()
                .filter_map(CouncilView::from_event)
                .collect(),
            events: read.events.iter().map(EventView::from_event).collect(),
            parts: timeline(&read.events),
            first_end: first_end(&read.events),
            chain,
            unreadable: RedactedText::all(&read.unreadable),
        }
    }

    /// Whether it has work left that no person owes, and no process works on it.
    #[must_use]
    pub fn is_left(&self) -> bool {
        let is_blocked = self.derived_state == RunState::Blocked;
        self.at_work.is_none() && !self.derived_state.is_end() && !is_blocked
    }

    /// The attempt that can land: the one that the gates verified, as it was recorded.
    #[must_use]
    pub fn verified_attempt(&self) -> Option<&AttemptView> {
        let is_verified = self.derived_state == RunState::Verified;
        let mut attempts = self.attempts.iter().rev().filter(|_| is_verified);
        attempts.find(|attempt| attempt.end == AttemptEnd::Verified && !attempt.is_edited)
    }

    /// The digest of the plan, if a person can approve it now.
    #[must_use]
    pub fn plan_to_approve(&self) -> Option<Digest> {
        let has_plan = matches!(
            self.derived_state,
            RunState::Signed | RunState::Patched | RunState::Verified
        );
        let plan = self.plan.as_ref();
        let plan = plan.filter(|plan| has_plan && plan.is_approved);
        plan.map(|plan| plan.digest)
    }
}
