//! The common parts of all phase prompts: the material, the correction, and the instruction to answer
//! with the document only.
//!
//! A prompt has one system message with the rules and the form, and one user message with the material,
//! which ends with the request: small models do what they read last. All foreign text is fenced.

use std::collections::BTreeSet;

use crucible_llm::Message;
use crucible_model::{Code, PromptBuilder, PromptText, Untrusted};

use super::definition::{CorrectionBrief, PhaseInput};
use crate::document::{Fault, Form, RequirementId};
use crate::packet::{EntryKind, PacketEntry};

/// The bytes of a refused answer that are shown again.
const SHOWN_ANSWER: usize = 12 << 10;
/// The most findings in a correction.
const SHOWN_FINDINGS: usize = 20;

/// The rules at the beginning of every prompt, after a sentence that names the document.
pub(super) const DOCUMENT_ALONE: &str = "\
A program reads your answer and keeps it as a file; nobody talks with you.\n\
Rules:\n\
- Answer with the document alone: no introduction, no summary of what you did, no question, no code fence around it.\n\
- Where something is not known, choose the simplest reading and write it down.\n\
- Write no other headings than those of the form. Never write a line twice.\n";

/// Precedes the example. Small models copy the form of an example more reliably than they follow a
/// description.
pub(super) const THE_FORM: &str = "The form, filled in for another project:\n\n";

/// The rules if only changes are requested.
pub(super) const CHANGES_ALONE: &str = "\
A program reads your answer and changes the document with it; nobody talks with you.\n\
Rules:\n\
- Answer with the changes alone: no introduction, no summary of what you did, no question, no code fence around them.\n\
- Where something is not known, choose the simplest reading and write it down.\n\
- Write no other headings than those of the forms. Never write a line twice.\n";

/// Assembles the conversation.
pub(super) fn conversation(system: PromptText, user: PromptBuilder) -> Option<Vec<Message>> {
    Some(vec![Message::system(system), Message::user(user.build())])
}

/// The rule about the length of the answer.
pub(super) fn limits(prompt: PromptBuilder, form: &Form) -> PromptBuilder {
    let (lines, kib) = (form.max_lines as u64, (form.max_bytes >> 10) as u64);
    prompt
        .fixed_text("- At most ")
        .number(lines)
        .fixed_text(" lines and ")
        .number(kib)
        .fixed_text(" KiB. Short is better.\n")
}

/// The beginning of a user message: all entries of the packet in order, except the phase's last document.
pub(super) fn material(input: &PhaseInput<'_>) -> PromptBuilder {
    let material = input
        .packet
        .entries
        .iter()
        .filter(|entry| !matches!(entry.kind, EntryKind::Previous(_)));
    entries(PromptBuilder::new().fixed_text("The material:\n"), material)
}

/// Shows entries of the packet.
pub(super) fn entries<'a>(
    prompt: PromptBuilder,
    entries: impl IntoIterator<Item = &'a PacketEntry>,
) -> PromptBuilder {
    entries.into_iter().fold(prompt, |prompt, entry| {
        prompt.untrusted(&entry.name, &entry.content)
    })
}

/// Shows the phase's last document.
pub(super) fn last_time(prompt: PromptBuilder, input: &PhaseInput<'_>) -> PromptBuilder {
    match input.previous() {
        Some(previous) => prompt
            .fixed_text("\nThe document as it was the last time; keep of it what still holds, in the same words:\n")
            .untrusted("the last document", previous),
        None => prompt,
    }
}

/// Shows a refused answer and the reasons. Hints of our own findings are instructions; their subjects,
/// and the findings of others, are material.
pub(super) fn correction(prompt: PromptBuilder, input: &PhaseInput<'_>) -> PromptBuilder {
    let Some(CorrectionBrief { answer, verdict }) = input.correction else {
        return prompt;
    };
    let text = answer.as_str();
    let too_long =
        |code: &Code| *code == Fault::TooLong.code() || code.as_str() == "spec-answer-cut-off";
    // Small models copy what they see: from an answer that was too long they would copy the length.
    let content = if verdict
        .findings()
        .iter()
        .any(|finding| too_long(&finding.code))
    {
        ""
    } else {
        text.get(..text.floor_char_boundary(SHOWN_ANSWER))
            .unwrap_or_default()
    };
    let mut prompt = prompt.fixed_text("\nA first answer was refused.\n");
    if !crucible_model::says_nothing(content) {
        let name = if content.len() < text.len() {
            "the beginning of the refused answer"
        } else {
            "the refused answer"
        };
        prompt = prompt.untrusted(name, &Untrusted::new(content));
    }
    let all = verdict.findings();
    let mut reported = BTreeSet::new();
    let mut places = String::new();
    for finding in all.iter().take(SHOWN_FINDINGS) {
        let line = match Fault::from_code(&finding.code) {
            Some(fault) => {
                reported.insert(fault);
                format!("{}: {}\n", finding.code, finding.subject)
            }
            None => format!("{finding}\n"),
        };
        places.push_str(&line);
    }
    if all.len() > SHOWN_FINDINGS {
        places.push_str(&format!("and {} more\n", all.len() - SHOWN_FINDINGS));
    }
    prompt = prompt.untrusted(
        "what was found in the refused answer",
        &Untrusted::new(places),
    );
    prompt = prompt.fixed_text("\nThis time:\n");
    for fault in reported {
        prompt = prompt
            .fixed_text("- ")
            .fixed_text(fault.hint())
            .fixed_text("\n");
    }
    prompt.fixed_text("- Correct what was found, and keep what was right.\n")
}

/// Lists the requirement ids one by one: small models otherwise take ids from the example.
pub(super) fn known_ids(prompt: PromptBuilder, input: &PhaseInput<'_>) -> PromptBuilder {
    let Some(ids) = super::definition::requirements_of(input) else {
        return prompt;
    };
    let ids: Vec<_> = ids
        .into_iter()
        .map(|id| RequirementId(id).to_string())
        .collect();
    prompt
        .fixed_text("The only requirements are ")
        .operator(&ids.join(", "))
        .fixed_text(".\n")
}
