//! What a role is asked for.

/// What a role owes, by name; in events, prompts and the names of prompt files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// The chair: which files are needed.
    FileRequest,
    /// The librarian: the requested files, verbatim.
    ContextPack,
    /// The chair: the plan.
    PlanDraft,
    /// The researcher: pages that help.
    FindWeb,
    /// The contract guardian or the cost controller: a second opinion.
    Review,
    /// The patchmaker: the change.
    Patch,
    /// The fixer: the change once more.
    Fix,
    /// The objector: tests against a change.
    Object,
    /// The second author: what such a test must expect.
    Expect,
}

impl Action {
    /// Its name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::FileRequest => "file_request",
            Self::ContextPack => "context_pack",
            Self::PlanDraft => "plan_draft",
            Self::FindWeb => "find_web",
            Self::Review => "review",
            Self::Patch => "patch",
            Self::Fix => "fix",
            Self::Object => "object",
            Self::Expect => "expect",
        }
    }

    /// Whether the question is complete in itself, so that nobody gets evidence files beside it.
    pub(crate) const fn is_self_contained(self) -> bool {
        matches!(self, Self::Object | Self::Expect)
    }
}
