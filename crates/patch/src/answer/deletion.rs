//! Definitions that an answer takes away: a line `DELETE: name` outside of the blocks, below the file's name.
//!
//! A block of definitions cannot say that one goes. The line names one definition of the file, with its container where it
//! has one: `DELETE: Shape.area`, `DELETE: Shape::area`. The judge of the change treats the removal as any other.

use crucible_model::RepoPath;

use super::fence::{AnswerBlock, answer_blocks};
use super::{AnswerError, name};

/// The most lines of this form that are read.
const MAX_DELETED: u64 = 500;

/// Takes the deletions, each with its file, out of an answer with LF line ends. The rest keeps its line numbers.
///
/// # Errors
///
/// Fails when the answer's blocks cannot be read, when a line stands below no file's name, or when there are too many.
pub(super) fn deletions(
    text: &str,
    expected: &[RepoPath],
) -> Result<(String, Vec<(RepoPath, String)>), AnswerError> {
    if !text.lines().any(|line| deleted(line).is_some()) {
        return Ok((text.to_owned(), Vec::new()));
    }
    let blocks = answer_blocks(text)?;
    let (mut rest, mut found) = (String::with_capacity(text.len()), Vec::new());
    let mut path = None;
    for (number, line) in (1u64..).zip(text.split_inclusive('\n')) {
        let inside = blocks
            .iter()
            .find(|block| lines_of(block).contains(&number));
        let Some(what) = deleted(line).filter(|_| inside.is_none()) else {
            rest.push_str(line);
            if inside.is_none() {
                path = name::in_label(line, number, expected)?.or(path);
            }
            continue;
        };
        // Without a name, an answer is about the only file that was asked for.
        let file = match (&path, expected) {
            (Some(path), _) | (None, [path]) => path.clone(),
            (None, _) => return Err(AnswerError::NoPath { line: number }),
        };
        if found.len() as u64 == MAX_DELETED {
            return Err(AnswerError::TooManyEdits { limit: MAX_DELETED });
        }
        found.push((file, what.to_owned()));
        rest.push('\n');
    }
    Ok((rest, found))
}

/// What a line deletes.
fn deleted(line: &str) -> Option<&str> {
    let line = line.trim().trim_start_matches("- ").trim_matches('`');
    let name = line.strip_prefix("DELETE:")?.trim().trim_matches('`');
    let name = name.strip_suffix("()").unwrap_or(name);
    (!name.is_empty() && !name.contains(char::is_whitespace)).then_some(name)
}

/// The lines of a block with its fences, counted from 1.
fn lines_of(block: &AnswerBlock<'_>) -> std::ops::RangeInclusive<u64> {
    let inside = block.content.lines().count() as u64;
    block.line..=block.line + inside + 1
}
