//! The events of a run by name, and the keys under which an attempt's steps are recorded: the one place for both, for who
//! writes them and for who reads them.

use crucible_ledger::EventRecord;

/// The kinds of events of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum EventKind {
    /// The run was made.
    RunCreated,
    /// What is to be achieved.
    GoalStated,
    /// The recording that answers was taken.
    RecordingTaken,
    /// How far the run may go is written down.
    GuardrailsWritten,
    /// Who serves which role is written down.
    DispatchWritten,
    /// The repository was inspected, and its gates ran once.
    RepositoryAnalysed,
    /// Existing knowledge was looked up: workflows and earlier runs.
    WorkflowFound,
    /// Pages that a researcher fetched were accepted.
    PagesTaken,
    /// Files that were left out are recorded.
    FilesLeftOut,
    /// The chair asked for files.
    FilesRequested,
    /// What the model may see is packed.
    ContextPacked,
    /// The reasons are written down.
    ReasonsWritten,
    /// The expected results are written down.
    ResultsExpected,
    /// The plan is drafted.
    PlanDrafted,
    /// The contract guardian has spoken.
    ContractReviewed,
    /// The cost controller has spoken.
    CostReviewed,
    /// A second opinion on the contract was given.
    ContractReviewedAgain,
    /// A second opinion on the cost was given.
    CostReviewedAgain,
    /// The plan is written as it will be signed.
    PlanWritten,
    /// The plan is signed.
    PlanSigned,
    /// The user allows more calls.
    BudgetRaised,
    /// A person approved the plan with a key.
    PlanApproved,
    /// A person permits the run to change more.
    ScopeAllowed,
    /// A prompt for a person was written to `outbox/`.
    OutboxPrompted,
    /// The model is asked.
    ModelAsked,
    /// The model has answered.
    ModelAnswered,
    /// The model has no answer: the call failed, or the budget did not carry it.
    ModelFailed,
    /// An answer that proposes no change became an artifact, or was refused.
    AnswerTaken,
    /// The answer amounts to a patch.
    PatchProposed,
    /// The patch gate lets it through.
    PatchAccepted,
    /// The patch gate refuses the answer; the attempt is over.
    PatchRejected,
    /// The gates begin.
    VerifyStarted,
    /// The objections against a change are judged.
    ObjectionsJudged,
    /// The answer requested more files; the attempt is over.
    MoreFilesRequested,
    /// The attempt is over.
    AttemptEnded,
    /// The same of an attempt that verifies an earlier answer again, so that no answer is used up.
    ChangeVerifiedAgain,
    /// A gate refuses the change.
    VerifyFailed,
    /// Every gate lets a candidate through; it is compared with the others.
    CandidatePassed,
    /// Every gate lets the change through.
    VerifyPassed,
    /// The failure bundle was made.
    BundleCreated,
    /// The run failed for good.
    RunFailed,
    /// The service that proposes changes declined.
    RunDeclined,
    /// All gates ran before a landing, including those of level `full`.
    FullGatesRun,
    /// The held-out tests ran before a landing.
    HeldOutRun,
    /// The commit is determined and about to be made.
    LandingStarted,
    /// The evidence for the requirements of the task is judged.
    EvidenceJudged,
    /// The statements about the commit are signed.
    Attested,
    /// The commit is made.
    Landed,
}

impl EventKind {
    /// Every kind, in the order in which a run meets them.
    pub(crate) const ALL: [Self; 48] = [
        Self::RunCreated,
        Self::GoalStated,
        Self::RecordingTaken,
        Self::GuardrailsWritten,
        Self::DispatchWritten,
        Self::RepositoryAnalysed,
        Self::WorkflowFound,
        Self::PagesTaken,
        Self::FilesLeftOut,
        Self::FilesRequested,
        Self::ContextPacked,
        Self::ReasonsWritten,
        Self::ResultsExpected,
        Self::PlanDrafted,
        Self::ContractReviewed,
        Self::CostReviewed,
        Self::ContractReviewedAgain,
        Self::CostReviewedAgain,
        Self::PlanWritten,
        Self::PlanSigned,
        Self::BudgetRaised,
        Self::PlanApproved,
        Self::ScopeAllowed,
        Self::OutboxPrompted,
        Self::ModelAsked,
        Self::ModelAnswered,
        Self::ModelFailed,
        Self::AnswerTaken,
        Self::PatchProposed,
        Self::PatchAccepted,
        Self::PatchRejected,
        Self::VerifyStarted,
        Self::ObjectionsJudged,
        Self::MoreFilesRequested,
        Self::AttemptEnded,
        Self::ChangeVerifiedAgain,
        Self::VerifyFailed,
        Self::CandidatePassed,
        Self::VerifyPassed,
        Self::BundleCreated,
        Self::RunFailed,
        Self::RunDeclined,
        Self::FullGatesRun,
        Self::HeldOutRun,
        Self::LandingStarted,
        Self::EvidenceJudged,
        Self::Attested,
        Self::Landed,
    ];

