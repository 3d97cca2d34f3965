//! A diff whose form is not quite git's, read as edits that are placed by their lines.
//!
//! Models write good hunks below wrong headers: counts that do not add up, line numbers of another file, names without
//! `a/` and `b/`, no `diff --git` at all, a sentence behind the last line. None of that is needed to know what is meant
//! where the old lines of a hunk stand in exactly one place of the file. What such a diff comes to is judged on the
//! canonical patch that is made of it.
//!
//! What always holds: only changes of text are read so. A section that renames, copies, deletes, changes a mode or holds
//! binary content is not read so, nor is a diff with anything between its sections, and then the strict reader's error
//! stands.

use std::collections::HashSet;

use crucible_model::RepoPath;

use super::replace::MAX_EDITS;
use super::{Edit, EditKind, Proposal};
use crate::patch::LineKind;

/// One changed place, as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LooseHunk {
    /// How many lines of the file stand before it, where its header agrees with its lines.
    pub(super) stated: Option<usize>,
    /// The lines without markers and line ends.
    pub(super) lines: Vec<(LineKind, String)>,
}

impl LooseHunk {
    /// The lines that the file has to have.
    pub(super) fn old_lines(&self) -> impl Iterator<Item = &[u8]> {
        self.lines
            .iter()
            .filter(|(kind, _)| *kind != LineKind::Added)
            .map(|(_, text)| text.as_bytes())
    }

    /// The lines that come in, as one text.
    pub(super) fn added(&self) -> String {
        let added = self
            .lines
            .iter()
            .filter(|(kind, _)| *kind == LineKind::Added);
        added.map(|(_, text)| format!("{text}\n")).collect()
    }
}

/// The same diff as edits that are placed by their lines; nothing where it is not a diff that can be read so.
#[must_use]
pub fn as_line_edits(proposal: &Proposal) -> Option<Proposal> {
    match proposal {
        Proposal::Edits(_) => None,
        Proposal::Diff(diff) => read(std::str::from_utf8(diff).ok()?).map(Proposal::Edits),
    }
}

/// Whether a section of a diff begins at the first of these lines.
pub(super) fn starts_section(lines: &[&str]) -> bool {
    match lines {
        [first, ..] if first.starts_with("diff --git ") => true,
        [old, new, hunk, ..] => {
            old.starts_with("--- ") && new.starts_with("+++ ") && hunk.starts_with("@@")
        }
        _ => false,
    }
}

/// Reads the sections of a diff, and a sign-off behind them.
pub(super) fn read(text: &str) -> Option<Vec<Edit>> {
    let lines: Vec<&str> = text
        .lines()
        .map(|line| line.strip_suffix('\r').unwrap_or(line))
        .collect();
    let mut at = 0;
    let mut edits = Vec::new();
    let mut seen: HashSet<RepoPath> = HashSet::new();
    let mut hunks = 0;
    while starts_section(lines.get(at..)?) {
        let (edit, end, count) = section(&lines, at)?;
        hunks += count;
        if !seen.insert(edit.path.clone()) || hunks > MAX_EDITS {
            return None;
        }
        edits.push(edit);
        at = end;
        while lines.get(at).is_some_and(|line| line.is_empty()) {
            at += 1;
        }
    }
    // What follows is prose, or the diff can be read in two ways.
    let mut rest = lines.get(at..)?;
    while let Some((line, after)) = rest.split_first() {
        if starts_section(rest) || line.starts_with("@@") || is_marked(line) {
            return None;
        }
        rest = after;
    }
    (!edits.is_empty()).then_some(edits)
}

/// Reads one section, and tells where it ends and how many hunks it has.
fn section(lines: &[&str], start: usize) -> Option<(Edit, usize, u64)> {
    let mut at = start;
    let mut named = None;
    let mut is_new = false;
    if let Some(names) = lines.get(at)?.strip_prefix("diff --git ") {
        named = Some(halves(names)?);
        at += 1;
        loop {
            let line = lines.get(at)?;
            match line.split_once(' ') {
                Some(("index", _)) => {}
                Some(("new", "file mode 100644")) => is_new = true,
                _ => break,
            }
            at += 1;
        }
    }
    let names = match (
        lines.get(at)?.strip_prefix("--- "),
        lines.get(at + 1)?.strip_prefix("+++ "),
    ) {
        (Some(old), Some(new)) => {
            at += 2;
            names_of(old, new)?
        }
        _ => Names {
            path: named.clone()?,
            is_new: false,
        },
    };
    if named.is_some_and(|named| named != names.path) || (is_new && !names.is_new) {
        return None;
    }
    let path: RepoPath = names.path.parse().ok()?;
    let mut hunks = Vec::new();
    while lines.get(at).is_some_and(|line| line.starts_with("@@")) {
        let (hunk, end) = hunk(lines, at)?;
        hunks.push(hunk);
        at = end;
    }
    let count = hunks.len() as u64;
    let kind = match (names.is_new, hunks.as_slice()) {
        (_, []) => return None,
        (true, [only]) if only.lines.iter().all(|(kind, _)| *kind == LineKind::Added) => {
            EditKind::Replace {
                search: String::new(),
                replace: only.added(),
            }
        }
        (true, _) => return None,
        (false, _) => EditKind::Hunks { hunks },
    };
    Some((Edit { path, kind }, at, count))
}

struct Names {
    path: String,
    is_new: bool,
}

