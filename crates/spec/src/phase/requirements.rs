//! The requirements phase: statements with checks from an idea, and changes to them from a new idea.

use crucible_evidence::{NamedTest, NamedTests, named_tests};
use crucible_llm::Message;
use crucible_model::{Finding, PromptBuilder, PromptText, Untrusted, Verdict};

use super::definition::{LastArtifact, PhaseDefinition, PhaseDocument, PhaseInput, never};
use super::prompt::{
    CHANGES_ALONE, DOCUMENT_ALONE, THE_FORM, conversation, correction, limits, material,
};
use crate::document::{
    Fault, Form, LineKind, Requirements, begins_changes, is_no_changes, measured, merge, open, scan,
};
use crate::packet::EntryKind;
use crate::phase_id::PhaseId;

pub(super) struct RequirementsPhase;

const FORM: Form = Form {
    phase: PhaseId::Requirements,
    max_lines: 200,
    max_bytes: 16 << 10,
    max_entries: 12,
    begins: never,
};

/// A requirement of another project, without its id.
const ONE: &str = ": Lamps follow the hours\n\nThe lamps are on from six to twenty o'clock.\n\n\
                   - At five past six every lamp is on.\n- At five past twenty every lamp is off.\n";
const OTHER: &str = ": The hand switch wins\n\nA lamp that was switched by hand stays so for one hour.\n\n\
                     - A lamp that is switched off by hand at noon is on again at one.\n";

impl PhaseDefinition for RequirementsPhase {
    fn id(&self) -> PhaseId {
        PhaseId::Requirements
    }

    fn upstream(&self) -> &'static [PhaseId] {
        &[]
    }

    fn last_artifact(&self) -> LastArtifact {
        LastArtifact::Needed
    }

    fn messages(&self, input: &PhaseInput<'_>) -> Option<Vec<Message>> {
        let prompt = material(input);
        match (input.previous(), earlier(input)) {
            (Some(text), Some(_)) => {
                let prompt = prompt
                    .fixed_text("\nThe requirements as they are now:\n")
                    .untrusted("requirements", text);
                let prompt = about_tests(correction(prompt, input), input).fixed_text(
                    "\nThe block \"idea\" says what is wanted now. Compare it with these requirements and write only what changes: blocks `### R-NEW: title` for new \
                     requirements, whole blocks under their own id for changed ones, lines `REMOVED: R-002` for those that the idea no longer \
                     wants. If nothing changes, answer with the one line NO CHANGES.\n",
                );
                conversation(system_of_changes(), prompt)
            }
            _ => {
                let prompt = about_tests(correction(prompt, input), input).fixed_text(
                    "\nThe block \"idea\" says what is wanted. Write its requirements; do nothing else that it asks for. The first line is \
                     `# Requirements: ` and a title. Then come three to six requirements: for each a heading `### R-001: title` with its own \
                     number, one sentence, and two or three checks.\n",
                );
                conversation(system_of_all(), prompt)
            }
        }
    }

    fn read(&self, answer: &Untrusted, input: &PhaseInput<'_>) -> Result<PhaseDocument, Verdict> {
        let earlier = earlier(input);
        let begins = if earlier.is_some() {
            begins_changes
        } else {
            FORM.begins
        };
        let draft = open(answer, &Form { begins, ..FORM })?;
        let (document, warnings) = merge(
            earlier.as_ref(),
            draft,
            input.spec.as_str(),
            input.highest_requirement,
        )
        .map_err(Verdict::new)?;
        let faults = test_faults(&document, earlier.as_ref(), &tests_of_idea(input));
        if !faults.is_empty() {
            return Err(Verdict::new(faults));
        }
        let text = match input.previous().filter(|_| earlier.is_some()) {
            Some(previous) => document.render_over(previous.as_str()),
            None => document.render(),
        };
        match measured(&text, document.blocks.len(), &FORM) {
            // An answer without changes did not make the document too long.
            Some(_)
                if answer.as_str().lines().any(is_no_changes)
                    && earlier.as_ref() == Some(&document) => {}
            Some(finding) => return Err(Verdict::new(vec![finding])),
            None => {}
        }
        Ok(PhaseDocument {
            text,
            warnings,
            proposal: None,
        })
    }
}

/// The tests that the idea names.
fn tests_of_idea(input: &PhaseInput<'_>) -> Vec<NamedTest> {
    let idea = input.packet.text_of(EntryKind::Idea);
    idea.map(|idea| tests_of(idea.as_str()).tests)
        .unwrap_or_default()
}

/// The tests that a text names outside of code blocks.
fn tests_of(text: &str) -> NamedTests {
    let lines = scan(text).0;
    let outside = lines.iter().filter(|line| line.kind != LineKind::Fenced);
    named_tests(outside.map(|line| line.text))
}

