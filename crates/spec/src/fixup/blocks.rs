//! Code blocks of an answer that would be dropped: a second one behind a file may be the rest of it.

use crucible_model::{Code, EditFormat, Finding};
use crucible_patch::{AnswerBlock, EditKind, Proposal, answer_blocks};

/// What is wrong with an answer that has a block of which nothing became an edit, next to blocks of which something did. Blocks that are
/// introduced as something for the shell are none of the files.
pub(super) fn dropped_block(format: EditFormat, answer: &str, proposal: &Proposal) -> Option<Finding> {
    if !matches!(format, EditFormat::WholeFile | EditFormat::Definitions) {
        return None;
    }
    let Proposal::Edits(edits) = proposal else { return None };
    let is_taken = |block: &AnswerBlock<'_>| {
        edits.iter().any(|edit| match &edit.kind {
            EditKind::WholeFile { content } | EditKind::Definitions { content } => *content == block.content,
            EditKind::Block { .. } | EditKind::Hunks { .. } | EditKind::Replace { .. } => false,
        })
    };
    let is_aside = |block: &AnswerBlock<'_>| block.label.is_some() && block.is_for_the_shell();
    let text = answer.replace("\r\n", "\n");
    // Edits were read from it, so every block has its end.
    let mut blocks = answer_blocks(&text).ok()?.into_iter();
    let dropped = blocks.find(|block| !is_taken(block) && !is_aside(block))?;
    let hint = format!(
        "the code block in line {} names no file, and may be the rest of the one before it; give each file in one block of its own, \
         with a longer fence where it holds fences itself, and nothing else in code blocks",
        dropped.line
    );
    Some(Finding::error(Code::new("fixup-block-unclear"), "the answer", hint))
}
