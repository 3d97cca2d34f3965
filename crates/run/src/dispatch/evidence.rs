//! The four evidence files of `outbox/` (seed 003 K.1), and the question that is made of them. Pure.

use crucible_llm::Message;
use crucible_model::{PromptBuilder, Untrusted};
use crucible_pack::ContextPack;

use crate::analysis::GateResult;
use crate::contract::{Plan, RunRecord, RunRole};
use crate::dispatch::Action;
use crate::role::patchmaker::Brief;

/// What is known when a role is asked; what is not there yet is left out.
#[derive(Clone, Copy, Default)]
pub(crate) struct Evidence<'e> {
    /// What may be seen of the repository.
    pub(crate) pack: Option<&'e ContextPack>,
    /// The plan.
    pub(crate) plan: Option<&'e Plan>,
    /// How the gates fared before any change.
    pub(crate) baseline: &'e [GateResult],
    /// What went wrong with the answer before.
    pub(crate) brief: Option<&'e Brief>,
    /// What is known from elsewhere: earlier runs, workflows, pages; the text of `EXTERNALS.md`.
    pub(crate) externals: &'e str,
}

/// The evidence files: name in `outbox/`, and text.
pub(crate) fn files(record: &RunRecord, evidence: &Evidence<'_>) -> [(&'static str, String); 4] {
    let _ = evidence.baseline;
    let context = evidence.pack.map_or_else(String::new, |pack| pack.summary.clone());
    let constraints = evidence.plan.map_or_else(|| record.goal.clone(), Plan::render);
    let fix = evidence.brief.map_or_else(String::new, |brief| brief.reasons.join("\n"));
    [
        ("CONTEXT.md", context),
        ("CONSTRAINTS.md", constraints),
        ("FIX_BRIEF.md", fix),
        ("EXTERNALS.md", evidence.externals.to_owned()),
    ]
}

/// The question that is put to a person or a command.
pub(crate) fn question(
    record: &RunRecord,
    role: RunRole,
    action: Action,
    target: &str,
    files: &[(&'static str, String)],
) -> Vec<Message> {
    let mut prompt = PromptBuilder::new()
        .ours("Role: ")
        .ours(role.name())
        .ours("\nAction: ")
        .ours(action.name())
        .ours("\nTarget-Path: ")
        .operator(target)
        .ours("\n\nGoal: ")
        .operator(&record.goal)
        .ours("\n");
    for (name, text) in files {
        prompt = prompt.untrusted(name, &Untrusted::new(text.clone()));
    }
    vec![Message::user(prompt.build())]
}
