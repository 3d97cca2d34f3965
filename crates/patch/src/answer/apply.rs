//! From edits to file contents.
//!
//! An edit is text with LF line ends; a file keeps its own. What a fence cannot say is taken from the file: its line
//! ends, its byte order mark, and whether its last line has a newline (inside a fence every line has one, so a missing
//! one at the end of the old file is kept missing; a new file ends with one).

use std::collections::{BTreeMap, HashSet};

use crucible_model::RepoPath;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::place::{apply_hunks, push, replace_once, without_line_end};
use super::splice::{Coverage, Target};
use super::{AnswerError, Edit, EditKind, Proposal, name};
use crate::parse::parse;
use crate::patch::{Change, Content, Files};

/// How many blocks of definitions of one file are put in one after the other.
const MAX_APART: usize = 8;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Applies a proposal to `files` and returns the new contents of the files that it touches. Files that a diff takes
/// away are not in the result, nor are files whose new content a diff does not show: [`crate::judge`] refuses those.
///
/// # Errors
///
/// Fails when an edit does not fit its file, or when a diff cannot be read.
pub fn apply(proposal: &Proposal, files: &Files) -> Result<Files, AnswerError> {
    let mut after = Files::new();
    match proposal {
        Proposal::Edits(edits) => {
            let mut blocks = blocks_of(edits);
            for (number, edit) in (1u64..).zip(edits) {
                let before = after
                    .get(&edit.path)
                    .or_else(|| files.get(&edit.path))
                    .map(Vec::as_slice);
                if matches!(edit.kind, EditKind::Definitions { .. }) {
                    // All of them are put in with the first.
                    if let Some(contents) = blocks.remove(&edit.path) {
                        let content = by_definitions(&edit.path, &contents, before)?;
                        after.insert(edit.path.clone(), content);
                    }
                    continue;
                }
                let is_again = after.contains_key(&edit.path);
                let content = match &edit.kind {
                    EditKind::Block { content } => by_block(&edit.path, content, before, is_again)?,
                    _ => apply_edit(edit, number, before)?,
                };
                after.insert(edit.path.clone(), content);
            }
        }
        Proposal::Diff(diff) => {
            for file in parse(diff)?.files {
                let path = file.path.clone();
                // Not shown, so not known; `judge` refuses it.
                if file.content != Content::Text || file.is_submodule() {
                    continue;
                }
                if file.change == Change::Create && files.contains_key(&path) {
                    return Err(AnswerError::DoesNotApply { path, line: 0 });
                }
                let before = match file.old_path() {
                    None => &[][..],
                    Some(source) => files.get(source).ok_or(AnswerError::UnknownFile {
                        path: source.clone(),
                    })?,
                };
                let content = file
                    .apply_to(before)
                    .map_err(|line| AnswerError::DoesNotApply {
                        path: path.clone(),
                        line,
                    })?;
                if file.change != Change::Delete {
                    after.insert(path, content);
                } else if !content.is_empty() {
                    return Err(AnswerError::DoesNotApply { path, line: 0 });
                }
            }
        }
    }
    Ok(after)
}

fn apply_edit(edit: &Edit, number: u64, before: Option<&[u8]>) -> Result<Vec<u8>, AnswerError> {
    match &edit.kind {
        EditKind::WholeFile { content } => whole_file(&edit.path, content, before),
        EditKind::Definitions { content } => by_definitions(&edit.path, &[content], before),
        EditKind::Block { content } => by_block(&edit.path, content, before, false),
        EditKind::Delete { name } => without_definition(&edit.path, name, before),
        EditKind::Hunks { hunks } => {
            let before = before.ok_or_else(|| AnswerError::UnknownFile {
                path: edit.path.clone(),
            })?;
            for hunk in hunks {
                refuse_elided(&edit.path, &hunk.added(), before)?;
            }
            apply_hunks(&edit.path, hunks, before)
        }
        EditKind::Replace { search, replace } => {
            refuse_elided(&edit.path, replace, before.unwrap_or_default())?;
            match before {
                None if search.trim().is_empty() => Ok(replace.as_bytes().to_vec()),
                None => Err(AnswerError::UnknownFile {
                    path: edit.path.clone(),
                }),
                Some(before) if search.trim().is_empty() && before.trim_ascii().is_empty() => {
                    Ok(replace.as_bytes().to_vec())
                }
                Some(_) if search.trim().is_empty() => Err(AnswerError::EmptySearch {
                    path: edit.path.clone(),
                }),
                Some(before) => replace_once(&edit.path, number, search, replace, before),
            }
        }
    }
}

