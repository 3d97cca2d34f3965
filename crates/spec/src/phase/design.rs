//! The design phase: how to meet the requirements.

use crucible_llm::Message;
use crucible_model::{PromptBuilder, Untrusted, Verdict};

use super::definition::{
    LastArtifact, PhaseDefinition, PhaseDocument, PhaseInput, never, of_text, requirements_of,
};
use super::prompt::{
    DOCUMENT_ALONE, THE_FORM, conversation, correction, known_ids, last_time, limits, material,
};
use crate::document::{Form, design, open};
use crate::phase_id::PhaseId;

pub(super) struct DesignPhase;

const FORM: Form = Form {
    phase: PhaseId::Design,
    max_lines: 200,
    max_bytes: 16 << 10,
    max_entries: usize::MAX,
    begins: never,
};

impl PhaseDefinition for DesignPhase {
    fn id(&self) -> PhaseId {
        PhaseId::Design
    }

    fn upstream(&self) -> &'static [PhaseId] {
        &[PhaseId::Requirements]
    }

    fn last_artifact(&self) -> LastArtifact {
        LastArtifact::Shown
    }

    fn messages(&self, input: &PhaseInput<'_>) -> Option<Vec<Message>> {
        let system = PromptBuilder::new()
            .fixed_text("You write the design of a change to a software project: how its requirements are met. ")
            .fixed_text(DOCUMENT_ALONE)
            .fixed_text(
                "- Name the requirements that each part serves by their ids, such as R-001. Name no other ids.\n\
                 - Use what the project already has. Name files by their paths. Write no code beyond short signatures.\n",
            );
        let system = limits(system, &FORM).fixed_text(THE_FORM).fixed_text(
            "# Design: Greenhouse lamps\n\n## Overview\n\nThe clock reads the hours from a table and switches the lamps (R-001); the hand \
             switch writes a time into the same table (R-002).\n\n## Components\n\n- `src/clock.rs` (R-001): wakes up each minute and switches.\n\
             - `src/switch.rs` (R-002): writes until when a lamp is left alone.\n\n## Data\n\nThe table `hours.csv`: lamp, from, to.\n\n\
             ## Risks\n\n- The clock of the machine is wrong: it is set at each start.\n",
        );
        let user = correction(last_time(material(input), input), input).fixed_text(
            "\nWrite the design for these requirements. The first line is `# Design: ` and a title; then come the sections \
             ## Overview, ## Components, ## Data and ## Risks, each with text. Name every requirement by its id.\n",
        );
        conversation(system.build(), known_ids(user, input))
    }

    fn read(&self, answer: &Untrusted, input: &PhaseInput<'_>) -> Result<PhaseDocument, Verdict> {
        let draft = open(answer, &FORM)?;
        let known = requirements_of(input);
        let (text, warnings) =
            design(draft, input.spec.as_str(), known.as_ref()).map_err(Verdict::new)?;
        of_text(text, 0, &FORM, warnings)
    }
}
