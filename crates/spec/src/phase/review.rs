//! The review phase: problems in the documents and in the project files that are shown.

use crucible_llm::Message;
use crucible_model::{PromptBuilder, Untrusted, Verdict};

use super::definition::{PhaseDefinition, PhaseDocument, PhaseInput, never, of_text};
use super::prompt::{DOCUMENT_ALONE, THE_FORM, conversation, correction, limits, material};
use crate::document::{Form, open, review};
use crate::phase_id::PhaseId;

pub(super) struct ReviewPhase;

const FORM: Form = Form {
    phase: PhaseId::Review,
    max_lines: 80,
    max_bytes: 12 << 10,
    max_entries: 20,
    begins: never,
};

impl PhaseDefinition for ReviewPhase {
    fn id(&self) -> PhaseId {
        PhaseId::Review
    }

    fn upstream(&self) -> &'static [PhaseId] {
        &[PhaseId::Requirements, PhaseId::Design, PhaseId::Tasks]
    }

    fn messages(&self, input: &PhaseInput<'_>) -> Option<Vec<Message>> {
        let system = PromptBuilder::new()
            .fixed_text("You review the requirements, the design and the tasks of a change to a software project. ")
            .fixed_text(DOCUMENT_ALONE)
            .fixed_text(
                "- Look for what contradicts, what is missing, what cannot be checked, and what is wrong in the files of the project that \
                 are shown. Praise nothing and repeat nothing.\n\
                 - A finding is one line: its id, in brackets blocker, major or minor, then what it is about, a colon, and what is \
                 wrong and should be done. It is about requirements, design, tasks, or one file that is shown, by its path.\n\
                 - Never more than ",
            )
            .number(FORM.max_entries as u64)
            .fixed_text(" findings. If there is none, write the one line `- none`.\n");
        let system = limits(system, &FORM).fixed_text(THE_FORM).fixed_text(
            "# Review: Greenhouse lamps\n\n## Findings\n\n- F-001 [major] design: The table has no row for the end of summer time. Add one.\n\
             - F-002 [minor] src/clock.rs: It sleeps for two minutes, not for one. Let it sleep until the next minute.\n",
        );
        let user = correction(material(input), input).fixed_text(
            "\nReview these documents. The first line is `# Review: ` and a title; then comes `## Findings` and one line \
             `- F-001 [major] design: what is wrong` for each finding, or `- none`.\n",
        );
        conversation(system.build(), user)
    }

    fn read(&self, answer: &Untrusted, input: &PhaseInput<'_>) -> Result<PhaseDocument, Verdict> {
        let draft = open(answer, &FORM)?;
        let files = input
            .packet
            .files()
            .map(|entry| entry.name.as_str())
            .collect();
        let (text, count, warnings) =
            review(draft, input.spec.as_str(), &files).map_err(Verdict::new)?;
        of_text(text, count, &FORM, warnings)
    }
}
