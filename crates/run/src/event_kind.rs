//! The events of a run by name, and the keys under which an attempt's steps are recorded: the one place for both, for who
//! writes them and for who reads them.

/// What an event of a run tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
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
    /// The repository was looked at, and its gates ran once.
    RepositoryAnalysed,
    /// What nobody asks for is written down.
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
    /// The plan stands as it is to be signed.
    PlanWritten,
    /// The plan is signed.
    PlanSigned,
    /// The user allows more calls.
    BudgetRaised,
    /// The model is asked.
    ModelAsked,
    /// The model has answered.
    ModelAnswered,
    /// The model has no answer: the call failed, or the budget did not carry it.
    ModelFailed,
    /// The answer amounts to a patch.
    PatchProposed,
    /// The patch gate lets it through.
    PatchAccepted,
    /// The patch gate refuses the answer; the attempt is over.
    PatchRejected,
    /// The gates begin.
    VerifyStarted,
    /// The attempt is over.
    AttemptEnded,
    /// A gate refuses the change.
    VerifyFailed,
    /// Every gate lets the change through.
    VerifyPassed,
    /// The failure bundle was made.
    BundleCreated,
    /// The run failed for good.
    RunFailed,
    /// The commit is fixed and about to be made.
    LandingStarted,
    /// The commit is made.
    Landed,
}

impl EventKind {
    /// Every kind, in the order in which a run meets them.
    pub const ALL: [Self; 31] = [
        Self::RunCreated,
        Self::GoalStated,
        Self::RecordingTaken,
        Self::GuardrailsWritten,
        Self::DispatchWritten,
        Self::RepositoryAnalysed,
        Self::FilesLeftOut,
        Self::FilesRequested,
        Self::ContextPacked,
        Self::ReasonsWritten,
        Self::ResultsExpected,
        Self::PlanDrafted,
        Self::ContractReviewed,
        Self::CostReviewed,
        Self::PlanWritten,
        Self::PlanSigned,
        Self::BudgetRaised,
        Self::ModelAsked,
        Self::ModelAnswered,
        Self::ModelFailed,
        Self::PatchProposed,
        Self::PatchAccepted,
        Self::PatchRejected,
        Self::VerifyStarted,
        Self::AttemptEnded,
        Self::VerifyFailed,
        Self::VerifyPassed,
        Self::BundleCreated,
        Self::RunFailed,
        Self::LandingStarted,
        Self::Landed,
    ];

    /// The name that stands in the ledger and in `events.jsonl`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RunCreated => "RUN_CREATED",
            Self::GoalStated => "GOAL_STATED",
            Self::RecordingTaken => "RECORDING_TAKEN",
            Self::GuardrailsWritten => "GUARDRAILS_WRITTEN",
            Self::DispatchWritten => "DISPATCH_WRITTEN",
            Self::RepositoryAnalysed => "REPOSITORY_ANALYSED",
            Self::FilesLeftOut => "FILES_LEFT_OUT",
            Self::FilesRequested => "FILES_REQUESTED",
            Self::ContextPacked => "CONTEXT_PACKED",
            Self::ReasonsWritten => "REASONS_WRITTEN",
            Self::ResultsExpected => "RESULTS_EXPECTED",
            Self::PlanDrafted => "PLAN_DRAFTED",
            Self::ContractReviewed => "CONTRACT_REVIEWED",
            Self::CostReviewed => "COST_REVIEWED",
            Self::PlanWritten => "PLAN_WRITTEN",
            Self::PlanSigned => "PLAN_SIGNED",
            Self::BudgetRaised => "BUDGET_RAISED",
            Self::ModelAsked => "MODEL_ASKED",
            Self::ModelAnswered => "MODEL_ANSWERED",
            Self::ModelFailed => "MODEL_FAILED",
            Self::PatchProposed => "PATCH_PROPOSED",
            Self::PatchAccepted => "PATCH_ACCEPTED",
            Self::PatchRejected => "PATCH_REJECTED",
            Self::VerifyStarted => "VERIFY_STARTED",
            Self::AttemptEnded => "ATTEMPT_ENDED",
            Self::VerifyFailed => "VERIFY_FAILED",
            Self::VerifyPassed => "VERIFY_PASSED",
            Self::BundleCreated => "BUNDLE_CREATED",
            Self::RunFailed => "RUN_FAILED",
            Self::LandingStarted => "LANDING_STARTED",
            Self::Landed => "LANDED",
        }
    }

    /// The kind of this name; nothing where it is none of ours.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A step of an attempt that is recorded once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttemptStep {
    /// The model was asked.
    Asked,
    /// It answered.
    Answered,
    /// The answer amounts to a patch.
    Proposed,
    /// The patch gate let it through.
    Accepted,
    /// The gates began.
    Verify,
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
        AttemptStep::Asked => "asked",
        AttemptStep::Answered => "answered",
        AttemptStep::Proposed => "proposed",
        AttemptStep::Accepted => "accepted",
        AttemptStep::Verify => "verify",
        AttemptStep::Ended => "ended",
        AttemptStep::Report => "report",
        AttemptStep::Bundle => "bundle",
    };
    format!("attempt-{number}-{step}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_found_by_its_name_and_no_other() {
        for (at, kind) in EventKind::ALL.into_iter().enumerate() {
            assert_eq!(EventKind::of(kind.name()), Some(kind));
            assert_eq!(kind as usize, at);
        }
        assert_eq!(EventKind::ALL.last().map(|last| *last as usize + 1), Some(EventKind::ALL.len()));
        assert_eq!(EventKind::of("NOTED"), None);
        assert_eq!(attempt_key(3, AttemptStep::Asked), "attempt-3-asked");
    }
}