/// The content of a file without one of its definitions.
fn without_definition(
    path: &RepoPath,
    name: &str,
    before: Option<&[u8]>,
) -> Result<Vec<u8>, AnswerError> {
    let (mark, text) = split_bom(before.unwrap_or_default());
    let target = std::str::from_utf8(text)
        .ok()
        .and_then(|text| Target::parse(path, text));
    let target = target.ok_or_else(|| AnswerError::NoSuchDefinition {
        path: path.clone(),
        name: name.to_owned(),
    })?;
    let text = target.text_without(path, name)?;
    Ok([mark, text.as_bytes()].concat())
}

/// Whether definitions can be put into this file one by one: its language has a grammar and it follows it. Of any
/// other file an answer has to give the whole content.
#[must_use]
pub fn can_splice(path: &RepoPath, content: &[u8]) -> bool {
    let (_, content) = split_bom(content);
    std::str::from_utf8(content).is_ok_and(|text| Target::parse(path, text).is_some())
}

/// Whether most of a file can be given as definitions. A script whose code runs at its own level, or stands within one call as in
/// `(function (root) { … })(this)`, cannot.
#[must_use]
pub fn consists_of_definitions(path: &RepoPath, content: &[u8]) -> bool {
    let (_, content) = split_bom(content);
    std::str::from_utf8(content).is_ok_and(|text| {
        Target::parse(path, text).is_some_and(|target| target.is_mostly_definitions())
    })
}

/// The blocks of definitions of each file, in their order.
fn blocks_of(edits: &[Edit]) -> BTreeMap<&RepoPath, Vec<&str>> {
    let mut blocks: BTreeMap<&RepoPath, Vec<&str>> = BTreeMap::new();
    for edit in edits {
        if let EditKind::Definitions { content } = &edit.kind {
            blocks.entry(&edit.path).or_default().push(content);
        }
    }
    blocks
}

/// The content of a file whose definitions are given in blocks. A few are put in one after the other, as each may be written
/// in a way of its own; more are put in as one text, so that the file is not read as often as there are blocks.
fn by_definitions(
    path: &RepoPath,
    blocks: &[&str],
    before: Option<&[u8]>,
) -> Result<Vec<u8>, AnswerError> {
    let old = before.unwrap_or_default();
    let (first, others) = match blocks {
        [] => return Ok(old.to_vec()),
        [only] => {
            return by_definition(path, only, before)
                .or_else(|error| as_whole(path, only, old, error));
        }
        [first, others @ ..] => (first, others),
    };
    let is_blank = split_bom(old).1.trim_ascii().is_empty();
    let (mut content, blocks) = if is_blank {
        (by_definition(path, first, before)?, others)
    } else {
        (old.to_vec(), blocks)
    };
    // Without a syntax tree each block is the whole file, and all but one of them would be lost.
    if !can_splice(path, &content) {
        return Err(AnswerError::TwoAnswers { path: path.clone() });
    }
    if blocks.len() <= MAX_APART {
        for block in blocks {
            content = by_definition(path, block, Some(&content))?;
        }
        return Ok(content);
    }
    let blocks: Vec<&str> = blocks
        .iter()
        .map(|block| without_path_comment(path, block, old))
        .collect();
    // Set in, a block would become a part of the one above it.
    if blocks
        .iter()
        .any(|block| block.trim_start_matches('\n').starts_with([' ', '\t']))
    {
        return Err(AnswerError::TooManyEdits {
            limit: MAX_APART as u64,
        });
    }
    by_definition(path, &blocks.join("\n"), Some(&content))
}

