//! The trait of phases, its input and its output.

use std::collections::BTreeSet;

use crucible_llm::{Message, ReceiptWarning};
use crucible_model::{EditFormat, Untrusted, Verdict};

use crate::document::{Form, Requirements, measured};
use crate::id::SpecId;
use crate::packet::{EntryKind, Packet};
use crate::phase_id::PhaseId;

/// How a phase builds its prompt and parses the answer.
pub trait PhaseDefinition: Send + Sync {
    /// The id of the phase.
    fn id(&self) -> PhaseId;

    /// The earlier phases whose artifacts it reads, in order.
    fn upstream(&self) -> &'static [PhaseId];

    /// How the phase uses its last artifact.
    fn last_artifact(&self) -> LastArtifact {
        LastArtifact::Unseen
    }

    /// The prompt; none if no model is needed, and then [`PhaseDefinition::without_model`] returns the
    /// document. Deterministic: no clock, no absolute path, no randomness.
    fn messages(&self, input: &PhaseInput<'_>) -> Option<Vec<Message>>;

    /// The document if no model is needed: a fixup of a review that requests no change.
    fn without_model(&self, input: &PhaseInput<'_>) -> Option<PhaseDocument> {
        let _ = input;
        None
    }

    /// Parses an answer.
    ///
    /// # Errors
    ///
    /// A verdict whose findings can be sent to the model as a correction.
    fn read(&self, answer: &Untrusted, input: &PhaseInput<'_>) -> Result<PhaseDocument, Verdict>;
}

/// How a phase uses its last artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastArtifact {
    /// It must be shown, because it contains the ids.
    Needed,
    /// It is shown if possible.
    Shown,
    /// The phase starts over without it.
    Unseen,
}

/// The input of a phase.
#[derive(Debug)]
pub struct PhaseInput<'a> {
    /// The spec to which the phase belongs.
    pub spec: &'a SpecId,
    /// The content that the model may see.
    pub packet: &'a Packet,
    /// The edit format of a fixup.
    pub edit_format: EditFormat,
    /// The highest requirement id known to have been assigned; 0 if none.
    pub highest_requirement: u32,
    /// The refused answer, if this is a correction.
    pub correction: Option<CorrectionBrief<'a>>,
}

impl<'a> PhaseInput<'a> {
    /// The last document of the phase, if the phase continues from it.
    #[must_use]
    pub fn previous(&self) -> Option<&'a Untrusted> {
        let entry = self
            .packet
            .entries
            .iter()
            .find(|entry| matches!(entry.kind, EntryKind::Previous(_)));
        entry.map(|entry| &entry.content)
    }
}

/// A refused answer, and why it was refused.
#[derive(Debug, Clone, Copy)]
pub struct CorrectionBrief<'a> {
    /// The refused answer, as the model wrote it.
    pub answer: &'a Untrusted,
    /// The findings about it.
    pub verdict: &'a Verdict,
}

/// The result of parsing an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseDocument {
    /// The artifact's text, with LF line endings and a final newline.
    pub text: String,
    /// Warnings for the receipt.
    pub warnings: Vec<ReceiptWarning>,
    /// For the phase `fixup` only: the answer that proposes file changes, to be parsed by `fixup`. Absent
    /// if there is nothing to change.
    pub proposal: Option<Untrusted>,
}

/// The artifact of a phase, if it is in the packet.
pub(super) fn artifact<'a>(input: &PhaseInput<'a>, phase: PhaseId) -> Option<&'a Untrusted> {
    input.packet.text_of(EntryKind::Artifact(phase))
}

/// The ids of the requirements, if the packet contains any.
pub(super) fn requirements_of(input: &PhaseInput<'_>) -> Option<BTreeSet<u32>> {
    let text = artifact(input, PhaseId::Requirements)?;
    Some(Requirements::of_artifact(text.as_str()).ids()).filter(|ids| !ids.is_empty())
}

/// The document with this text, if it is not too long.
pub(super) fn of_text(
    text: String,
    entries: usize,
    form: &Form,
    warnings: Vec<ReceiptWarning>,
) -> Result<PhaseDocument, Verdict> {
    match measured(&text, entries, form) {
        Some(finding) => Err(Verdict::new(vec![finding])),
        None => Ok(PhaseDocument {
            text,
            warnings,
            proposal: None,
        }),
    }
}

/// For documents that can begin only with a heading.
pub(super) fn never(_: &str) -> bool {
    false
}