    /// The events of the reviews of a plan, in the order of [`crate::layout::REVIEWS`].
    pub(crate) const REVIEWS: [Self; 4] = [
        Self::ContractReviewed,
        Self::CostReviewed,
        Self::ContractReviewedAgain,
        Self::CostReviewedAgain,
    ];

    /// Returns the name used in the ledger and in `events.jsonl`.
    #[must_use]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::RunCreated => "RUN_CREATED",
            Self::GoalStated => "GOAL_STATED",
            Self::RecordingTaken => "RECORDING_TAKEN",
            Self::GuardrailsWritten => "GUARDRAILS_WRITTEN",
            Self::DispatchWritten => "DISPATCH_WRITTEN",
            Self::RepositoryAnalysed => "REPOSITORY_ANALYSED",
            Self::WorkflowFound => "WORKFLOW_FOUND",
            Self::PagesTaken => "PAGES_TAKEN",
            Self::FilesLeftOut => "FILES_LEFT_OUT",
            Self::FilesRequested => "FILES_REQUESTED",
            Self::ContextPacked => "CONTEXT_PACKED",
            Self::ReasonsWritten => "REASONS_WRITTEN",
            Self::ResultsExpected => "RESULTS_EXPECTED",
            Self::PlanDrafted => "PLAN_DRAFTED",
            Self::ContractReviewed => "CONTRACT_REVIEWED",
            Self::CostReviewed => "COST_REVIEWED",
            Self::ContractReviewedAgain => "CONTRACT_REVIEWED_AGAIN",
            Self::CostReviewedAgain => "COST_REVIEWED_AGAIN",
            Self::PlanWritten => "PLAN_WRITTEN",
            Self::PlanSigned => "PLAN_SIGNED",
            Self::BudgetRaised => "BUDGET_RAISED",
            Self::PlanApproved => "PLAN_APPROVED",
            Self::ScopeAllowed => "SCOPE_ALLOWED",
            Self::OutboxPrompted => "OUTBOX_PROMPTED",
            Self::ModelAsked => "MODEL_ASKED",
            Self::ModelAnswered => "MODEL_ANSWERED",
            Self::ModelFailed => "MODEL_FAILED",
            Self::AnswerTaken => "ANSWER_TAKEN",
            Self::PatchProposed => "PATCH_PROPOSED",
            Self::PatchAccepted => "PATCH_ACCEPTED",
            Self::PatchRejected => "PATCH_REJECTED",
            Self::VerifyStarted => "VERIFY_STARTED",
            Self::ObjectionsJudged => "OBJECTIONS_JUDGED",
            Self::MoreFilesRequested => "MORE_FILES_REQUESTED",
            Self::AttemptEnded => "ATTEMPT_ENDED",
            Self::ChangeVerifiedAgain => "CHANGE_VERIFIED_AGAIN",
            Self::VerifyFailed => "VERIFY_FAILED",
            Self::CandidatePassed => "CANDIDATE_PASSED",
            Self::VerifyPassed => "VERIFY_PASSED",
            Self::BundleCreated => "BUNDLE_CREATED",
            Self::RunFailed => "RUN_FAILED",
            Self::RunDeclined => "RUN_DECLINED",
            Self::FullGatesRun => "FULL_GATES_RUN",
            Self::HeldOutRun => "HELD_OUT_RUN",
            Self::LandingStarted => "LANDING_STARTED",
            Self::EvidenceJudged => "EVIDENCE_JUDGED",
            Self::Attested => "ATTESTED",
            Self::Landed => "LANDED",
        }
    }

    /// Returns the kind with this name, if it is a known one.
    #[must_use]
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// The key of the event that records the start record, `run.json`.
pub const RECORD_KEY: &str = "run";

