//! Which form an answer has, whatever form was asked for.
//!
//! An answer in the form that was asked for is read in that form. Any other is known by marks that no other form has:
//! `<<<<<<< SEARCH` at the beginning of a block, the headers of a diff, a block of code with the name of a file. Marks of
//! two forms, or marks amid the content of a file, say nothing, and the error of the form that was asked for stands.

use crucible_model::{CodeFence, EditFormat, RepoPath, Untrusted};

use super::{
    AnswerError, BYTE_ORDER_MARK, EditKind, Proposal, answer_blocks, checked, diff, hunks, name,
};
use super::{read_answer, replace, whole};
use crate::parse::parse;

/// What an answer was read as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedAnswer {
    /// The form it has.
    pub format: EditFormat,
    /// What it proposes.
    pub proposal: Proposal,
}

/// Reads an answer as [`read_answer`] does, and takes any other form that it clearly has.
///
/// # Errors
///
/// Those of [`read_answer`] for the form that the answer has, or else for the one that was asked for.
pub fn read_any_answer(
    requested: EditFormat,
    answer: &Untrusted,
    expected: &[RepoPath],
) -> Result<ParsedAnswer, AnswerError> {
    let own = read_answer(requested, answer, expected);
    let is_read = |proposal: &Proposal| match proposal {
        Proposal::Edits(_) => true,
        Proposal::Diff(diff) => parse(diff).is_ok(),
    };
    if own.as_ref().is_ok_and(is_read) {
        return own.map(|proposal| ParsedAnswer {
            format: requested,
            proposal,
        });
    }
    let text = checked(answer)?;
    let lines = text.replace("\r\n", "\n");
    let (format, other) = match (searches(&lines, expected), diff_in(text)) {
        (true, None) => (
            EditFormat::SearchReplace,
            Some(replace::read(&lines, expected).map(Proposal::Edits)),
        ),
        (false, Some(found)) => (EditFormat::UnifiedDiff, read_diff(found)),
        (false, None) if !matches!(requested, EditFormat::WholeFile | EditFormat::Definitions) => {
            let block = |content| EditKind::Block { content };
            let read = whole::read(&lines, expected, block).map(Proposal::Edits);
            // A block that cannot be read so is as likely what the answer talks about.
            (EditFormat::WholeFile, read.ok().map(Ok))
        }
        _ => (requested, None),
    };
    let (format, proposal) = match other {
        Some(Ok(proposal)) => (format, Ok(proposal)),
        Some(Err(error)) if format != requested => (format, Err(error)),
        Some(Err(_)) | None => (requested, own),
    };
    proposal.map(|proposal| ParsedAnswer { format, proposal })
}

/// Whether the answer has blocks that search and replace: outside of code, or at the beginning of a block of code, behind
/// a line with the path at the most. Amid a block they are the content of a file.
fn searches(text: &str, expected: &[RepoPath]) -> bool {
    if !text.lines().any(replace::is_search_marker) {
        return false;
    }
    let Ok(blocks) = answer_blocks(text) else {
        // A block of code without an end is no reason to overlook what stands in it.
        return true;
    };
    blocks.iter().all(|block| {
        let mut lines = block.content.lines().filter(|line| !line.trim().is_empty());
        let first = lines.next().unwrap_or_default();
        let is_named = name::in_label(first, block.line, expected).is_ok_and(|path| path.is_some());
        replace::is_search_marker(first)
            || (is_named && lines.next().is_some_and(replace::is_search_marker))
            || !block.content.lines().any(replace::is_search_marker)
    })
}

/// A diff in an answer.
enum Found<'a> {
    One(&'a str),
    Several,
}

/// The diff in an answer, without the sentence before it and the fence around it.
fn diff_in(text: &str) -> Option<Found<'_>> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let lines: Vec<&str> = text.lines().collect();
    let start = (0..lines.len()).find(|at| hunks::starts_section(&lines[*at..]))?;
    // Where each line begins.
    let offset =
        |line: usize| -> usize { text.split_inclusive('\n').take(line).map(str::len).sum() };
    let before = lines.get(..start)?;
    let fences = before
        .iter()
        .filter(|line| CodeFence::parse(line).is_some())
        .count();
    let opening = before.iter().rev().find(|line| !line.trim().is_empty());
    let opening = opening.and_then(|line| CodeFence::parse(line));
    match opening.filter(|_| fences == 1) {
        None if fences == 0 => Some(Found::One(text.get(offset(start)..)?)),
        // It stands amid some code, or behind it.
        None => None,
        Some(fence) => {
            let is_end = |line: &&str| {
                !line.starts_with([' ', '\t'])
                    && CodeFence::parse(line).is_some_and(|end| fence.is_closed_by(end))
            };
            let length = lines.get(start..)?.iter().position(is_end)?;
            let rest = lines.get(start + length + 1..)?;
            if (0..rest.len()).any(|at| hunks::starts_section(&rest[at..])) {
                return Some(Found::Several);
            }
            Some(Found::One(text.get(offset(start)..offset(start + length))?))
        }
    }
}

/// The diff as its bytes where git would have written it, and as edits where it can be read so; nothing elsewhere.
fn read_diff(found: Found<'_>) -> Option<Result<Proposal, AnswerError>> {
    let Found::One(text) = found else {
        return Some(Err(AnswerError::TwoDiffs));
    };
    let strict = diff::read(text).ok().map(Proposal::Diff);
    if let Some(Proposal::Diff(bytes)) = &strict
        && parse(bytes).is_ok()
    {
        return strict.map(Ok);
    }
    hunks::read(text)
        .map(|edits| Ok(Proposal::Edits(edits)))
        .or(strict.map(Ok))
}