/// The content of a file of which some definitions are given; without a syntax tree of it they are all of it.
fn by_definition(
    path: &RepoPath,
    content: &str,
    before: Option<&[u8]>,
) -> Result<Vec<u8>, AnswerError> {
    let (mark, text) = split_bom(before.unwrap_or_default());
    let target = std::str::from_utf8(text)
        .ok()
        .and_then(|text| Target::parse(path, text));
    let Some(target) = target.filter(|_| !text.trim_ascii().is_empty()) else {
        return whole_file(path, content, before);
    };
    let answer = without_path_comment(path, content, text);
    let spliced = target.splice(path, answer, Coverage::OfParts)?;
    Ok([mark, spliced.text.as_bytes()].concat())
}

/// The content of a file of which a block came where another form was asked for. Definitions are put in one by one; what
/// cannot be is taken for the whole file only where it begins and ends as the file does, so that a piece of a file never
/// takes the place of all of it, nor a second block that of the first.
fn by_block(
    path: &RepoPath,
    content: &str,
    before: Option<&[u8]>,
    is_again: bool,
) -> Result<Vec<u8>, AnswerError> {
    let old = before.unwrap_or_default();
    if split_bom(old).1.trim_ascii().is_empty() {
        return whole_file(path, content, before);
    }
    match (can_splice(path, old), is_again) {
        (true, false) => by_definition(path, content, before)
            .or_else(|error| as_whole(path, content, old, error)),
        (true, true) => by_definition(path, content, before),
        (false, false) => as_whole(
            path,
            content,
            old,
            AnswerError::PartOfFile { path: path.clone() },
        ),
        (false, true) => Err(AnswerError::TwoAnswers { path: path.clone() }),
    }
}

/// The content of a file of which a block could not be put in: the whole block where it begins and ends as the file does,
/// the error elsewhere. What does not follow the grammar is not a file either way.
fn as_whole(
    path: &RepoPath,
    content: &str,
    old: &[u8],
    error: AnswerError,
) -> Result<Vec<u8>, AnswerError> {
    let ends = |text: &[u8]| {
        let mut lines = text
            .split(|byte| *byte == b'\n')
            .map(<[u8]>::trim_ascii_end);
        let first = lines.find(|line| !line.is_empty()).map(<[u8]>::to_vec);
        let last = lines.rfind(|line| !line.is_empty()).map(<[u8]>::to_vec);
        (first, last)
    };
    let (_, text) = split_bom(old);
    let is_whole = ends(text) == ends(without_path_comment(path, content, text).as_bytes());
    let is_grammar = matches!(
        error,
        AnswerError::BrokenSyntax { .. } | AnswerError::TooMuchSyntax { .. }
    );
    if is_whole && !is_grammar {
        whole_file(path, content, Some(old))
    } else {
        Err(error)
    }
}

/// The byte order mark that a text may begin with, and the rest.
pub(super) fn split_bom(text: &[u8]) -> (&[u8], &[u8]) {
    text.strip_prefix(BOM)
        .map_or((&[][..], text), |rest| (BOM, rest))
}

