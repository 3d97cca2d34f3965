//! The patchmaker and the fixer: how a model is asked for a change.
//!
//! The words are ours; everything from the repository, the gates and earlier answers is fenced. A prompt holds no
//! instant, no absolute path and nothing random, so the same run asks the same question again on replay.

use crucible_llm::Message;
use crucible_model::{EditFormat, PromptBuilder, PromptText, Untrusted};
use crucible_pack::ContextPack;

use crate::analysis::GateResult;
use crate::contract::Plan;

/// What went wrong with the attempt before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Brief {
    /// One line for each reason, already bounded.
    pub(crate) reasons: Vec<String>,
    /// What the gates printed, bounded and normalised; empty where they did not run.
    pub(crate) output: String,
    /// The change that was refused, as a patch, bounded; empty where there was none. The whole answer is not shown:
    /// small models copy what they see.
    pub(crate) patch: String,
}

/// The conversation that asks for a change.
pub(crate) fn messages(
    format: EditFormat,
    plan: &Plan,
    pack: &ContextPack,
    baseline: &[GateResult],
    brief: Option<&Brief>,
) -> Vec<Message> {
    vec![Message::system(system(format)), Message::user(user(format, plan, pack, baseline, brief))]
}

fn system(format: EditFormat) -> PromptText {
    let prompt = PromptBuilder::new().ours(
        "You change source code. A program checks your answer, applies it to a copy of the repository and runs the \
         tests; nobody reads explanations.\n\
         Rules:\n\
         - Change only the files listed as editable. Never change tests.\n\
         - Keep every function, type, import and comment that is not part of the problem exactly as it is.\n\
         - Make the smallest change that reaches the goal.\n",
    );
    match format {
        EditFormat::WholeFile => prompt.ours(
            "- For each file that you change, answer with one line `FILE: path` and then the complete new file in one \
             fenced code block. Leave nothing out and abbreviate nothing.\n",
        ),
        EditFormat::SearchReplace => prompt.ours(
            "- For each place that you change, answer with one line `FILE: path` and then a block of this form:\n\
             <<<<<<< SEARCH\nlines exactly as they stand in the file\n=======\nthe lines that replace them\n>>>>>>> REPLACE\n\
             The lines to search must stand in the file exactly once.\n",
        ),
        EditFormat::UnifiedDiff => prompt.ours(
            "- Answer with one unified diff in git's format. It begins with `diff --git`; nothing stands before or \
             after it.\n",
        ),
    }
    .build()
}

fn user(
    format: EditFormat,
    plan: &Plan,
    pack: &ContextPack,
    baseline: &[GateResult],
    brief: Option<&Brief>,
) -> PromptText {
    let editable = |path: &str| {
        path.parse().is_ok_and(|path| plan.scope_allow.iter().any(|scope| scope.contains(&path)))
    };
    let (mine, others): (Vec<_>, Vec<_>) = pack.files.iter().partition(|file| editable(&file.path));
    let mut prompt = PromptBuilder::new();
    if !others.is_empty() {
        prompt = prompt.ours("For reading only:\n");
        for file in others {
            prompt = prompt.untrusted(&file.path, &Untrusted::new(file.content.clone()));
        }
    }
    for gate in baseline.iter().filter(|gate| !gate.passed) {
        prompt = prompt
            .ours("\nBefore any change, this check fails:\n")
            .untrusted(&format!("output of {}", gate.id), &Untrusted::new(gate.excerpt.clone()));
    }
    if let Some(brief) = brief {
        prompt = prompt.ours("\nA first answer was refused; the editable files below are as they were.\n");
        if !brief.patch.is_empty() {
            prompt = prompt.untrusted("the refused change", &Untrusted::new(brief.patch.clone()));
        }
        prompt = prompt.untrusted("why it was refused", &Untrusted::new(brief.reasons.join("\n")));
        if !brief.output.is_empty() {
            prompt = prompt.untrusted("what the checks printed", &Untrusted::new(brief.output.clone()));
        }
        prompt = prompt.ours("\nAnswer again in another way that avoids this.\n");
    }
    // The files to change stand right before the question: small models copy what they read last.
    prompt = prompt.ours("\nThe editable files as they are now:\n");
    for file in mine {
        prompt = prompt.untrusted(&file.path, &Untrusted::new(file.content.clone()));
    }
    // What is wanted comes last of all, with the names of the files.
    prompt = prompt.ours("\nGoal: ").operator(&plan.goal).ours("\n\nAnswer ");
    prompt = match format {
        EditFormat::WholeFile => prompt.ours("with the complete new content, every function included, of:\n"),
        EditFormat::SearchReplace => prompt.ours("with blocks that change:\n"),
        EditFormat::UnifiedDiff => prompt.ours("with one diff that changes:\n"),
    };
    for scope in &plan.scope_allow {
        prompt = prompt.ours("FILE: ").operator(&scope.to_string().escape_debug().to_string()).ours("\n");
    }
    prompt.build()
}
