//! Extracts lines from a file's bytes.
//!
//! A line ends after `\n`; a preceding `\r` belongs to it. Ranges are clamped to the file, sorted and merged
//! if they overlap or touch, so no line appears twice.

use crate::request::LineRange;

/// The result of extracting lines from the first bytes of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Picked {
    /// The lines and their positions.
    Lines {
        bytes: Vec<u8>,
        ranges: Vec<LineRange>,
    },
    /// A requested line is further down.
    NeedsMore,
    /// The requested lines exceed the limit.
    OverBudget,
}

/// Whether the given bytes are the whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Input {
    Whole,
    Prefix,
}

/// Returns sorted ranges without overlaps, from line 1; touching ranges are merged. `None` if the list is empty
/// or one is reversed.
pub(crate) fn normalise(ranges: &[LineRange]) -> Option<Vec<LineRange>> {
    if ranges.is_empty() || ranges.iter().any(|range| range.start > range.end) {
        return None;
    }
    let from_one = |range: &LineRange| LineRange {
        start: range.start.max(1),
        end: range.end.max(1),
    };
    Some(join(ranges.iter().map(from_one).collect()))
}

/// Extracts normalised `ranges` from `bytes`, at most `max` bytes of lines.
pub(crate) fn pick(bytes: &[u8], input: Input, ranges: &[LineRange], max: u64) -> Picked {
    let ends = memchr::memchr_iter(b'\n', bytes).count() as u64;
    let unfinished = u64::from(bytes.last().is_some_and(|last| *last != b'\n'));
    // A line that continues after the prefix may already exceed the budget.
    let known = ends + unfinished;
    let clamped = match input {
        Input::Whole if known == 0 => Vec::new(),
        Input::Whole => join(ranges.iter().map(|range| clamp(*range, known)).collect()),
        Input::Prefix => ranges
            .iter()
            .filter(|range| range.start <= known)
            .map(|range| clamp(*range, known))
            .collect(),
    };
    let Some(lines) = collect(bytes, &clamped, max) else {
        return Picked::OverBudget;
    };
    let complete = input == Input::Whole || ranges.last().is_none_or(|range| range.end <= ends);
    if complete {
        Picked::Lines {
            bytes: lines,
            ranges: clamped,
        }
    } else {
        Picked::NeedsMore
    }
}

fn clamp(range: LineRange, lines: u64) -> LineRange {
    LineRange {
        start: range.start.clamp(1, lines),
        end: range.end.clamp(1, lines),
    }
}

fn join(mut ranges: Vec<LineRange>) -> Vec<LineRange> {
    ranges.sort_unstable();
    let mut joined: Vec<LineRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(1) => {
                last.end = last.end.max(range.end)
            }
            _ => joined.push(range),
        }
    }
    joined
}

