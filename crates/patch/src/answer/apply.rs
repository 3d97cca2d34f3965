//! From edits to file contents.
//!
//! An edit is text with LF line ends; a file keeps its own. What a fence cannot say is taken from the file: its line
//! ends, its byte order mark, and whether its last line has a newline (inside a fence every line has one, so a missing
//! one at the end of the old file is kept missing; a new file ends with one).

use std::collections::{BTreeMap, HashMap, HashSet};

use crucible_model::RepoPath;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::splice::{Speaks, Target};
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
                let before = after.get(&edit.path).or_else(|| files.get(&edit.path)).map(Vec::as_slice);
                if matches!(edit.kind, EditKind::Definitions { .. }) {
                    // All of them are put in with the first.
                    if let Some(contents) = blocks.remove(&edit.path) {
                        let content = by_definitions(&edit.path, &contents, before)?;
                        after.insert(edit.path.clone(), content);
                    }
                    continue;
                }
                let content = apply_edit(edit, number, before)?;
                after.insert(edit.path.clone(), content);
            }
        }
        Proposal::Diff(diff) => {
            for file in parse(diff)?.files {
                let path = file.path.clone();
                // Not shown, so not known; `judge` refuses it.
                if file.content == Content::Binary {
                    continue;
                }
                if file.change == Change::Create && files.contains_key(&path) {
                    return Err(AnswerError::DoesNotApply { path, line: 0 });
                }
                let before = match file.old_path() {
                    None => &[][..],
                    Some(source) => {
                        files.get(source).ok_or(AnswerError::UnknownFile { path: source.clone() })?
                    }
                };
                let content = file
                    .apply_to(before)
                    .map_err(|line| AnswerError::DoesNotApply { path: path.clone(), line })?;
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
        EditKind::WholeFile { content } => whole(&edit.path, content, before),
        EditKind::Definitions { content } => by_definitions(&edit.path, &[content], before),
        EditKind::Replace { search, replace } => {
            refuse_elided(&edit.path, replace, before.unwrap_or_default())?;
            match before {
                None if search.trim().is_empty() => Ok(replace.as_bytes().to_vec()),
                None => Err(AnswerError::UnknownFile { path: edit.path.clone() }),
                Some(before) if search.trim().is_empty() && before.trim_ascii().is_empty() => {
                    Ok(replace.as_bytes().to_vec())
                }
                Some(_) if search.trim().is_empty() => {
                    Err(AnswerError::EmptySearch { path: edit.path.clone() })
                }
                Some(before) => replaced(&edit.path, number, search, replace, before),
            }
        }
    }
}

