//! The phases: what each asks, and how its answer is read.
//!
//! A phase is a [`PhaseDefinition`] in a file of its own, listed in [`phases`]. Its prompt and its reading are pure functions of
//! [`PhaseInput`]; the runtime around them is `engine`.

mod design;
mod final_;
mod fixup;
mod prompt;
mod requirements;
mod review;
mod tasks;

use std::collections::BTreeSet;

use crucible_llm::{Message, ReceiptWarning};
use crucible_model::{EditFormat, Untrusted, Verdict};

use crate::document::{Form, Requirements, measured};
use crate::id::SpecId;
use crate::packet::{EntryKind, Packet};
use crate::phase_id::PhaseId;

/// A phase.
pub trait PhaseDefinition: Send + Sync {
    /// Which one.
    fn id(&self) -> PhaseId;

    /// The earlier phases whose artifacts it is made from, in order.
    fn upstream(&self) -> &'static [PhaseId];

    /// What becomes of the artifact that it wrote the last time.
    fn last_artifact(&self) -> LastArtifact {
        LastArtifact::Unseen
    }

    /// The question to the model; nothing where there is none to ask, and [`PhaseDefinition::without_model`] gives the document. Deterministic: no clock, no
    /// absolute path, nothing random.
    fn messages(&self, input: &PhaseInput<'_>) -> Option<Vec<Message>>;

    /// The document where nobody has to be asked: a fixup of a review that asks for no change.
    fn without_model(&self, input: &PhaseInput<'_>) -> Option<PhaseDocument> {
        let _ = input;
        None
    }

    /// Reads an answer.
    ///
    /// # Errors
    ///
    /// A verdict that says what is wrong with it, in words that the model can be corrected with.
    fn read(&self, answer: &Untrusted, input: &PhaseInput<'_>) -> Result<PhaseDocument, Verdict>;
}

/// What becomes of the artifact that a phase wrote the last time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastArtifact {
    /// It has to be shown: its ids live there.
    Needed,
    /// It is shown where it can be.
    Shown,
    /// The phase begins anew.
    Unseen,
}

/// What a phase works with.
#[derive(Debug)]
pub struct PhaseInput<'a> {
    /// The spec.
    pub spec: &'a SpecId,
    /// What the model may see.
    pub packet: &'a Packet,
    /// How a fixup is written.
    pub edit_format: EditFormat,
    /// The highest id of a requirement that is known to have been given; 0 where none is.
    pub highest_requirement: u32,
    /// The answer that was refused, where this is a correction.
    pub correction: Option<CorrectionBrief<'a>>,
}

impl<'a> PhaseInput<'a> {
    /// What the phase wrote the last time, where it goes on from that.
    #[must_use]
    pub fn previous(&self) -> Option<&'a Untrusted> {
        let entry = self.packet.entries.iter().find(|entry| matches!(entry.kind, EntryKind::Previous(_)));
        entry.map(|entry| &entry.content)
    }
}

/// What was wrong with an answer.
#[derive(Debug, Clone, Copy)]
pub struct CorrectionBrief<'a> {
    /// The answer.
    pub answer: &'a Untrusted,
    /// What was wrong with it.
    pub verdict: &'a Verdict,
}

/// What a phase makes of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseDocument {
    /// The artifact's text, with LF line ends and a final newline.
    pub text: String,
    /// What deserves a look.
    pub warnings: Vec<ReceiptWarning>,
    /// Of the phase `fixup` alone: the answer that proposes changes to files, to be read by `fixup`. Nothing where there is nothing to change.
    pub proposal: Option<Untrusted>,
}

/// Every phase, in order.
#[must_use]
pub fn phases() -> [&'static dyn PhaseDefinition; 6] {
    [
        &requirements::RequirementsPhase,
        &design::DesignPhase,
        &tasks::TasksPhase,
        &review::ReviewPhase,
        &fixup::FixupPhase,
        &final_::FinalPhase,
    ]
}

/// The artifact of a phase, where the packet shows it.
fn artifact<'a>(input: &PhaseInput<'a>, phase: PhaseId) -> Option<&'a Untrusted> {
    input.packet.text_of(EntryKind::Artifact(phase))
}

/// The ids of the requirements, where the packet shows requirements that have some.
fn requirements_of(input: &PhaseInput<'_>) -> Option<BTreeSet<u32>> {
    let text = artifact(input, PhaseId::Requirements)?;
    Some(Requirements::of_artifact(text.as_str()).ids()).filter(|ids| !ids.is_empty())
}

/// The document of a text that is not too long.
fn of_text(
    text: String,
    entries: usize,
    form: &Form,
    warnings: Vec<ReceiptWarning>,
) -> Result<PhaseDocument, Verdict> {
    match measured(&text, entries, form) {
        Some(finding) => Err(Verdict::new(vec![finding])),
        None => Ok(PhaseDocument { text, warnings, proposal: None }),
    }
}

/// Of documents that begin with a heading alone.
fn never(_: &str) -> bool {
    false
}

#[cfg(test)]
mod tests;
