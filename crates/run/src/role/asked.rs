//! What chair and reviewers are asked when no code serves them, and how their answers are read. Pure.
//!
//! A chair proposes: which files are needed, and where the change may go. What it may not choose stays with code: the gates,
//! the budgets, and everything that only the operator may name.

use crucible_llm::Message;
use crucible_model::{Code, Digest, Finding, PromptBuilder, RepoPath, Untrusted, Verdict};
use crucible_pack::{ContextPack, FileRequest};

use crate::analysis::Analysis;
use crate::contract::{Plan, Review, RunRecord, RunRole};
use crate::role::patchmaker::Brief;

const NO_REVIEW: Code = Code::new("run-review-unclear");

/// Asks a chair for the files that are needed.
pub(crate) fn files_question(
    record: &RunRecord,
    _analysis: &Analysis,
    _ranked: &FileRequest,
    _tracked: &[(RepoPath, u64)],
    _brief: Option<&Brief>,
) -> Vec<Message> {
    vec![Message::user(PromptBuilder::new().ours("Goal: ").operator(&record.goal).build())]
}

/// Reads which files a chair wants. What the operator named comes first whatever it says, and the budget is the run's.
pub(crate) fn read_files(
    _answer: &Untrusted,
    _record: &RunRecord,
    ranked: &FileRequest,
) -> Result<FileRequest, Verdict> {
    Ok(ranked.clone())
}

/// Asks a chair for a plan.
pub(crate) fn plan_question(
    record: &RunRecord,
    _analysis: &Analysis,
    _pack: &ContextPack,
    _brief: Option<&Brief>,
) -> Vec<Message> {
    vec![Message::user(PromptBuilder::new().ours("Goal: ").operator(&record.goal).build())]
}

/// Reads the plan of a chair: its scope and its words. The rest is that of `by_code`.
pub(crate) fn read_plan(
    _answer: &Untrusted,
    by_code: &Plan,
    _pack: &ContextPack,
    _gate_files: &[RepoPath],
) -> Result<Plan, Verdict> {
    Ok(by_code.clone())
}

/// Asks a reviewer for a second opinion on a plan.
pub(crate) fn review_question(
    record: &RunRecord,
    _role: RunRole,
    _plan: &Plan,
    _pack: &ContextPack,
    _brief: Option<&Brief>,
) -> Vec<Message> {
    vec![Message::user(PromptBuilder::new().ours("Goal: ").operator(&record.goal).build())]
}

/// Reads a second opinion; `subject` is the digest of the draft that it is about, which code fills in.
pub(crate) fn read_review(_answer: &Untrusted, _role: RunRole, _subject: Digest) -> Result<Review, Verdict> {
    let hint = "Answer with a line `Verdict: APPROVE` or `Verdict: BLOCK`.";
    Err(Verdict::new(vec![Finding::error(NO_REVIEW, "the review", hint)]))
}
