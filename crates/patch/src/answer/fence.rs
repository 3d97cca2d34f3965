//! The blocks of code in an answer.
//!
//! Inside a block, a fence with words opens a nested one, so that a Markdown file with blocks of code is read whole; the
//! longest fence wins.

use crucible_model::CodeFence;

use super::AnswerError;

/// Words behind a fence that say: this is for the shell, or shows what it printed.
const NOT_A_FILE: [&str; 9] = [
    "bash",
    "sh",
    "shell",
    "console",
    "zsh",
    "text",
    "txt",
    "output",
    "plaintext",
];

/// A block of code at the top level of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerBlock<'a> {
    /// The words behind the opening fence.
    pub info: &'a str,
    /// The lines inside, each with its line feed.
    pub content: &'a str,
    /// The line of the opening fence, counted from 1.
    pub line: u64,
    /// How many marks the opening fence has.
    pub length: usize,
    /// The last line that is not blank between the block before and this one.
    pub label: Option<&'a str>,
}

impl AnswerBlock<'_> {
    /// Whether its words say that it is for the shell, or shows what it printed.
    #[must_use]
    pub fn is_shell_block(&self) -> bool {
        NOT_A_FILE.contains(&self.info)
    }
}

/// The blocks of code of an answer with LF line ends, from top to bottom.
///
/// # Errors
///
/// [`AnswerError::UnclosedFence`] where the last one has no end.
pub fn answer_blocks(text: &str) -> Result<Vec<AnswerBlock<'_>>, AnswerError> {
    let mut blocks = Vec::new();
    let mut open: Vec<CodeFence<'_>> = Vec::new();
    let mut label = None;
    let (mut at, mut opened_at, mut content_start) = (0usize, 0u64, 0usize);
    for (number, line) in (1u64..).zip(text.split_inclusive('\n')) {
        let start = at;
        at += line.len();
        let fence = CodeFence::parse(line);
        match (open.last().copied(), fence) {
            (None, None) => {
                if !line.trim().is_empty() {
                    label = Some(line.trim_end());
                }
            }
            (None, Some(fence)) => {
                open.push(fence);
                (opened_at, content_start) = (number, at);
            }
            (Some(inner), Some(fence)) if inner.is_closed_by(fence) => {
                if open.len() == 1 {
                    blocks.push(AnswerBlock {
                        info: inner.info(),
                        content: text.get(content_start..start).unwrap_or_default(),
                        line: opened_at,
                        length: inner.length(),
                        label: label.take(),
                    });
                }
                open.pop();
            }
            (Some(inner), Some(fence)) if inner.holds(fence) => open.push(fence),
            (Some(_), _) => {}
        }
    }
    if open.is_empty() {
        Ok(blocks)
    } else {
        Err(AnswerError::UnclosedFence { line: opened_at })
    }
}