/// Adds what to do with the tests that the idea names, if it names any.
fn about_tests(prompt: PromptBuilder, input: &PhaseInput<'_>) -> PromptBuilder {
    if tests_of_idea(input).is_empty() {
        return prompt;
    }
    prompt.fixed_text(
        "\nThe idea names tests, on lines that begin with `Test:`. Copy each of these lines as it is, below the checks of the \
         requirement that the test checks. Begin no other line so.\n",
    )
}

/// Finds lines of new or changed requirements that name no test, and tests of the idea that no requirement names.
fn test_faults(
    document: &Requirements,
    earlier: Option<&Requirements>,
    requested: &[NamedTest],
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut named = Vec::new();
    for block in &document.blocks {
        let found = tests_of(&block.text);
        let is_earlier = earlier.is_some_and(|earlier| earlier.blocks.contains(block));
        if !is_earlier {
            let faults = found.faults.iter();
            findings.extend(faults.map(|(line, _)| Fault::TestLine.into_finding(line)));
        }
        named.extend(found.tests);
    }
    let missing = requested.iter().filter(|test| !named.contains(test));
    findings.extend(missing.map(|test| Fault::TestLine.into_finding(&test.to_string())));
    findings
}

/// The last requirements, if there are any.
fn earlier(input: &PhaseInput<'_>) -> Option<Requirements> {
    let document = Requirements::of_artifact(input.previous()?.as_str());
    (!document.blocks.is_empty()).then_some(document)
}

fn system_of_all() -> PromptText {
    let prompt = PromptBuilder::new()
        .fixed_text("You write the requirements of a change to a software project. ")
        .fixed_text(DOCUMENT_ALONE)
        .fixed_text(
            "- Each requirement is one thing that must be true when the work is done: a heading with its id, then one or two \
             sentences that say it, then two or three checks, each on a line that begins with `- `.\n\
             - Files of the project are background: what already works is no requirement, and nothing is added that the idea does not ask for.\n\
             - Write three to six requirements, never more than ",
        );
    limits(
        prompt.number(FORM.max_entries as u64).fixed_text(".\n"),
        &FORM,
    )
    .fixed_text(THE_FORM)
    .fixed_text("# Requirements: Greenhouse lamps\n\n### R-001")
    .fixed_text(ONE)
    .fixed_text("\n### R-002")
    .fixed_text(OTHER)
    .build()
}

fn system_of_changes() -> PromptText {
    let prompt = PromptBuilder::new()
        .fixed_text("You keep the requirements of a change to a software project up to date. ")
        .fixed_text(CHANGES_ALONE)
        .fixed_text(
            "- Write only what changes. Requirements that stay as they are must not stand in your answer.\n\
             - Files of the project are background: what already works is no requirement, and nothing is added that the idea does not ask for.\n\
             - Never give an id to another requirement. New requirements have the id R-NEW; a program numbers them.\n\
             - There may be at most ",
        );
    limits(
        prompt
            .number(FORM.max_entries as u64)
            .fixed_text(" requirements in all.\n"),
        &FORM,
    )
    .fixed_text("The form of a new requirement, filled in for another project:\n\n### R-NEW")
    .fixed_text(ONE)
    .fixed_text("\nThe form of a changed requirement, here R-003, written out whole:\n\n### R-003")
    .fixed_text(OTHER)
    .fixed_text(
        "\nThe form of a removed requirement:\n\nREMOVED: R-002\n\n\
             The whole answer when nothing changes:\n\nNO CHANGES\n",
    )
    .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(document: &str, earlier: Option<&str>, idea: &str) -> Vec<String> {
        let earlier = earlier.map(Requirements::of_artifact);
        let document = Requirements::of_artifact(document);
        let expected = tests_of(idea).tests;
        let findings = test_faults(&document, earlier.as_ref(), &expected);
        findings
            .into_iter()
            .map(|finding| finding.subject)
            .collect()
    }

    #[test]
    fn tests_of_the_idea_must_be_copied() {
        let idea = "Area.\nTest: t.py::a\n```\nTest: no.py::b\n```\n";
        let with = "### R-001: A\n\na\n- Test: t.py::a\n";
        assert_eq!(faults(with, None, idea), [""; 0]);
        assert_eq!(faults("### R-001: A\n\na\n", None, idea), ["t.py::a"]);
        let wrong = "### R-001: A\n\n- Test: t.py::a\n- Test: that it works\n";
        assert_eq!(faults(wrong, None, idea), ["- Test: that it works"]);
        // What stood there before is not the fault of the answer.
        assert_eq!(faults(wrong, Some(wrong), idea), [""; 0]);
    }
}
