//! The final phase: a short summary by the model, and the traceability table, which code writes.

use crucible_llm::Message;
use crucible_model::{PromptBuilder, Untrusted, Verdict};

use super::definition::{
    PhaseDefinition, PhaseDocument, PhaseInput, artifact, never, requirements_of,
};
use super::prompt::{DOCUMENT_ALONE, THE_FORM, conversation, correction, limits, material};
use crate::document::{
    Fault, Form, TRACE_HEADING, measured, open, parse_ids, read_review, sections, traceability,
    unknown_references, warning, without_trace,
};
use crate::phase_id::PhaseId;

pub(super) struct FinalPhase;

const FORM: Form = Form {
    phase: PhaseId::Final,
    max_lines: 60,
    max_bytes: 8 << 10,
    max_entries: usize::MAX,
    begins: never,
};

/// The sections of a final document, apart from the one that code writes.
const FINAL_SECTIONS: [&str; 2] = ["Summary", "Open points"];

impl PhaseDefinition for FinalPhase {
    fn id(&self) -> PhaseId {
        PhaseId::Final
    }

    fn upstream(&self) -> &'static [PhaseId] {
        &[
            PhaseId::Requirements,
            PhaseId::Design,
            PhaseId::Tasks,
            PhaseId::Review,
            PhaseId::Fixup,
        ]
    }

    fn messages(&self, input: &PhaseInput<'_>) -> Option<Vec<Message>> {
        let system = PromptBuilder::new()
            .fixed_text("You close the plan of a change to a software project with a summary for the people who build it. ")
            .fixed_text(DOCUMENT_ALONE)
            .fixed_text(
                "- Say what is built and how, which decisions were made, and which findings of the review are still open. Add nothing \
                 that is not in the documents.\n\
                 - Write no table: a program adds one of requirements, tasks and findings.\n",
            );
        let system = limits(system, &FORM).fixed_text(THE_FORM).fixed_text(
            "# Final: Greenhouse lamps\n\n## Summary\n\nThe clock reads the hours from a table and switches the lamps. A hand switch wins for one \
             hour.\n\n## Open points\n\n- F-001: who changes the table at the end of summer time.\n",
        );
        let user = correction(material(input), input).fixed_text(
            "\nWrite the summary of these documents. The first line is `# Final: ` and a title; then come `## Summary` with five to ten \
             sentences and `## Open points` with a list, or `- none`.\n",
        );
        conversation(system.build(), user)
    }

    fn read(&self, answer: &Untrusted, input: &PhaseInput<'_>) -> Result<PhaseDocument, Verdict> {
        let draft = open(answer, &FORM)?;
        let mut warnings = draft.warnings;
        let cut = without_trace(&draft.body);
        if cut.is_some() {
            let message =
                format!("the answer's own section {TRACE_HEADING:?} was left out: code writes it");
            warnings.push(warning("spec_answer_trimmed", message));
        }
        let body = cut.unwrap_or(draft.body);
        let mut verdict = Verdict::new(sections(&body, &FINAL_SECTIONS));
        if let Some(finding) = requirements_of(input)
            .and_then(|known| unknown_references(&parse_ids(&body, 'R'), &known))
        {
            verdict.push(finding);
        }
        let artifact_text = |phase| artifact(input, phase).map_or("", Untrusted::as_str);
        let (tasks, review) = (
            artifact_text(PhaseId::Tasks),
            artifact_text(PhaseId::Review),
        );
        let remarks = read_review(&review.replace("\r\n", "\n")).remarks.len();
        let found = parse_ids(&body, 'F')
            .into_iter()
            .filter(|id| usize::try_from(*id).is_ok_and(|id| id > remarks || id == 0));
        if found.count() > 0 && !review.is_empty() {
            verdict.push(Fault::UnknownId.into_finding("an id F-… that the review does not have"));
        }
        let steps = parse_ids(&body, 'T');
        if !tasks.is_empty() && !steps.is_subset(&parse_ids(tasks, 'T')) {
            verdict.push(Fault::UnknownId.into_finding("an id T-… that no task has"));
        }
        let title = draft.title.as_deref().unwrap_or(input.spec.as_str());
        let text = format!("# Final: {title}\n\n{body}\n");
        if let Some(finding) = measured(&text, 0, &FORM) {
            verdict.push(finding);
        }
        if !verdict.passes() {
            return Err(verdict);
        }
        let table = traceability(artifact_text(PhaseId::Requirements), tasks, review);
        Ok(PhaseDocument {
            text: format!("{text}\n{table}"),
            warnings,
            proposal: None,
        })
    }
}
