//! The prompt of a coding agent, which looks into its working copy itself.
//!
//! It says what to achieve, what fails, what may change, how the result is checked, and how to decline. It has no time, no
//! absolute path and no randomness, so a replay of the run asks the same.

use crucible_llm::Message;
use crucible_model::{PromptBuilder, Untrusted};

use crate::analysis::GateResult;
use crate::contract::{Plan, RunRecord};
use crate::role::declined::DECLINED_FORM;
use crate::role::patchmaker::FixBrief;

/// Builds the prompt.
pub(crate) fn messages(
    record: &RunRecord,
    plan: &Plan,
    baseline: &[GateResult],
    brief: Option<&FixBrief>,
) -> Vec<Message> {
    let mut prompt = PromptBuilder::new()
        .fixed_text("Goal: ")
        .operator(&plan.goal)
        .fixed_text(
            "\n\nYou work in a copy of the repository, without a network. When you end, a program takes the difference of the files to \
             the commit that is checked out, judges it and runs the checks. Make the smallest change that reaches the goal. \
             Commits, branches and ignored files are dropped. Nobody answers questions.\n",
        );
    for gate in baseline.iter().filter(|gate| !gate.passed) {
        prompt = prompt.fixed_text("\nThis check fails now:\n").untrusted(
            &format!("output of {}", gate.id),
            &Untrusted::new(gate.excerpt.clone()),
        );
    }
    if let Some(brief) = brief {
        prompt = prompt
            .fixed_text(
                "\nAn earlier change was refused. If it applies, it is in the files: repair it.\n",
            )
            .untrusted(
                "why it was refused",
                &Untrusted::new(brief.reasons.join("\n")),
            );
        if !brief.patch.is_empty() {
            prompt = prompt.untrusted("the refused change", &Untrusted::new(brief.patch.clone()));
        }
        if !brief.output.is_empty() {
            let printed = Untrusted::new(brief.output.clone());
            prompt = prompt.untrusted("what the checks printed", &printed);
        }
    }
    prompt = prompt.fixed_text("\nThe checks:\n");
    for gate in &record.settings.gates {
        prompt = prompt
            .operator(&gate.command_line().escape_debug().to_string())
            .fixed_text("\n");
    }
    prompt = prompt.fixed_text("\nYou may change these files and no others:\n");
    for scope in &plan.scope_allow {
        prompt = prompt
            .operator(&scope.to_string().escape_debug().to_string())
            .fixed_text("\n");
    }
    for scope in &plan.scope_sources {
        prompt = prompt
            .operator(&scope.to_string().escape_debug().to_string())
            .fixed_text(" (sources)\n");
    }
    prompt = prompt
        .fixed_text("At most ")
        .number(record.settings.patch.max_files)
        .fixed_text(" files, and at most ")
        .number(record.settings.patch.max_added_lines)
        .fixed_text(
            " added lines. Tests, settings of builds and pipelines, and lock files stay as they are unless they are listed.\n\n",
        )
        .fixed_text(DECLINED_FORM)
        .fixed_text("Write those lines to the file CRUCIBLE_CANNOT.md at the top of the repository, and change nothing else.\n");
    vec![Message::user(prompt.build())]
}