/// The content of a file that is given whole.
fn whole_file(
    path: &RepoPath,
    content: &str,
    before: Option<&[u8]>,
) -> Result<Vec<u8>, AnswerError> {
    let Some(before) = before else {
        refuse_elided(path, content, &[])?;
        return Ok(without_path_comment(path, content, &[]).as_bytes().to_vec());
    };
    if std::str::from_utf8(before).is_err() {
        return Err(AnswerError::NotText { path: path.clone() });
    }
    refuse_elided(path, content, before)?;
    let content = without_path_comment(path, content, before);
    let (bom, old_text) = split_bom(before);
    let content = content.strip_prefix('\u{feff}').unwrap_or(content);
    let mut out = bom.to_vec();
    let old: Vec<&[u8]> = old_text.split_inclusive(|byte| *byte == b'\n').collect();
    let new: Vec<&[u8]> = content
        .as_bytes()
        .split_inclusive(|byte| *byte == b'\n')
        .map(without_line_end)
        .collect();
    match Ends::from_lines(&old) {
        Ends::Lf => out.extend_from_slice(content.as_bytes()),
        Ends::CrLf => new.iter().for_each(|line| push(&mut out, line, b"\r\n")),
        Ends::Mixed { most } => {
            // Lines that stay keep the ends they have; new ones get what most lines have.
            let old_bare: Vec<&[u8]> = old.iter().map(|line| without_line_end(line)).collect();
            for op in capture_diff_slices(Algorithm::Myers, &old_bare, &new) {
                match op {
                    DiffOp::Equal { old_index, len, .. } => {
                        old.iter().skip(old_index).take(len).for_each(|line| {
                            let end = if line.ends_with(b"\n") {
                                &line[without_line_end(line).len()..]
                            } else {
                                most
                            };
                            push(&mut out, without_line_end(line), end);
                        });
                    }
                    other => new[other.new_range()]
                        .iter()
                        .for_each(|line| push(&mut out, line, most)),
                }
            }
        }
    }
    if !old_text.is_empty() && !old_text.ends_with(b"\n") {
        let kept_len = out
            .strip_suffix(b"\n")
            .map(|text| text.strip_suffix(b"\r").unwrap_or(text).len());
        out.truncate(kept_len.unwrap_or(out.len()));
    }
    Ok(out)
}

/// How the lines of a file end.
enum Ends {
    Lf,
    CrLf,
    Mixed { most: &'static [u8] },
}

impl Ends {
    fn from_lines(lines: &[&[u8]]) -> Self {
        let ended = lines.iter().filter(|line| line.ends_with(b"\n")).count();
        let crlf = lines.iter().filter(|line| line.ends_with(b"\r\n")).count();
        match crlf {
            0 => Self::Lf,
            all if all == ended => Self::CrLf,
            some => Self::Mixed {
                most: if some * 2 > ended { b"\r\n" } else { b"\n" },
            },
        }
    }
}

/// Models like to write the file's name into its first line. It goes, unless the file began with it before.
fn without_path_comment<'a>(path: &RepoPath, content: &'a str, before: &[u8]) -> &'a str {
    let Some((first, rest)) = content.split_once('\n') else {
        return content;
    };
    let first_before = before
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let was_there = first_before.trim_ascii() == first.trim_ascii().as_bytes();
    if name::is_path_comment(first, path) && !was_there {
        rest
    } else {
        content
    }
}

/// Whether a line is a comment such as `// ... existing code ...`, which stands for code that was left out.
pub(super) fn is_elision(trimmed: &str) -> bool {
    const LEADERS: [&str; 8] = ["//", "#", "/*", "<!--", "--", ";", "{/*", "..."];
    const WORDS: [&str; 9] = [
        "existing",
        "rest of",
        "unchanged",
        "remaining",
        "remains",
        "same as",
        "omitted",
        "other functions",
        "previous code",
    ];
    let is_comment = LEADERS.iter().any(|leader| trimmed.starts_with(leader));
    if !is_comment || !(trimmed.contains("...") || trimmed.contains('…')) {
        return false;
    }
    let lower = trimmed.to_lowercase();
    WORDS.iter().any(|word| lower.contains(word))
}

/// Refuses a comment that stands for code left out, unless the file held it before.
pub(super) fn refuse_elided(
    path: &RepoPath,
    content: &str,
    before: &[u8],
) -> Result<(), AnswerError> {
    // Made when the first such comment is met, which in most answers is never.
    let mut known: Option<HashSet<&[u8]>> = None;
    for (line, text) in (1u64..).zip(content.lines()) {
        let trimmed = text.trim();
        if !is_elision(trimmed) {
            continue;
        }
        let known = known.get_or_insert_with(|| {
            before
                .split(|byte| *byte == b'\n')
                .map(<[u8]>::trim_ascii)
                .collect()
        });
        if !known.contains(trimmed.as_bytes()) {
            let text = trimmed.chars().take(80).collect();
            return Err(AnswerError::Elided {
                path: path.clone(),
                line,
                text,
            });
        }
    }
    Ok(())
}
