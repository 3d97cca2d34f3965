//! The patchmaker and the fixer: how a model is asked for a change.
//!
//! The words are ours; everything from the repository, the gates and earlier answers is fenced. A prompt holds no
//! instant, no absolute path and nothing random, so the same run asks the same question again on replay.

use crucible_llm::Message;
use crucible_model::{EditFormat, PromptBuilder, PromptText, Untrusted};
use crucible_pack::{ContextPack, PackedFile};
use crucible_patch::takes_definitions;

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
    /// The answer where it came to no change, bounded. Only people and commands are shown it, for the reason above.
    pub(crate) answer: String,
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
        EditFormat::Definitions => prompt.ours(
            "- For each file that you change, answer with one line `FILE: path` and then one fenced code block (three \
             backticks before and after it) that holds only the functions or types that you change or add, each of them \
             complete from its first line to its last. Leave out everything else of the file.\n\
             - A method stands below the line of the class it belongs to.\n",
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
            prompt = prompt.untrusted(&file.path, &Untrusted::new(file.shown().into_owned()));
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
    let whole = if format == EditFormat::Definitions { without_definitions(&mine) } else { Vec::new() };
    for file in mine {
        prompt = prompt.untrusted(&file.path, &Untrusted::new(file.shown().into_owned()));
    }
    if !whole.is_empty() {
        prompt = prompt
            .ours("\nOf these files answer with the complete new content instead:\n")
            .untrusted("files to give whole", &Untrusted::new(whole.join("\n")));
    }
    // What is wanted comes last of all, with the names of the files.
    prompt = prompt.ours("\nGoal: ").operator(&plan.goal).ours("\n\nAnswer ");
    prompt = match format {
        EditFormat::WholeFile => prompt.ours("with the complete new content, every function included, of:\n"),
        EditFormat::SearchReplace => prompt.ours("with blocks that change:\n"),
        EditFormat::Definitions => prompt.ours(
            "with a line `FILE: path`, then ``` and the changed function, complete, and ```. Only files that change. \
             One of:\n",
        ),
        EditFormat::UnifiedDiff => prompt.ours("with one diff that changes:\n"),
    };
    for scope in &plan.scope_allow {
        prompt = prompt.ours("FILE: ").operator(&scope.to_string().escape_debug().to_string()).ours("\n");
    }
    prompt.build()
}

/// The files that definitions cannot be put into one by one.
fn without_definitions<'a>(files: &[&'a PackedFile]) -> Vec<&'a str> {
    let takes = |file: &PackedFile| {
        !file.ranges.is_empty()
            || file.path.parse().is_ok_and(|path| takes_definitions(&path, file.content.as_bytes()))
    };
    files.iter().filter(|file| !takes(file)).map(|file| file.path.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use crucible_pack::PackVersion;

    use super::*;

    #[test]
    fn a_question_for_definitions_says_which_files_are_to_be_given_whole() {
        let file = |path: &str, content: &str| PackedFile {
            path: path.into(),
            why: "requested".into(),
            content: content.into(),
            truncated: false,
            ranges: Vec::new(),
        };
        let pack = ContextPack {
            schema_version: PackVersion::V1,
            goal: String::new(),
            repo_slug: "r".into(),
            summary: String::new(),
            files: vec![
                file("src/a.rs", "fn a() {}\n"),
                file("src/b.rb", "def b; end\n"),
                file("src/c.rs", "fn (\n"),
            ],
            omitted: Vec::new(),
        };
        let text = "Status: SIGNED\nScope-Allow: src\nScope-Deny:\nNames:\nGates: lite\nStop: x\nBudgets: x\nBehaviors:\nResults:\n";
        let plan = Plan::parse(text).unwrap();
        let asked = user(EditFormat::Definitions, &plan, &pack, &[], None);
        let (before, named) = asked.as_str().split_once("the complete new content instead").unwrap();
        assert!(named.contains("src/b.rb\nsrc/c.rs\n") && !named.contains("src/a.rs"), "{named}");
        assert!(before.contains("fn a() {}"));
        for format in [EditFormat::WholeFile, EditFormat::SearchReplace, EditFormat::UnifiedDiff] {
            assert!(!user(format, &plan, &pack, &[], None).as_str().contains("instead:"));
        }
    }
}
