//! Search-and-replace blocks.

use crucible_model::{CodeFence, RepoPath};

use super::{AnswerError, Edit, EditKind, name};

/// How many blocks are read, of any kind: each costs a pass over its file.
pub(super) const MAX_EDITS: u64 = 500;

/// Reads every block. A block is for the path in the line above it (a fence may stand between), else for the file of
/// the block before, else for the single expected file.
pub(super) fn read(text: &str, expected: &[RepoPath]) -> Result<Vec<Edit>, AnswerError> {
    let mut edits: Vec<Edit> = Vec::new();
    let mut above: Option<Above<'_>> = None;
    let mut lines = (1u64..).zip(text.lines());
    while let Some((number, line)) = lines.next() {
        if is_replace_marker(line) {
            return Err(AnswerError::BrokenBlock {
                line: number,
                why: "`REPLACE` without `SEARCH` before it; begin each block with its `SEARCH` line",
            });
        }
        if !is_search_marker(line) {
            match CodeFence::parse(line) {
                Some(fence) if fence.info().is_empty() => {}
                Some(fence) => {
                    above = name::in_info(fence.info(), number, expected)?
                        .map(Above::Path)
                        .or(above);
                }
                None if line.trim().is_empty() => {}
                None => above = Some(Above::Line(number, line)),
            }
            continue;
        }
        if edits.len() as u64 == MAX_EDITS {
            return Err(AnswerError::TooManyEdits { limit: MAX_EDITS });
        }
        let search = collect(&mut lines, number, is_divider)?;
        let replace = collect(&mut lines, number, is_replace_marker)?;
        let named = match above.take() {
            Some(Above::Path(path)) => Some(path),
            Some(Above::Line(number, line)) => name::in_label(line, number, expected)?,
            None => None,
        };
        let before = edits.last().map(|edit| edit.path.clone());
        let only = if let [path] = expected {
            Some(path.clone())
        } else {
            None
        };
        let path = named
            .or(before)
            .or(only)
            .ok_or(AnswerError::NoPath { line: number })?;
        edits.push(Edit {
            path,
            kind: EditKind::Replace { search, replace },
        });
    }
    if edits.is_empty() {
        Err(AnswerError::NoEdit)
    } else {
        Ok(edits)
    }
}

/// What stood above a block.
enum Above<'a> {
    Path(RepoPath),
    Line(u64, &'a str),
}

/// Whether a line is `<<<<<<< SEARCH`.
pub(super) fn is_search_marker(line: &str) -> bool {
    is_marker(line, '<', "SEARCH")
}

fn is_divider(line: &str) -> bool {
    is_marker(line, '=', "")
}

fn is_replace_marker(line: &str) -> bool {
    is_marker(line, '>', "REPLACE")
}

fn is_marker(line: &str, mark: char, word: &str) -> bool {
    let rest = line.trim_start_matches(mark);
    (5..=9).contains(&(line.len() - rest.len())) && rest.trim() == word
}

/// The lines up to the one that ends this half of a block. Any other marker on the way means that halves are missing.
fn collect<'a>(
    lines: &mut impl Iterator<Item = (u64, &'a str)>,
    opened_at: u64,
    is_end: fn(&str) -> bool,
) -> Result<String, AnswerError> {
    let mut text = String::new();
    for (line, content) in lines {
        if is_end(content) {
            return Ok(text);
        }
        if is_search_marker(content) || is_divider(content) || is_replace_marker(content) {
            return Err(AnswerError::BrokenBlock {
                line,
                why: "this marker of a search-and-replace block is out of order; write SEARCH, the divider and REPLACE in \
                      this order, each once",
            });
        }
        text.push_str(content);
        text.push('\n');
    }
    Err(AnswerError::BrokenBlock {
        line: opened_at,
        why: "the search-and-replace block that begins here has no end; close each block with its `REPLACE` line",
    })
}