/// The path that both names of a section mean.
fn names_of(old: &str, new: &str) -> Option<Names> {
    let bare = |name: &str| {
        name.split('\t')
            .next()
            .unwrap_or_default()
            .trim_end()
            .to_owned()
    };
    let (old, new) = (bare(old), bare(new));
    if old == "/dev/null" {
        let path = new.strip_prefix("b/").unwrap_or(&new).to_owned();
        return Some(Names { path, is_new: true });
    }
    Some(Names {
        path: one_path(&old, &new)?,
        is_new: false,
    })
}

/// The path of `a/PATH` and `b/PATH`, or of the same name twice.
fn one_path(old: &str, new: &str) -> Option<String> {
    match (old.strip_prefix("a/"), new.strip_prefix("b/")) {
        (Some(old), Some(new)) if old == new => Some(old.to_owned()),
        _ if old == new => Some(old.to_owned()),
        _ => None,
    }
}

/// The path in the names behind `diff --git`.
fn halves(names: &str) -> Option<String> {
    let names = names.trim_end();
    let (old, new) = names.split_at_checked(names.len() / 2)?;
    one_path(old, new.strip_prefix(' ')?)
}

/// Reads one hunk: as many lines as its header says where that gives a hunk, else as many as look like its lines.
fn hunk(lines: &[&str], start: usize) -> Option<(LooseHunk, usize)> {
    let header = lines.get(start).and_then(|line| Header::parse(line));
    if let Some(header) = header
        && let Some((hunk, end)) = counted(lines, start + 1, header)
    {
        return Some((hunk, end));
    }
    let mut body = Vec::new();
    let mut at = start + 1;
    while let Some(line) = lines.get(at) {
        if starts_section(lines.get(at..)?) {
            break;
        }
        match line_of(line) {
            Some(Some(line)) => body.push(line),
            Some(None) => {}
            None => break,
        }
        at += 1;
    }
    // A line that lost even its marker may stand behind the hunk instead of in it.
    while body
        .last()
        .is_some_and(|(kind, text): &(LineKind, String)| {
            *kind == LineKind::Context && text.is_empty()
        })
    {
        body.pop();
    }
    let changes = body.iter().any(|(kind, _)| *kind != LineKind::Context);
    changes.then_some((
        LooseHunk {
            stated: None,
            lines: body,
        },
        at,
    ))
}

/// Reads as many lines as the header says; nothing where they are not there, or where more of them follow.
fn counted(lines: &[&str], start: usize, header: Header) -> Option<(LooseHunk, usize)> {
    let (mut old, mut new) = (header.old_lines, header.new_lines);
    let mut body = Vec::new();
    let mut at = start;
    while old > 0 || new > 0 {
        if let Some((kind, text)) = line_of(lines.get(at)?)? {
            match kind {
                LineKind::Context => (old, new) = (old.checked_sub(1)?, new.checked_sub(1)?),
                LineKind::Removed => old = old.checked_sub(1)?,
                LineKind::Added => new = new.checked_sub(1)?,
            }
            body.push((kind, text));
        }
        at += 1;
    }
    while lines.get(at).is_some_and(|line| line.starts_with('\\')) {
        at += 1;
    }
    let next = lines.get(at..)?;
    let goes_on = match next.iter().find(|line| !line.is_empty()) {
        Some(line) if next.first() == Some(line) => line.starts_with([' ', '+', '-']),
        Some(line) => line.starts_with(' ') || is_marked(line),
        None => false,
    };
    let ahead = next
        .iter()
        .position(|line| !line.is_empty())
        .unwrap_or_default();
    if goes_on && !starts_section(next.get(ahead..)?) {
        return None;
    }
    let stated = if header.old_lines == 0 {
        header.old_start
    } else {
        header.old_start.checked_sub(1)?
    };
    let changes = body.iter().any(|(kind, _)| *kind != LineKind::Context);
    changes.then_some((
        LooseHunk {
            stated: Some(stated),
            lines: body,
        },
        at,
    ))
}

/// Whether a line adds or takes away, and is not an item of a list in prose.
fn is_marked(line: &str) -> bool {
    let is_item = line
        .strip_prefix("- ")
        .is_some_and(|item| !item.starts_with(' '));
    line.starts_with(['+', '-']) && !is_item
}

/// A line of a hunk: nothing if it is not one, and nothing inside where it only says that the file ends.
fn line_of(line: &str) -> Option<Option<(LineKind, String)>> {
    let mut rest = line.chars();
    let kind = match rest.next() {
        None | Some(' ') => LineKind::Context,
        Some('+') => LineKind::Added,
        Some('-') => LineKind::Removed,
        Some('\\') => return Some(None),
        Some(_) => return None,
    };
    Some(Some((kind, rest.as_str().to_owned())))
}

/// The numbers of a hunk's header.
#[derive(Clone, Copy)]
struct Header {
    old_start: usize,
    old_lines: usize,
    new_lines: usize,
}

impl Header {
    /// Reads `@@ -line,count +line,count @@`.
    fn parse(line: &str) -> Option<Self> {
        let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
        let (new, _) = rest.split_once(" @@")?;
        let range = |text: &str| -> Option<(usize, usize)> {
            let (start, count) = text.split_once(',').unwrap_or((text, "1"));
            Some((start.parse().ok()?, count.parse().ok()?))
        };
        let ((old_start, old_lines), (_, new_lines)) = (range(old)?, range(new)?);
        Some(Self {
            old_start,
            old_lines,
            new_lines,
        })
    }
}
