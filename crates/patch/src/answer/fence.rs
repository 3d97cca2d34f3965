//! Fenced code blocks in an answer.
//!
//! A fence is a line of at least three backticks or tildes, indented by at most three blanks. It is closed by a fence
//! of the same kind that is at least as long and has no words behind it. Inside, a fence with words opens a nested
//! block, so that a Markdown file with code blocks is read whole; the longest fence wins.

use super::AnswerError;

/// A fenced block at the top level of an answer.
pub(super) struct Block<'a> {
    /// The words behind the opening fence.
    pub(super) info: &'a str,
    /// The lines inside, each with its line feed.
    pub(super) content: &'a str,
    /// The line of the opening fence, counted from 1.
    pub(super) line: u64,
    /// How many marks the opening fence has.
    pub(super) length: usize,
    /// The last line that is not blank between the block before and this one.
    pub(super) label: Option<&'a str>,
}

/// A line that opens or closes a block.
#[derive(Clone, Copy)]
pub(super) struct Fence<'a> {
    mark: char,
    length: usize,
    /// What follows the marks, trimmed.
    pub(super) info: &'a str,
}

impl<'a> Fence<'a> {
    /// Reads a line as a fence.
    pub(super) fn of(line: &'a str) -> Option<Self> {
        let text = line.trim_end();
        let inner = text.trim_start_matches(' ');
        let mark = inner.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let info = inner.trim_start_matches(mark);
        let length = inner.len() - info.len();
        let is_fence = length >= 3 && text.len() - inner.len() <= 3 && !(mark == '`' && info.contains('`'));
        is_fence.then_some(Self { mark, length, info: info.trim() })
    }

    fn closes(self, open: Fence<'_>) -> bool {
        self.mark == open.mark && self.length >= open.length && self.info.is_empty()
    }

    fn nests_in(self, open: Fence<'_>) -> bool {
        self.mark == open.mark && self.length >= open.length && !self.info.is_empty()
    }
}

/// The fenced blocks of an answer, from top to bottom.
pub(super) fn blocks(text: &str) -> Result<Vec<Block<'_>>, AnswerError> {
    let mut blocks = Vec::new();
    let mut open: Vec<Fence<'_>> = Vec::new();
    let mut label = None;
    let (mut at, mut opened_at, mut content_start) = (0usize, 0u64, 0usize);
    for (number, line) in (1u64..).zip(text.split_inclusive('\n')) {
        let start = at;
        at += line.len();
        let fence = Fence::of(line);
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
            (Some(inner), Some(fence)) if fence.closes(inner) => {
                if open.len() == 1 {
                    blocks.push(Block {
                        info: inner.info,
                        content: text.get(content_start..start).unwrap_or_default(),
                        line: opened_at,
                        length: inner.length,
                        label: label.take(),
                    });
                }
                open.pop();
            }
            (Some(inner), Some(fence)) if fence.nests_in(inner) => open.push(fence),
            (Some(_), _) => {}
        }
    }
    if open.is_empty() { Ok(blocks) } else { Err(AnswerError::UnclosedFence { line: opened_at }) }
}
