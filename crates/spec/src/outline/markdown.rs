//! What the formats share: headings, list items with a box, and blocks of lines.

use super::RequirementText;
use crate::document::{Line, LineKind, list_item};

/// A list item with a box: `- [x] text`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BoxedItem<'a> {
    pub(super) is_done: bool,
    /// The text after the box.
    pub(super) text: &'a str,
}

/// Parses a list item with a box. A box has one character or is empty; `x` means done.
pub(super) fn boxed_item(line: &str) -> Option<BoxedItem<'_>> {
    let item = list_item(line)?;
    let (mark, text) = item.strip_prefix('[')?.split_once(']')?;
    let mark = mark.trim();
    // `[text](link)` is a link.
    if mark.chars().count() > 1 || text.starts_with(['(', '[']) {
        return None;
    }
    // Kiro marks optional tasks with a star.
    let text = text.strip_prefix('*').unwrap_or(text);
    Some(BoxedItem {
        is_done: mark.eq_ignore_ascii_case("x"),
        text: text.trim(),
    })
}

/// The spaces before a line; a tab counts as four.
pub(super) fn indent(line: &str) -> usize {
    line.chars()
        .map_while(|c| match c {
            ' ' => Some(1),
            '\t' => Some(4),
            _ => None,
        })
        .sum()
}

/// A heading's level and title, outside of code blocks.
pub(super) fn heading_of<'a>(line: &Line<'a>) -> Option<(usize, &'a str)> {
    match line.kind {
        LineKind::Heading { level, title } => Some((level, title)),
        LineKind::Fenced | LineKind::Blank | LineKind::Rule | LineKind::Text => None,
    }
}

/// The text after a prefix in any case of ASCII letters.
pub(super) fn after_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let begin = text.get(..word.len())?;
    begin
        .eq_ignore_ascii_case(word)
        .then(|| text.get(word.len()..))
        .flatten()
}

/// Splits a number such as `1` or `2.10` from the text after it. A final dot belongs to neither.
pub(super) fn numbered(text: &str) -> Option<(String, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let number = number.trim_end_matches('.');
    let is_number = !number.is_empty()
        && number
            .split('.')
            .all(|part| !part.is_empty() && part.len() <= 4);
    let rest = rest.trim_start_matches(')');
    (is_number && (rest.is_empty() || rest.starts_with([' ', ':', '\t'])))
        .then(|| (number.to_owned(), rest.trim_start_matches(':').trim()))
}

impl RequirementText {
    /// Adds a line below the title.
    pub(super) fn push(&mut self, line: &Line<'_>) {
        if line.kind == LineKind::Fenced {
            self.fenced.push(self.body.len());
        }
        self.body.push(line.text.trim_end().to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn box_is_read_in_every_spelling() {
        for (line, is_done, text) in [
            ("- [ ] T001 a", false, "T001 a"),
            ("  * [x] a", true, "a"),
            ("1. [X] a", true, "a"),
            ("- [] a", false, "a"),
            ("- [-] a", false, "a"),
            ("- [ ]* 2.1 a", false, "2.1 a"),
        ] {
            assert_eq!(
                boxed_item(line),
                Some(BoxedItem { is_done, text }),
                "{line}"
            );
        }
        for line in ["- [a](b)", "- [link] x", "- a", "[ ] a", "- [x](b)"] {
            assert_eq!(boxed_item(line), None, "{line}");
        }
    }

    #[test]
    fn number_ends_before_text() {
        for (text, number, rest) in [
            ("1. a", "1", "a"),
            ("1.10 a", "1.10", "a"),
            ("2: a", "2", "a"),
            ("3", "3", ""),
            ("2.1.", "2.1", ""),
        ] {
            assert_eq!(numbered(text), Some((number.to_owned(), rest)), "{text}");
        }
        for text in ["", "a", "1a", ".", "1..2 a", "12345 a"] {
            assert_eq!(numbered(text), None, "{text}");
        }
    }
}
