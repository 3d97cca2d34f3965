//! How a role is asked that no model serves: a person through `outbox/`, or a configured command (seed 003 K, K.1, L).
//!
//! Both get the same question: what is owed, in which form, within which limits, and the four evidence files that say all
//! there is to know. The question holds no absolute path, so a replay puts the same one; the file that a person reads has
//! one on top.

pub(crate) mod agent;
pub(crate) mod answer_equality;
pub(crate) mod evidence;
pub(crate) mod outbox;

pub use agent::{AgentBackend, check_agents};
pub use outbox::OutboxBackend;

/// What a role owes, by name; in events, prompts and the names of prompt files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// The chair: which files are needed.
    FileRequest,
    /// The librarian: the files that were asked for, word for word.
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
        }
    }
}
