//! Where the lines of an edit stand in a file: found by what they say, in exactly one place.
//!
//! Lines are compared in three ways, each only where the one before it finds no place at all: as they are but for
//! their line ends; without white space at their ends; and, for search-and-replace, with the same white space more or
//! less in front of every line that is not blank. So an edit never goes to a place that only resembles its lines
//! while the lines themselves stand elsewhere. More than one place is an error in each of the three.

use std::collections::{BTreeMap, HashMap};

use crucible_model::RepoPath;

use super::AnswerError;
use super::hunks::LooseHunk;
use crate::patch::LineKind;

/// How many places of lines that differ in their indentation are looked at; more say nothing.
const MAX_INDENTED: usize = 64;

/// A line without its line end.
pub(super) fn without_line_end(line: &[u8]) -> &[u8] {
    let Some(line) = line.strip_suffix(b"\n") else {
        return line;
    };
    line.strip_suffix(b"\r").unwrap_or(line)
}

pub(super) fn push(out: &mut Vec<u8>, line: &[u8], end: &[u8]) {
    out.extend_from_slice(line);
    out.extend_from_slice(end);
}

/// How the lines of an answer differ from those of the file in front.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Indent<'a> {
    Same,
    /// The file has this in front of each line, and the answer does not.
    Missing(&'a [u8]),
    /// The answer has this in front of each line, and the file does not.
    Extra(&'a [u8]),
}

impl<'a> Indent<'a> {
    /// How these lines, which are the same but for the white space around them, differ; nothing where they do not
    /// differ uniformly.
    fn between(file: &[&'a [u8]], requested: &[&'a [u8]]) -> Option<Self> {
        let mut found = None;
        for (have, want) in file
            .iter()
            .zip(requested)
            .filter(|(_, want)| !want.trim_ascii().is_empty())
        {
            let (have, want) = (indentation(have), indentation(want));
            let this = match (have.strip_suffix(want), want.strip_suffix(have)) {
                (Some([]), _) => Self::Same,
                (Some(missing), _) => Self::Missing(missing),
                (None, Some(extra)) => Self::Extra(extra),
                (None, None) => return None,
            };
            if *found.get_or_insert(this) != this {
                return None;
            }
        }
        found
    }

    /// A line of the answer, as the file would have it; nothing where it cannot be set in so.
    fn set_in(self, line: &[u8]) -> Option<Vec<u8>> {
        match self {
            _ if line.trim_ascii().is_empty() => Some(line.to_vec()),
            Self::Same => Some(line.to_vec()),
            Self::Missing(missing) => Some([missing, line].concat()),
            Self::Extra(extra) => line.strip_prefix(extra).map(<[u8]>::to_vec),
        }
    }
}

fn indentation(line: &[u8]) -> &[u8] {
    let length = line
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .count();
    line.get(..length).unwrap_or_default()
}

/// The one place of these lines in the file; how many there are where it is not one.
fn one_place(file: &[&[u8]], requested: &[&[u8]]) -> Result<usize, u64> {
    let mut places = occurrences(file, requested, without_line_end);
    if places.is_empty() {
        places = occurrences(file, requested, <[u8]>::trim_ascii_end);
    }
    match places[..] {
        [place] => Ok(place),
        _ => Err(places.len() as u64),
    }
}

/// The one place where these lines stand set in otherwise, and the replacement as it is set in there.
fn indented_place(file: &[&[u8]], requested: &[&[u8]], replace: &str) -> Option<(usize, Vec<u8>)> {
    let places = occurrences(file, requested, <[u8]>::trim_ascii);
    if places.len() > MAX_INDENTED {
        return None;
    }
    let mut fitting = places.into_iter().filter_map(|place| {
        let matched = file.get(place..place + requested.len())?;
        Some((place, Indent::between(matched, requested)?))
    });
    let (Some((place, indent)), None) = (fitting.next(), fitting.next()) else {
        return None;
    };
    let lines = replace.as_bytes().split_inclusive(|byte| *byte == b'\n');
    lines
        .map(|line| indent.set_in(line))
        .collect::<Option<Vec<_>>>()
        .map(|lines| (place, lines.concat()))
}

/// Puts the hunks of a diff into the file, each where its header says when the header holds, else in the one place where
/// its old lines stand. Context lines stay as the file has them, added lines get its line ends.
pub(super) fn apply_hunks(
    path: &RepoPath,
    hunks: &[LooseHunk],
    before: &[u8],
) -> Result<Vec<u8>, AnswerError> {
    let file: Vec<&[u8]> = before.split_inclusive(|byte| *byte == b'\n').collect();
    let does_not_fit = |line: usize| AnswerError::DoesNotApply {
        path: path.clone(),
        line: line as u64,
    };
    let mut placed: Vec<(usize, &LooseHunk)> = Vec::new();
    for (number, hunk) in (1u64..).zip(hunks) {
        let requested: Vec<&[u8]> = hunk.old_lines().collect();
        let stated = hunk.stated.filter(|at| {
            let there = file.get(*at..at.saturating_add(requested.len()));
            there.is_some_and(|there| {
                there
                    .iter()
                    .zip(&requested)
                    .all(|(have, want)| without_line_end(have) == *want)
            })
        });
        let place = match stated {
            Some(place) => place,
            None if requested.iter().all(|line| line.trim_ascii().is_empty()) => {
                return Err(does_not_fit(0));
            }
            None => one_place(&file, &requested).map_err(|matches| AnswerError::NotOneMatch {
                path: path.clone(),
                edit: number,
                matches,
                nearest: if matches == 0 {
                    nearest(&file, &requested)
                } else {
                    String::new()
                },
            })?,
        };
        placed.push((place, hunk));
    }
    placed.sort_by_key(|(place, _)| *place);
    let like = file.iter().find(|line| line.ends_with(b"\n"));
    let line_end: &[u8] = like.map_or(b"\n", |line| &line[without_line_end(line).len()..]);
    let mut out: Vec<u8> = Vec::with_capacity(before.len());
    let mut at = 0;
    let keep = |out: &mut Vec<u8>, lines: &[&[u8]]| {
        for line in lines {
            let end = if line.ends_with(b"\n") {
                &line[without_line_end(line).len()..]
            } else {
                line_end
            };
            push(out, without_line_end(line), end);
        }
    };
    for (place, hunk) in placed {
        keep(
            &mut out,
            file.get(at..place).ok_or_else(|| does_not_fit(place + 1))?,
        );
        at = place;
        for (kind, text) in &hunk.lines {
            match kind {
                LineKind::Context => keep(&mut out, file.get(at..=at).unwrap_or_default()),
                LineKind::Removed => {}
                LineKind::Added => push(&mut out, text.as_bytes(), line_end),
            }
            at += usize::from(*kind != LineKind::Added);
        }
    }
    keep(&mut out, file.get(at..).unwrap_or_default());
    // A missing newline at the end of the file stays missing.
    if file.last().is_some_and(|line| !line.ends_with(b"\n")) {
        out.truncate(without_line_end(&out).len());
    }
    Ok(out)
}

/// Replaces the lines of `search`, which have to stand in `before` exactly once.
pub(super) fn replace_once(
    path: &RepoPath,
    number: u64,
    search: &str,
    replace: &str,
    before: &[u8],
) -> Result<Vec<u8>, AnswerError> {
    let file: Vec<&[u8]> = before.split_inclusive(|byte| *byte == b'\n').collect();
    let requested: Vec<&[u8]> = search
        .as_bytes()
        .split_inclusive(|byte| *byte == b'\n')
        .collect();
    let (start, replace) = match one_place(&file, &requested) {
        Ok(place) => (place, replace.as_bytes().to_vec()),
        Err(matches) => {
            let indented = if matches == 0 {
                indented_place(&file, &requested, replace)
            } else {
                None
            };
            indented.ok_or_else(|| AnswerError::NotOneMatch {
                path: path.clone(),
                edit: number,
                matches,
                nearest: if matches == 0 {
                    nearest(&file, &requested)
                } else {
                    String::new()
                },
            })?
        }
    };
    let end = start + requested.len();
    let matched = file.get(start..end).unwrap_or_default();
    let like = matched
        .iter()
        .chain(file.first())
        .find(|line| line.ends_with(b"\n"));
    let line_end: &[u8] = like.map_or(b"\n", |line| &line[without_line_end(line).len()..]);
    let mut out = file.get(..start).unwrap_or_default().concat();
    for line in replace.split_inclusive(|byte| *byte == b'\n') {
        push(&mut out, without_line_end(line), line_end);
    }
    if matched.last().is_some_and(|line| !line.ends_with(b"\n")) && !replace.is_empty() {
        out.truncate(out.len() - line_end.len());
    }
    out.extend_from_slice(&file.get(end..).unwrap_or_default().concat());
    Ok(out)
}

/// Where `wanted` stands in `file`, lines compared by `key`; linear in both, whatever they hold (Knuth, Morris, Pratt).
fn occurrences(file: &[&[u8]], requested: &[&[u8]], key: fn(&[u8]) -> &[u8]) -> Vec<usize> {
    let same = |a: &[u8], b: &[u8]| key(a) == key(b);
    let mut fallback = vec![0usize; requested.len()];
    let mut length = 0;
    for at in 1..requested.len() {
        while length > 0 && !same(requested[at], requested[length]) {
            length = fallback[length - 1];
        }
        length += usize::from(same(requested[at], requested[length]));
        fallback[at] = length;
    }
    let mut found = Vec::new();
    let mut length = 0;
    for (at, line) in file.iter().enumerate() {
        while length > 0 && (length == requested.len() || !same(line, requested[length])) {
            length = fallback[length - 1];
        }
        length += usize::from(requested.get(length).is_some_and(|want| same(line, want)));
        if length > 0 && length == requested.len() {
            found.push(at + 1 - length);
        }
    }
    found
}

/// The lines of the file that stand where most of the wanted lines would have been found, with their numbers.
fn nearest(file: &[&[u8]], requested: &[&[u8]]) -> String {
    /// Lines that stand in more places than this (braces, blanks) say nothing about where we are.
    const MAX_PLACES: usize = 8;
    const MAX_SHOWN: usize = 8;
    let mut places: HashMap<&[u8], Vec<usize>> = HashMap::new();
    for (at, line) in file.iter().enumerate() {
        places.entry(line.trim_ascii()).or_default().push(at);
    }
    let mut votes: BTreeMap<usize, u64> = BTreeMap::new();
    for (offset, line) in requested
        .iter()
        .enumerate()
        .filter(|(_, line)| !line.trim_ascii().is_empty())
    {
        for at in places
            .get(line.trim_ascii())
            .filter(|places| places.len() <= MAX_PLACES)
            .into_iter()
            .flatten()
        {
            *votes.entry(at.saturating_sub(offset)).or_default() += 1;
        }
    }
    let Some((start, _)) = votes
        .iter()
        .max_by_key(|(start, votes)| (**votes, std::cmp::Reverse(**start)))
    else {
        return String::new();
    };
    let shown = file
        .iter()
        .enumerate()
        .skip(*start)
        .take(requested.len().clamp(1, MAX_SHOWN));
    shown
        .map(|(at, line)| {
            let text: String = String::from_utf8_lossy(without_line_end(line))
                .chars()
                .take(160)
                .collect();
            format!("{:>5} | {text}", at + 1)
        })
        .collect::<Vec<_>>()
        .join("\n")
}
