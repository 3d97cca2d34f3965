//! The tasks phase: the steps of the work, each for some requirements.

use crucible_llm::Message;
use crucible_model::{PromptBuilder, Untrusted, Verdict};

use super::definition::{
    LastArtifact, PhaseDefinition, PhaseDocument, PhaseInput, never, of_text, requirements_of,
};
use super::prompt::{
    DOCUMENT_ALONE, THE_FORM, conversation, correction, known_ids, last_time, limits, material,
};
use crate::document::{Form, open, tasks};
use crate::phase_id::PhaseId;

pub(super) struct TasksPhase;

const FORM: Form = Form {
    phase: PhaseId::Tasks,
    max_lines: 160,
    max_bytes: 16 << 10,
    max_entries: 30,
    begins: never,
};

impl PhaseDefinition for TasksPhase {
    fn id(&self) -> PhaseId {
        PhaseId::Tasks
    }

    fn upstream(&self) -> &'static [PhaseId] {
        &[PhaseId::Requirements, PhaseId::Design]
    }

    fn last_artifact(&self) -> LastArtifact {
        LastArtifact::Shown
    }

    fn messages(&self, input: &PhaseInput<'_>) -> Option<Vec<Message>> {
        let system = PromptBuilder::new()
            .fixed_text("You write the tasks of a change to a software project: the steps to take, in their order. ")
            .fixed_text(DOCUMENT_ALONE)
            .fixed_text(
                "- A task is one line: a checkbox, its id, the ids of the requirements that it serves, and one step that can be done and \
                 checked by itself. Below it, where files are known, one line with their paths.\n\
                 - Every requirement has at least one task. Tests are tasks, too.\n- Never more than ",
            )
            .number(FORM.max_entries as u64)
            .fixed_text(" tasks.\n");
        let system = limits(system, &FORM).fixed_text(THE_FORM).fixed_text(
            "# Tasks: Greenhouse lamps\n\n- [ ] T-001 (R-001): Keep the hours of the lamps in a table\n  files: src/clock.rs\n\
             - [ ] T-002 (R-001, R-002): Let the hand switch write into it\n  files: src/switch.rs\n\
             - [ ] T-003 (R-002): Test that a lamp stays as it was switched\n  files: tests/switch.rs\n",
        );
        let user = correction(last_time(material(input), input), input).fixed_text(
            "\nWrite the tasks for this design. The first line is `# Tasks: ` and a title; then comes one line \
             `- [ ] T-001 (R-001): step` for each task. Every requirement stands in the parentheses of at least one task.\n",
        );
        conversation(system.build(), known_ids(user, input))
    }

    fn read(&self, answer: &Untrusted, input: &PhaseInput<'_>) -> Result<PhaseDocument, Verdict> {
        let draft = open(answer, &FORM)?;
        let known = requirements_of(input);
        let (text, count, warnings) =
            tasks(draft, input.spec.as_str(), known.as_ref()).map_err(Verdict::new)?;
        of_text(text, count, &FORM, warnings)
    }
}
