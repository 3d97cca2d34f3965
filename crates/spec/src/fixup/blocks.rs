//! Code blocks of an answer that would be dropped: a second one behind a file may be the rest of it.

use crucible_model::{Code, EditFormat, Finding};
use crucible_patch::{EditKind, Proposal};

use crate::document::fence;

/// Words behind a fence that say: this is for the shell, or shows what it printed.
const NOT_A_FILE: [&str; 9] = ["bash", "sh", "shell", "console", "zsh", "text", "txt", "output", "plaintext"];

/// A code block at the top level of an answer.
struct Block {
    info: String,
    content: String,
    /// The line of its opening fence, from 1 on.
    line: usize,
    /// Whether a line of text stands between the block before and this one.
    is_introduced: bool,
}

/// What is wrong with an answer that has a block of which nothing became an edit, next to blocks of which something did. Blocks that are
/// introduced as something for the shell are none of the files.
pub(super) fn dropped_block(format: EditFormat, answer: &str, proposal: &Proposal) -> Option<Finding> {
    if !matches!(format, EditFormat::WholeFile | EditFormat::Definitions) {
        return None;
    }
    let Proposal::Edits(edits) = proposal else { return None };
    let is_taken = |block: &Block| {
        edits.iter().any(|edit| match &edit.kind {
            EditKind::WholeFile { content } | EditKind::Definitions { content } => *content == block.content,
            EditKind::Replace { .. } => false,
        })
    };
    let is_aside = |block: &Block| block.is_introduced && NOT_A_FILE.contains(&block.info.as_str());
    let dropped = blocks(answer).into_iter().find(|block| !is_taken(block) && !is_aside(block))?;
    let hint = format!(
        "the code block in line {} names no file, and may be the rest of the one before it; give each file in one block of its own, \
         with a longer fence where it holds fences itself, and nothing else in code blocks",
        dropped.line
    );
    Some(Finding::error(Code::new("fixup-block-unclear"), "the answer", hint))
}

/// The blocks at the top level, as edits are read from them: a fence with words opens one inside of another.
fn blocks(text: &str) -> Vec<Block> {
    let text = text.replace("\r\n", "\n");
    let mut blocks = Vec::new();
    let mut open = Vec::new();
    let mut is_introduced = false;
    let mut block: Option<Block> = None;
    for (line, number) in text.split_inclusive('\n').zip(1..) {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let found = fence(line.trim_end()).filter(|_| indent <= 3);
        match (open.last().copied(), found) {
            (None, None) => is_introduced |= !line.trim().is_empty(),
            (None, Some(found)) => {
                let info = found.info.to_owned();
                block = Some(Block { info, content: String::new(), line: number, is_introduced });
                open.push(found);
                continue;
            }
            (Some(inner), Some(found)) if inner.closes_with(found) => {
                open.pop();
                if open.is_empty() {
                    blocks.extend(block.take());
                    is_introduced = false;
                }
            }
            (Some(inner), Some(found)) if !found.info.is_empty() => {
                let bare = line.trim_end().strip_suffix(found.info).and_then(|marks| fence(marks.trim_end()));
                if bare.is_some_and(|bare| inner.closes_with(bare)) {
                    open.push(found);
                }
            }
            (Some(_), _) => {}
        }
        if let Some(block) = &mut block {
            block.content.push_str(line);
        }
    }
    blocks
}
