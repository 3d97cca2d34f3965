//! Which lines of a large file are shown: an outline of it, and what stands around frames, failing tests and the goal's names.
//!
//! The outline is the first line of each definition and the imports. Around a place the whole definition is shown where it is
//! not too large, else a few lines. Pure.
//!
//! What always holds: the lines come to no more bytes than allowed; the same text, marks and allowance give the same lines.

use std::collections::{BTreeMap, BTreeSet};

use crucible_model::RepoPath;
use crucible_pack::{LineRange, TextMark};
use crucible_patch::{OutlineItem, outline};

/// What a place is worth that a stack frame names, or that holds a failing test.
const FOR_FRAME: u64 = 600;
const FOR_TEST: u64 = 400;

/// The lines before and after a place outside of any small definition, and where few bytes are allowed.
const AROUND: (u64, u64) = (12, 18);
const CLOSE: (u64, u64) = (3, 6);

/// Fewer bytes than this are few.
const FEW_BYTES: u64 = 6 * 1024;

/// The most lines of one definition that are shown for a place in it.
const MAX_LINES: u64 = 160;

/// What the outline may take of the bytes, as one part in so many.
const OUTLINE_PART: u64 = 4;

/// Why lines of a file are shown.
#[derive(Debug, Default)]
pub(super) struct ExcerptReasons<'a> {
    /// Where the goal's names stand.
    pub(super) marks: Vec<TextMark>,
    /// The lines of stack frames.
    pub(super) frames: Option<&'a BTreeSet<u64>>,
    /// The names of failing tests.
    pub(super) tests: Option<&'a BTreeSet<String>>,
}

/// The lines of a file that fit `allowance` bytes, sorted and apart; none where it has no line that fits.
pub(super) fn lines_to_show(
    path: &RepoPath,
    text: &str,
    requested: &ExcerptReasons<'_>,
    allowance: u64,
) -> Vec<LineRange> {
    let items = outline(path, text).unwrap_or_default();
    let mut shown = LineSelection::new(text, allowance);
    let mut headers = shown.outline(&items, allowance / OUTLINE_PART);
    for (range, _) in places(&items, requested, &shown.lines, allowance) {
        shown.take(range);
    }
    // What is left is for the rest of the outline.
    headers.retain(|range| !shown.take(*range));
    if shown.chosen.iter().all(|chosen| !chosen) {
        // Nothing in it is known: its beginning says what it is.
        (1..=shown.lines.len() as u64)
            .take_while(|line| {
                shown.take(LineRange {
                    start: *line,
                    end: *line,
                })
            })
            .count();
    }
    shown.ranges()
}

/// The first lines of a file's definitions that fit `allowance` bytes, the outer ones before those in them; none where it has no
/// outline.
pub(super) fn signatures(path: &RepoPath, text: &str, allowance: u64) -> Vec<LineRange> {
    let items = outline(path, text).unwrap_or_default();
    let definitions: Vec<OutlineItem> = items
        .into_iter()
        .filter(|item| !item.names.is_empty())
        .collect();
    let mut line_selection = LineSelection::new(text, allowance);
    line_selection.outline(&definitions, allowance);
    line_selection.ranges()
}

struct LineSelection {
    /// The bytes of each line.
    lines: Vec<u64>,
    chosen: Vec<bool>,
    left: u64,
}

impl LineSelection {
    fn new(text: &str, left: u64) -> Self {
        let lines: Vec<u64> = text
            .split_inclusive('\n')
            .map(|line| line.len() as u64)
            .collect();
        Self {
            chosen: vec![false; lines.len()],
            lines,
            left,
        }
    }

    /// Takes the lines of a range where all of them fit; tells whether they did.
    fn take(&mut self, range: LineRange) -> bool {
        let (from, to) = (
            range.start.saturating_sub(1) as usize,
            (range.end as usize).min(self.lines.len()),
        );
        let Some(span) = self.lines.get(from..to) else {
            return true;
        };
        let cost: u64 = span
            .iter()
            .zip(&self.chosen[from..to])
            .filter(|(_, chosen)| !**chosen)
            .map(|(bytes, _)| bytes)
            .sum();
        if cost > self.left {
            return false;
        }
        self.left -= cost;
        self.chosen[from..to].fill(true);
        true
    }