/// Whether definitions can be put into this file one by one: its language has a grammar and it follows it. Of any
/// other file an answer has to give the whole content.
#[must_use]
pub fn takes_definitions(path: &RepoPath, content: &[u8]) -> bool {
    let (_, content) = without_mark(content);
    std::str::from_utf8(content).is_ok_and(|text| Target::of(path, text).is_some())
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
fn by_definitions(path: &RepoPath, blocks: &[&str], before: Option<&[u8]>) -> Result<Vec<u8>, AnswerError> {
    let old = before.unwrap_or_default();
    let (first, others) = match blocks {
        [] => return Ok(old.to_vec()),
        [only] => return by_definition(path, only, before),
        [first, others @ ..] => (first, others),
    };
    let is_blank = without_mark(old).1.trim_ascii().is_empty();
    let (mut content, blocks) =
        if is_blank { (by_definition(path, first, before)?, others) } else { (old.to_vec(), blocks) };
    // Without a syntax tree each block is the whole file, and all but one of them would be lost.
    if !takes_definitions(path, &content) {
        return Err(AnswerError::TwoAnswers { path: path.clone() });
    }
    if blocks.len() <= MAX_APART {
        for block in blocks {
            content = by_definition(path, block, Some(&content))?;
        }
        return Ok(content);
    }
    let blocks: Vec<&str> = blocks.iter().map(|block| without_path_comment(path, block, old)).collect();
    // Set in, a block would become a part of the one above it.
    if blocks.iter().any(|block| block.trim_start_matches('\n').starts_with([' ', '\t'])) {
        return Err(AnswerError::TooManyEdits { limit: MAX_APART as u64 });
    }
    by_definition(path, &blocks.join("\n"), Some(&content))
}

/// The content of a file of which some definitions are given; without a syntax tree of it they are all of it.
fn by_definition(path: &RepoPath, content: &str, before: Option<&[u8]>) -> Result<Vec<u8>, AnswerError> {
    let (mark, text) = without_mark(before.unwrap_or_default());
    let target = std::str::from_utf8(text).ok().and_then(|text| Target::of(path, text));
    let Some(target) = target.filter(|_| !text.trim_ascii().is_empty()) else {
        return whole(path, content, before);
    };
    let answer = without_path_comment(path, content, text);
    let spliced = target.splice(path, answer, Speaks::OfParts)?;
    Ok([mark, spliced.text.as_bytes()].concat())
}

/// The byte order mark that a text may begin with, and the rest.
pub(super) fn without_mark(text: &[u8]) -> (&[u8], &[u8]) {
    text.strip_prefix(BOM).map_or((&[][..], text), |rest| (BOM, rest))
}

/// The content of a file that is given whole.
fn whole(path: &RepoPath, content: &str, before: Option<&[u8]>) -> Result<Vec<u8>, AnswerError> {
    let Some(before) = before else {
        refuse_elided(path, content, &[])?;
        return Ok(without_path_comment(path, content, &[]).as_bytes().to_vec());
    };
    if std::str::from_utf8(before).is_err() {
        return Err(AnswerError::NotText { path: path.clone() });
    }
    refuse_elided(path, content, before)?;
    let content = without_path_comment(path, content, before);
    let (bom, old_text) = without_mark(before);
    let content = content.strip_prefix('\u{feff}').unwrap_or(content);
    let mut out = bom.to_vec();
    let old: Vec<&[u8]> = old_text.split_inclusive(|byte| *byte == b'\n').collect();
    let new: Vec<&[u8]> = content.as_bytes().split_inclusive(|byte| *byte == b'\n').map(bare).collect();
    match Ends::of(&old) {
        Ends::Lf => out.extend_from_slice(content.as_bytes()),
        Ends::CrLf => new.iter().for_each(|line| push(&mut out, line, b"\r\n")),
        Ends::Mixed { most } => {
            // Lines that stay keep the ends they have; new ones get what most lines have.
            let old_bare: Vec<&[u8]> = old.iter().map(|line| bare(line)).collect();
            for op in capture_diff_slices(Algorithm::Myers, &old_bare, &new) {
                match op {
                    DiffOp::Equal { old_index, len, .. } => {
                        old.iter().skip(old_index).take(len).for_each(|line| {
                            let end = if line.ends_with(b"\n") { &line[bare(line).len()..] } else { most };
                            push(&mut out, bare(line), end);
                        });
                    }
                    other => new[other.new_range()].iter().for_each(|line| push(&mut out, line, most)),
                }
            }
        }
    }
    if !old_text.is_empty() && !old_text.ends_with(b"\n") {
        let kept = out.strip_suffix(b"\n").map(|text| text.strip_suffix(b"\r").unwrap_or(text).len());
        out.truncate(kept.unwrap_or(out.len()));
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
    fn of(lines: &[&[u8]]) -> Self {
        let ended = lines.iter().filter(|line| line.ends_with(b"\n")).count();
        let crlf = lines.iter().filter(|line| line.ends_with(b"\r\n")).count();
        match crlf {
            0 => Self::Lf,
            all if all == ended => Self::CrLf,
            some => Self::Mixed { most: if some * 2 > ended { b"\r\n" } else { b"\n" } },
        }
    }
}

/// A line without its line end.
fn bare(line: &[u8]) -> &[u8] {
    let Some(line) = line.strip_suffix(b"\n") else {
        return line;
    };
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn push(out: &mut Vec<u8>, line: &[u8], end: &[u8]) {
    out.extend_from_slice(line);
    out.extend_from_slice(end);
}

/// Models like to write the file's name into its first line. It goes, unless the file began with it before.
fn without_path_comment<'a>(path: &RepoPath, content: &'a str, before: &[u8]) -> &'a str {
    let Some((first, rest)) = content.split_once('\n') else {
        return content;
    };
    let first_before = before.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let was_there = first_before.trim_ascii() == first.trim_ascii().as_bytes();
    if name::is_path_comment(first, path) && !was_there { rest } else { content }
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
pub(super) fn refuse_elided(path: &RepoPath, content: &str, before: &[u8]) -> Result<(), AnswerError> {
    // Made when the first such comment is met, which in most answers is never.
    let mut known: Option<HashSet<&[u8]>> = None;
    for (line, text) in (1u64..).zip(content.lines()) {
        let trimmed = text.trim();
        if !is_elision(trimmed) {
            continue;
        }
        let known = known
            .get_or_insert_with(|| before.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).collect());
        if !known.contains(trimmed.as_bytes()) {
            let text = trimmed.chars().take(80).collect();
            return Err(AnswerError::Elided { path: path.clone(), line, text });
        }
    }
    Ok(())
}

/// Replaces the lines of `search`, which have to stand in `before` exactly once. White space at line ends does not
/// count, unless counting it leaves exactly one place.
fn replaced(
    path: &RepoPath,
    number: u64,
    search: &str,
    replace: &str,
    before: &[u8],
) -> Result<Vec<u8>, AnswerError> {
    let file: Vec<&[u8]> = before.split_inclusive(|byte| *byte == b'\n').collect();
    let wanted: Vec<&[u8]> = search.as_bytes().split_inclusive(|byte| *byte == b'\n').collect();
    let mut places = occurrences(&file, &wanted, bare);
    if places.len() != 1 {
        let loose = occurrences(&file, &wanted, <[u8]>::trim_ascii_end);
        if places.is_empty() {
            places = loose;
        }
    }
    let [start] = places[..] else {
        return Err(AnswerError::NotOneMatch {
            path: path.clone(),
            edit: number,
            matches: places.len() as u64,
            nearest: if places.is_empty() { nearest(&file, &wanted) } else { String::new() },
        });
    };
    let end = start + wanted.len();
    let matched = file.get(start..end).unwrap_or_default();
    let like = matched.iter().chain(file.first()).find(|line| line.ends_with(b"\n"));
    let line_end: &[u8] = like.map_or(b"\n", |line| &line[bare(line).len()..]);
    let mut out = file.get(..start).unwrap_or_default().concat();
    for line in replace.as_bytes().split_inclusive(|byte| *byte == b'\n') {
        push(&mut out, bare(line), line_end);
    }
    if matched.last().is_some_and(|line| !line.ends_with(b"\n")) && !replace.is_empty() {
        out.truncate(out.len() - line_end.len());
    }
    out.extend_from_slice(&file.get(end..).unwrap_or_default().concat());
    Ok(out)
}

/// Where `wanted` stands in `file`, lines compared by `key`; linear in both, whatever they hold (Knuth, Morris, Pratt).
fn occurrences(file: &[&[u8]], wanted: &[&[u8]], key: fn(&[u8]) -> &[u8]) -> Vec<usize> {
    let same = |a: &[u8], b: &[u8]| key(a) == key(b);
    let mut fallback = vec![0usize; wanted.len()];
    let mut length = 0;
    for at in 1..wanted.len() {
        while length > 0 && !same(wanted[at], wanted[length]) {
            length = fallback[length - 1];
        }
        length += usize::from(same(wanted[at], wanted[length]));
        fallback[at] = length;
    }
    let mut found = Vec::new();
    let mut length = 0;
    for (at, line) in file.iter().enumerate() {
        while length > 0 && (length == wanted.len() || !same(line, wanted[length])) {
            length = fallback[length - 1];
        }
        length += usize::from(wanted.get(length).is_some_and(|want| same(line, want)));
        if length > 0 && length == wanted.len() {
            found.push(at + 1 - length);
        }
    }
    found
}

/// The lines of the file that stand where most of the wanted lines would have been found, with their numbers.
fn nearest(file: &[&[u8]], wanted: &[&[u8]]) -> String {
    /// Lines that stand in more places than this (braces, blanks) say nothing about where we are.
    const MAX_PLACES: usize = 8;
    const MAX_SHOWN: usize = 8;
    let mut places: HashMap<&[u8], Vec<usize>> = HashMap::new();
    for (at, line) in file.iter().enumerate() {
        places.entry(line.trim_ascii()).or_default().push(at);
    }
    let mut votes: BTreeMap<usize, u64> = BTreeMap::new();
    for (offset, line) in wanted.iter().enumerate().filter(|(_, line)| !line.trim_ascii().is_empty()) {
        for at in
            places.get(line.trim_ascii()).filter(|places| places.len() <= MAX_PLACES).into_iter().flatten()
        {
            *votes.entry(at.saturating_sub(offset)).or_default() += 1;
        }
    }
    let Some((start, _)) = votes.iter().max_by_key(|(start, votes)| (**votes, std::cmp::Reverse(**start)))
    else {
        return String::new();
    };
    let shown = file.iter().enumerate().skip(*start).take(wanted.len().clamp(1, MAX_SHOWN));
    shown
        .map(|(at, line)| {
            let text: String = String::from_utf8_lossy(bare(line)).chars().take(160).collect();
            format!("{:>5} | {text}", at + 1)
        })
        .collect::<Vec<_>>()
        .join("\n")
}
