//! One hunk: its header, then exactly as many lines as the header says.

use super::lines::Lines;
use super::{PatchError, PatchErrorKind};
use crate::patch::{Hunk, NO_NEWLINE};

/// The largest line number or count in a hunk header; a patch that can be read has fewer bytes than this.
const MAX_NUMBER: u64 = 1 << 31;

/// Which sides of the file have shown their last line. Carried from hunk to hunk of a file.
#[derive(Default)]
pub(super) struct Ends {
    old: Side,
    new: Side,
}

#[derive(Default, Clone, Copy, PartialEq)]
enum Side {
    #[default]
    Open,
    Ended,
}

/// Reads one hunk. The text after the second `@@` is a hint for readers and is dropped.
pub(super) fn read(lines: &mut Lines<'_>, ends: &mut Ends) -> Result<Hunk, PatchError> {
    let number = lines.number();
    let header = lines.next_header()?.unwrap_or_default();
    let mut hunk = read_header(header).ok_or(PatchError {
        line: number,
        kind: PatchErrorKind::BadHunkHeader,
    })?;
    let (mut old_left, mut new_left) = (hunk.old_lines, hunk.new_lines);
    let mut changes = 0u64;
    let mut marker_may_follow: Option<(Side, Side)> = None;
    while old_left > 0 || new_left > 0 || lines.peek().is_some_and(|line| line.starts_with(b"\\")) {
        let line = lines.number();
        let fail = |kind| Err(PatchError { line, kind });
        let Some(text) = lines.next() else {
            return fail(PatchErrorKind::HunkCounts);
        };
        // Which sides this line stands on. An empty line is a context line whose blank was trimmed on the way.
        let (on_old, on_new) = match text.first() {
            None | Some(b' ') => (Side::Ended, Side::Ended),
            Some(b'-') => (Side::Ended, Side::Open),
            Some(b'+') => (Side::Open, Side::Ended),
            Some(b'\\') => {
                let Some((old, new)) = marker_may_follow.take() else {
                    return fail(PatchErrorKind::MisplacedMarker);
                };
                if text != NO_NEWLINE {
                    return fail(PatchErrorKind::MisplacedMarker);
                }
                ends.end(old, new);
                hunk.body.extend_from_slice(NO_NEWLINE);
                hunk.body.push(b'\n');
                continue;
            }
            Some(_) => return fail(PatchErrorKind::HunkCounts),
        };
        for (on, left, end) in [
            (on_old, &mut old_left, ends.old),
            (on_new, &mut new_left, ends.new),
        ] {
            if on == Side::Open {
                continue;
            }
            if end == Side::Ended {
                return fail(PatchErrorKind::MisplacedMarker);
            }
            *left = match left.checked_sub(1) {
                Some(left) => left,
                None => return fail(PatchErrorKind::HunkCounts),
            };
        }
        changes += u64::from(on_old != on_new);
        marker_may_follow = Some((on_old, on_new));
        if text.is_empty() {
            hunk.body.push(b' ');
        }
        hunk.body.extend_from_slice(text);
        hunk.body.push(b'\n');
    }
    if changes == 0 {
        return Err(PatchError {
            line: number,
            kind: PatchErrorKind::EmptyHunk,
        });
    }
    Ok(hunk)
}

impl Ends {
    fn end(&mut self, old: Side, new: Side) {
        if old == Side::Ended {
            self.old = Side::Ended;
        }
        if new == Side::Ended {
            self.new = Side::Ended;
        }
    }
}

fn read_header(line: &[u8]) -> Option<Hunk> {
    let rest = line.strip_prefix(b"@@ -")?;
    let (old_start, old_lines, rest) = range(rest)?;
    let rest = rest.strip_prefix(b" +")?;
    let (new_start, new_lines, rest) = range(rest)?;
    let rest = rest.strip_prefix(b" @@")?;
    if !rest.is_empty() && !rest.starts_with(b" ") {
        return None;
    }
    Some(Hunk {
        old_start,
        old_lines,
        new_start,
        new_lines,
        body: Vec::new(),
    })
}

/// Reads `line` or `line,count`. Lines are counted from 1, so only an empty range may start at 0.
fn range(text: &[u8]) -> Option<(u64, u64, &[u8])> {
    let (start, rest) = decimal(text)?;
    let (count, rest) = match rest.strip_prefix(b",") {
        Some(rest) => decimal(rest)?,
        None => (1, rest),
    };
    (start > 0 || count == 0).then_some((start, count, rest))
}

fn decimal(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at_checked(digits)?;
    if digits.is_empty() || digits.len() > 10 {
        return None;
    }
    let value = digits
        .iter()
        .fold(0u64, |value, digit| value * 10 + u64::from(digit - b'0'));
    (value <= MAX_NUMBER).then_some((value, rest))
}
