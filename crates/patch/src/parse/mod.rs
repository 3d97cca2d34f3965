//! The strict reader of git-format patches.
//!
//! It works on bytes and splits at line feeds only. Within a hunk the counts of its header decide what is content;
//! the look of a line decides nothing, so text that mentions `diff --git` or begins with `++ ` stays text. Outside a
//! hunk every line must be one that git writes there.
//!
//! What always holds for a patch that was read: each section has its own `diff --git`, its names agree everywhere and
//! are repository paths, no path is changed twice, hunks are ordered and their positions fit together. What `git
//! apply` would skip in silence (prose, a section without a header) is an error here, so both read the same changes.

mod binary;
mod error;
mod header;
mod hunk;
mod lines;

use std::collections::HashSet;

pub use error::{PatchError, PatchErrorKind};
use header::Headers;
use lines::Lines;

use crate::patch::{Change, Content, FileMode, FilePatch, Hunk, Patch};

/// The largest patch that is read, in bytes: 4 MiB, far above what any policy lets through.
pub(crate) const MAX_PATCH_BYTES: u64 = 4 << 20;

const SECTION: &[u8] = b"diff --git ";

/// Reads a git-format unified diff.
///
/// # Errors
///
/// Fails on the first thing that git would not have written; the error names the line.
pub fn parse(raw: &[u8]) -> Result<Patch, PatchError> {
    let at = |line, kind| Err(PatchError { line, kind });
    if raw.len() as u64 > MAX_PATCH_BYTES {
        return at(
            1,
            PatchErrorKind::TooLarge {
                bytes: raw.len() as u64,
                limit: MAX_PATCH_BYTES,
            },
        );
    }
    if raw.iter().all(u8::is_ascii_whitespace) {
        return at(1, PatchErrorKind::Empty);
    }
    if !raw.starts_with(SECTION) {
        return at(1, PatchErrorKind::NotGitDiff);
    }
    if !raw.ends_with(b"\n") {
        let newlines = raw.iter().filter(|byte| **byte == b'\n').count() as u64;
        return at(newlines + 1, PatchErrorKind::Truncated);
    }
    let mut lines = Lines::new(raw);
    let mut files = Vec::new();
    let mut written = HashSet::new();
    while lines.peek().is_some() {
        let number = lines.number();
        let file = section(&mut lines)?;
        let moved = match &file.change {
            Change::Rename { from } => Some(from),
            _ => None,
        };
        for path in std::iter::once(&file.path).chain(moved) {
            if !written.insert(path.clone()) {
                let path = path.to_string();
                return at(
                    number,
                    match is_type_change(&files, &file) {
                        true => PatchErrorKind::TypeChange { path },
                        false => PatchErrorKind::PathTwice { path },
                    },
                );
            }
        }
        files.push(file);
    }
    Ok(Patch { files })
}

/// Whether a section creates, as another kind of entry, what an earlier one removes: the way in which git writes that a file becomes
/// a link, or a submodule.
fn is_type_change(files: &[FilePatch], file: &FilePatch) -> bool {
    let is_plain = |mode| matches!(mode, Some(FileMode::Regular | FileMode::Executable));
    let deletion = files
        .iter()
        .find(|before| before.path == file.path && before.change == Change::Delete);
    deletion.is_some_and(|deletion| {
        let kinds = (deletion.old_mode, file.new_mode);
        file.change == Change::Create
            && kinds.0 != kinds.1
            && !(is_plain(kinds.0) && is_plain(kinds.1))
    })
}

/// Reads one file's section, from its `diff --git` to the next one.
fn section(lines: &mut Lines<'_>) -> Result<FilePatch, PatchError> {
    let first = lines.number();
    let headers = Headers::read(lines)?;
    let mut hunks = Vec::new();
    let mut content = Content::Text;
    if headers.has_names() {
        hunks = read_hunks(lines)?;
    } else if lines.peek() == Some(b"GIT binary patch") {
        binary::skip(lines)?;
        content = Content::Binary;
    } else if lines
        .peek()
        .is_some_and(|line| line.starts_with(b"Binary files ") && line.ends_with(b" differ"))
    {
        lines.next();
        content = Content::Omitted;
    }
    expect_section_end(lines, &hunks)?;
    let fail = |kind| Err(PatchError { line: first, kind });
    let file = headers.resolve(first)?;
    if hunks.is_empty() && content == Content::Text {
        let by_headers_alone =
            !matches!(file.change, Change::Modify) || file.old_mode != file.new_mode;
        if headers.has_names() || !by_headers_alone {
            return fail(PatchErrorKind::NothingChanged);
        }
    }
    if let Some(hunk) = hunks.first() {
        let (starts, empty) = match file.change {
            Change::Create => (hunk.old_start, hunk.old_lines == 0),
            Change::Delete => (hunk.new_start, hunk.new_lines == 0),
            Change::Modify | Change::Rename { .. } | Change::Copy { .. } => (0, true),
        };
        if starts != 0
            || !empty
            || (hunks.len() > 1 && matches!(file.change, Change::Create | Change::Delete))
        {
            return fail(PatchErrorKind::HeadersDisagree {
                why: "a file that is created has no lines before, one that is deleted has none afterwards",
            });
        }
    }
    Ok(FilePatch {
        hunks,
        content,
        ..file
    })
}

fn read_hunks(lines: &mut Lines<'_>) -> Result<Vec<Hunk>, PatchError> {
    let mut hunks: Vec<Hunk> = Vec::new();
    let mut ends = hunk::Ends::default();
    let (mut old_end, mut shift) = (0usize, 0i64);
    while lines.peek().is_some_and(|line| line.starts_with(b"@@")) {
        let number = lines.number();
        let hunk = hunk::read(lines, &mut ends)?;
        let fits = hunk.old_index() as i64 + shift == hunk.new_index() as i64;
        if hunk.old_index() < old_end || !fits {
            return Err(PatchError {
                line: number,
                kind: PatchErrorKind::HunkOrder,
            });
        }
        old_end = hunk.old_index() + hunk.old_lines as usize;
        shift += hunk.new_lines as i64 - hunk.old_lines as i64;
        hunks.push(hunk);
    }
    Ok(hunks)
}

/// After a section comes the next one or the end; everything else is named for what it is.
fn expect_section_end(lines: &Lines<'_>, hunks: &[Hunk]) -> Result<(), PatchError> {
    let Some(line) = lines.peek() else {
        return Ok(());
    };
    if line.starts_with(SECTION) {
        return Ok(());
    }
    let follows = lines.peek_second().unwrap_or_default();
    let kind = if line.starts_with(b"--- ") && follows.starts_with(b"+++ ") {
        PatchErrorKind::SectionWithoutHeader
    } else if line.starts_with(b"\\") {
        PatchErrorKind::MisplacedMarker
    } else if !hunks.is_empty() && matches!(line.first(), Some(b' ' | b'+' | b'-')) {
        PatchErrorKind::HunkCounts
    } else {
        PatchErrorKind::Junk
    };
    Err(PatchError {
        line: lines.number(),
        kind,
    })
}

#[cfg(test)]
mod tests;