/// Returns the bytes of sorted, separate `ranges` within the input; `None` if they exceed `max`.
fn collect(bytes: &[u8], ranges: &[LineRange], max: u64) -> Option<Vec<u8>> {
    let mut lines = Vec::new();
    let mut requested = ranges.iter();
    let mut range = requested.next();
    let mut number = 1;
    let mut line_start = 0;
    let mut range_start = 0;
    let mut ends = memchr::memchr_iter(b'\n', bytes);
    while let Some(current) = range {
        if line_start >= bytes.len() {
            break;
        }
        let line_end = ends.next().map_or(bytes.len(), |end| end + 1);
        if number == current.start {
            range_start = line_start;
        }
        if number == current.end {
            lines.extend_from_slice(&bytes[range_start..line_end]);
            range = requested.next();
        }
        let open = if number >= current.start && number < current.end {
            line_end - range_start
        } else {
            0
        };
        if (lines.len() + open) as u64 > max {
            return None;
        }
        line_start = line_end;
        number += 1;
    }
    Some(lines)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn range(start: u64, end: u64) -> LineRange {
        LineRange { start, end }
    }

    fn picked(text: &str, ranges: &[LineRange]) -> String {
        let ranges = normalise(ranges).unwrap();
        match pick(text.as_bytes(), Input::Whole, &ranges, u64::MAX) {
            Picked::Lines { bytes, .. } => String::from_utf8(bytes).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn lines_are_clamped_joined_and_verbatim() {
        assert_eq!(picked("a\r\nb\nc", &[range(2, 2)]), "b\n");
        assert_eq!(picked("a\r\nb\nc", &[range(1, 1)]), "a\r\n");
        assert_eq!(picked("a\nb\nc", &[range(3, 900)]), "c");
        assert_eq!(
            picked("a\nb\nc\n", &[range(500, 600), range(700, 800)]),
            "c\n"
        );
        assert_eq!(picked("a\nb\nc\n", &[range(0, 0)]), "a\n");
        assert_eq!(
            picked("a\nb\nc\nd\n", &[range(3, 4), range(1, 2), range(2, 3)]),
            "a\nb\nc\nd\n"
        );
        assert_eq!(
            picked("a\nb\nc\nd\n", &[range(4, 4), range(1, 1)]),
            "a\nd\n"
        );
        assert_eq!(picked("", &[range(1, 9)]), "");
        assert_eq!(picked("\n\n", &[range(2, 2)]), "\n");
        assert_eq!(picked("a", &[range(u64::MAX, u64::MAX)]), "a");
    }

    #[test]
    fn touching_ranges_are_reported_as_one() {
        assert_eq!(
            normalise(&[range(4, 6), range(1, 3)]),
            Some(vec![range(1, 6)])
        );
        assert_eq!(
            normalise(&[range(1, u64::MAX), range(5, u64::MAX)]),
            Some(vec![range(1, u64::MAX)])
        );
    }

    #[test]
    fn reversed_and_empty_ranges_are_invalid() {
        assert_eq!(normalise(&[]), None);
        assert_eq!(normalise(&[range(1, 2), range(3, 2)]), None);
    }

    #[test]
    fn incomplete_last_line_needs_more_input() {
        let zero = normalise(&[range(0, 0)]).unwrap();
        assert_eq!(
            pick(b"no line end", Input::Prefix, &zero, 99),
            Picked::NeedsMore
        );
        let two = [range(2, 2)];
        assert_eq!(pick(b"a\nb", Input::Prefix, &two, 9), Picked::NeedsMore);
        assert!(matches!(
            pick(b"a\nb\n", Input::Prefix, &two, 9),
            Picked::Lines { .. }
        ));
        assert_eq!(
            pick(b"a\nbbbb\nc", Input::Prefix, &[range(1, 1000)], 3),
            Picked::OverBudget
        );
        assert_eq!(pick(b"a\nbbbb", Input::Prefix, &two, 3), Picked::OverBudget);
        assert_eq!(
            pick(b"a\nbbbb", Input::Prefix, &[range(3, 3)], 3),
            Picked::NeedsMore
        );
    }

    mod properties {
        use super::*;

        proptest! {
            #[test]
            fn pick_equals_naive_implementation(
                lines in prop::collection::vec("[a-c\r]{0,3}", 0..12),
                wanted in prop::collection::vec((0u64..15, 0u64..4), 1..5),
                ending in any::<bool>(),
            ) {
                let mut text = lines.join("\n");
                if ending { text.push('\n'); }
                let ranges: Vec<_> = wanted.iter().map(|(start, more)| range(*start, start + more)).collect();
                let all: Vec<&str> = text.split_inclusive('\n').collect();
                let count = all.len() as u64;
                let shown = |number: u64| ranges.iter().any(|r| {
                    let clamped = clamp(*r, count.max(1));
                    clamped.start <= number && number <= clamped.end
                });
                let expected: String = all.iter().zip(1u64..).filter(|(_, n)| shown(*n)).map(|(line, _)| *line).collect();
                prop_assert_eq!(picked(&text, &ranges), expected);
            }
        }
    }
}