/// The key of the event that a run was declined.
pub(crate) const DECLINED: &str = "declined";

/// Returns the key for the first time a step's question is asked.
pub(crate) fn asked_key(step: &str) -> String {
    format!("{step}-asked")
}

/// The key under which the answer to the question of a step is recorded.
pub(crate) fn answered_key(step: &str) -> String {
    format!("{step}{ANSWERED}")
}

/// The step of such a key.
pub(crate) fn answered_step(key: &str) -> Option<&str> {
    key.strip_suffix(ANSWERED)
}

/// The key under which it is recorded that the answer to the question of a step is used up.
pub(crate) fn taken_key(step: &str) -> String {
    format!("{step}-taken")
}

/// Returns the key for asking a person a step's question.
pub(crate) fn prompted_key(step: &str) -> String {
    format!("{step}{PROMPTED}")
}

/// The step of such a key.
pub(crate) fn prompted_step(key: &str) -> Option<&str> {
    key.strip_suffix(PROMPTED)
}

const ANSWERED: &str = "-answered";
const PROMPTED: &str = "-prompted";

/// A step of an attempt that is recorded once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttemptStep {
    /// The requested files are packed.
    Packed,
    /// The answer amounts to a patch.
    Proposed,
    /// The patch gate let it through.
    Accepted,
    /// The gates began.
    Verify,
    /// The objections against it were judged.
    Objections,
    /// The attempt ended.
    Ended,
    /// The gates' report.
    Report,
    /// The failure bundle.
    Bundle,
}

/// The key under which a step of attempt `number` is recorded.
pub(crate) fn attempt_key(number: u64, step: AttemptStep) -> String {
    let step = match step {
        AttemptStep::Packed => "packed",
        AttemptStep::Proposed => "proposed",
        AttemptStep::Accepted => "accepted",
        AttemptStep::Verify => "verify",
        AttemptStep::Objections => "objections",
        AttemptStep::Ended => "ended",
        AttemptStep::Report => "report",
        AttemptStep::Bundle => "bundle",
    };
    format!("{}-{step}", attempt_step(number))
}

/// The key under which it is recorded that the gates were run for a landing, for the `number`th time.
pub(crate) fn full_gates_key(number: u64) -> String {
    format!("full-gates-{number}")
}

/// Returns how often these events record a run of the gates for a landing.
pub(crate) fn full_gates_runs(events: &[EventRecord]) -> u64 {
    events
        .iter()
        .filter(|event| event.event == EventKind::FullGatesRun.name())
        .count() as u64
}

/// The step that attempt `number` is, as a question.
pub(crate) fn attempt_step(number: u64) -> String {
    format!("attempt-{number}")
}

/// The number of the attempt that such a key, or the key of a question of an attempt, belongs to.
pub(crate) fn attempt_number(key: &str) -> Option<u64> {
    let (number, _) = key.strip_prefix("attempt-")?.split_once('-')?;
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_kind_names_are_unique() {
        for (at, kind) in EventKind::ALL.into_iter().enumerate() {
            assert_eq!(EventKind::parse(kind.name()), Some(kind));
            assert_eq!(kind as usize, at);
        }
        assert_eq!(
            EventKind::ALL.last().map(|last| *last as usize + 1),
            Some(EventKind::ALL.len())
        );
        assert_eq!(EventKind::parse("NOTED"), None);
        assert_eq!(attempt_key(3, AttemptStep::Ended), "attempt-3-ended");
        assert_eq!(asked_key(&attempt_step(3)), "attempt-3-asked");
        assert_eq!(attempt_number("attempt-3-asked-2"), Some(3));
        assert_eq!(attempt_number("attempt-x-asked"), None);
        assert_eq!(attempt_number("plan-1-asked"), None);
        assert_eq!(answered_step(&answered_key("plan-1")), Some("plan-1"));
        assert_eq!(prompted_step(&prompted_key("plan-1")), Some("plan-1"));
    }
}
