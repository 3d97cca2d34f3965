//! Detects code blocks of an answer that would be dropped: a second block after a file may be its
//! continuation.

use crucible_model::{Code, EditFormat, Finding};
use crucible_patch::{AnswerBlock, EditKind, Proposal, answer_blocks};

/// The finding about an answer with a block that became no edit, next to blocks that did. Blocks
/// introduced as shell commands are ignored.
pub(super) fn dropped_block(
    format: EditFormat,
    answer: &str,
    proposal: &Proposal,
) -> Option<Finding> {
    if !matches!(format, EditFormat::WholeFile | EditFormat::Definitions) {
        return None;
    }
    let Proposal::Edits(edits) = proposal else {
        return None;
    };
    let is_taken = |block: &AnswerBlock<'_>| {
        edits.iter().any(|edit| match &edit.kind {
            EditKind::WholeFile { content } | EditKind::Definitions { content } => {
                *content == block.content
            }
            EditKind::Block { .. }
            | EditKind::Hunks { .. }
            | EditKind::Delete { .. }
            | EditKind::Replace { .. } => false,
        })
    };
    let is_aside = |block: &AnswerBlock<'_>| block.label.is_some() && block.is_shell_block();
    let text = answer.replace("\r\n", "\n");
    // Edits were parsed from it, so every block is closed.
    let mut blocks = answer_blocks(&text).ok()?.into_iter();
    let dropped = blocks.find(|block| !is_taken(block) && !is_aside(block))?;
    let hint = format!(
        "the code block in line {} names no file, and may be the rest of the one before it; give each file in one block of its own, \
         with a longer fence where it holds fences itself, and nothing else in code blocks",
        dropped.line
    );
    Some(Finding::error(
        Code::new("fixup-block-unclear"),
        "the answer",
        hint,
    ))
}