    /// Takes imports and the first lines of definitions, the outer ones first, up to `most` bytes; gives what did not fit.
    fn outline(&mut self, items: &[OutlineItem], most: u64) -> Vec<LineRange> {
        let mut order: Vec<&OutlineItem> = items
            .iter()
            .filter(|item| item.is_import || !item.names.is_empty())
            .collect();
        order.sort_by_key(|item| (item.depth, !item.is_import, item.start));
        let before = self.left;
        let mut rest = Vec::new();
        for item in order {
            let end = if item.is_import {
                item.end.min(item.header + 20)
            } else {
                item.header
            };
            let range = LineRange {
                start: item.header,
                end,
            };
            if before - self.left >= most || !self.take(range) {
                rest.push(range);
            }
        }
        rest
    }

    fn ranges(&self) -> Vec<LineRange> {
        let mut ranges: Vec<LineRange> = Vec::new();
        for (at, _) in self
            .chosen
            .iter()
            .enumerate()
            .filter(|(_, chosen)| **chosen)
        {
            let line = at as u64 + 1;
            match ranges.last_mut() {
                Some(last) if last.end + 1 == line => last.end = line,
                _ => ranges.push(LineRange {
                    start: line,
                    end: line,
                }),
            }
        }
        ranges
    }
}

/// The places worth showing, the best first: definitions around marks, or lines around them.
fn places(
    items: &[OutlineItem],
    requested: &ExcerptReasons<'_>,
    lines: &[u64],
    allowance: u64,
) -> Vec<(LineRange, u64)> {
    let count = lines.len() as u64;
    let (before, after) = if allowance < FEW_BYTES { CLOSE } else { AROUND };
    let place = |line: u64| {
        let holds = |item: &&OutlineItem| {
            item.start <= line && line <= item.end && item.end - item.start < MAX_LINES && {
                let span = lines.get(item.start.saturating_sub(1) as usize..item.end as usize);
                span.is_some_and(|span| span.iter().sum::<u64>() <= allowance / 3)
            }
        };
        // The outermost that is small enough tells most about what stands around.
        let around = items.iter().filter(holds).min_by_key(|item| item.depth);
        around.map_or(
            LineRange {
                start: line.saturating_sub(before).max(1),
                end: line.saturating_add(after).min(count),
            },
            |item| LineRange {
                start: item.start,
                end: item.end,
            },
        )
    };
    // Of each name the best mention in a place counts, and of many mentions a little.
    let mut points: BTreeMap<LineRange, BTreeMap<usize, u64>> = BTreeMap::new();
    let holders = {
        let mut holders: BTreeMap<usize, BTreeSet<LineRange>> = BTreeMap::new();
        for mark in &requested.marks {
            holders
                .entry(mark.pattern)
                .or_default()
                .insert(place(mark.line));
        }
        holders
    };
    for mark in &requested.marks {
        let spread = holders.get(&mark.pattern).map_or(1, BTreeSet::len) as u64;
        let worth = mark.points * 16 / (1 + u64::from(spread.ilog2())).pow(2);
        let best = points
            .entry(place(mark.line))
            .or_default()
            .entry(mark.pattern)
            .or_default();
        *best = worth.max(*best);
    }
    let mut points_by_range: BTreeMap<LineRange, u64> = points
        .into_iter()
        .map(|(range, best)| (range, best.values().sum()))
        .collect();
    for line in requested
        .frames
        .into_iter()
        .flatten()
        .filter(|line| **line <= count)
    {
        *points_by_range.entry(place(*line)).or_default() += 16 * FOR_FRAME;
    }
    for item in items {
        if requested
            .tests
            .is_some_and(|tests| item.names.iter().any(|name| tests.contains(name)))
        {
            *points_by_range.entry(place(item.header)).or_default() += 16 * FOR_TEST;
        }
    }
    let mut places: Vec<(LineRange, u64)> = points_by_range.into_iter().collect();
    places.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt_ranges(
        text: &str,
        expected: &ExcerptReasons<'_>,
        allowance: u64,
    ) -> Vec<(u64, u64)> {
        let ranges = lines_to_show(&"a.py".parse().unwrap(), text, expected, allowance);
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let bytes: usize = ranges
            .iter()
            .flat_map(|range| &lines[range.start as usize - 1..range.end as usize])
            .map(|line| line.len())
            .sum();
        assert!(bytes as u64 <= allowance, "{bytes}");
        ranges
            .iter()
            .map(|range| (range.start, range.end))
            .collect()
    }

    fn large() -> String {
        let function = |n: usize| format!("def f{n}(a):\n{}\n", "    a = a + 1\n".repeat(9));
        format!("import os\n\n{}", (0..50).map(function).collect::<String>())
    }

    #[test]
    fn definition_around_a_frame_and_outline_are_shown() {
        let text = large();
        let frames = BTreeSet::from([20]);
        let expected = ExcerptReasons {
            frames: Some(&frames),
            ..ExcerptReasons::default()
        };
        let ranges = excerpt_ranges(&text, &expected, 1200);
        assert_eq!(ranges[0], (1, 1));
        assert!(ranges.contains(&(14, 23)), "{ranges:?}");
        assert!(
            ranges.contains(&(3, 3)) && ranges.contains(&(25, 25)),
            "{ranges:?}"
        );
    }

    #[test]
    fn signatures_are_first_lines_outermost_first() {
        let text = "import os\nX = 1\n\n\nclass A:\n    def a(self):\n        pass\n\n\ndef b(x):\n    return x\n";
        let ranges = |allowance: u64| {
            let ranges = signatures(&"a.py".parse().unwrap(), text, allowance);
            ranges
                .iter()
                .map(|range| (range.start, range.end))
                .collect::<Vec<_>>()
        };
        assert_eq!(ranges(1000), [(2, 2), (5, 6), (10, 10)]);
        assert_eq!(ranges(30), [(2, 2), (5, 5), (10, 10)]);
        assert!(signatures(&"a.txt".parse().unwrap(), text, 1000).is_empty());
    }

    #[test]
    fn rare_name_outranks_common_ones_in_excerpt() {
        let text = large();
        let common = (0..50).map(|n| TextMark {
            line: 4 + 11 * n,
            pattern: 0,
            points: 6,
        });
        let rare = TextMark {
            line: 400,
            pattern: 1,
            points: 6,
        };
        let expected = ExcerptReasons {
            marks: common.chain([rare]).collect(),
            ..ExcerptReasons::default()
        };
        let ranges = excerpt_ranges(&text, &expected, 400);
        assert!(
            ranges.iter().any(|(from, to)| *from <= 400 && 400 <= *to),
            "{ranges:?}"
        );
    }

    #[test]
    fn failing_test_is_shown_by_its_name() {
        let tests = BTreeSet::from(["f30".to_owned()]);
        let expected = ExcerptReasons {
            tests: Some(&tests),
            ..ExcerptReasons::default()
        };
        let ranges = excerpt_ranges(&large(), &expected, 600);
        assert!(
            ranges.iter().any(|(from, to)| *from == 333 && *to == 342),
            "{ranges:?}"
        );
    }

    #[test]
    fn text_without_lines_or_outline_is_no_harm() {
        let frames = BTreeSet::from([0, 1, u64::MAX]);
        let expected = ExcerptReasons {
            frames: Some(&frames),
            ..ExcerptReasons::default()
        };
        assert!(excerpt_ranges("", &expected, 10).is_empty());
        assert_eq!(excerpt_ranges("def (\n", &expected, 10), [(1, 1)]);
        assert!(excerpt_ranges(&"x".repeat(5000), &expected, 100).is_empty());
    }
}
