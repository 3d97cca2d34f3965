//! The words and literals of a text, as the readers of several languages need them.

use std::ops::Range;

use super::super::search::contains;
use super::super::token::Token;

/// How many words an argument may have.
pub(super) const MAX_WORDS: usize = 256;

/// A word, a mark or a literal.
#[derive(Debug, Clone)]
pub(super) struct Item<'a> {
    pub(super) text: &'a [u8],
    pub(super) at: usize,
    pub(super) is_literal: bool,
}

impl Item<'_> {
    pub(super) fn is(&self, word: &str) -> bool {
        !self.is_literal && self.text == word.as_bytes()
    }

    /// What a literal says.
    pub(super) fn value(&self) -> Option<String> {
        self.is_literal.then(|| value(self.text))
    }
}

/// The words and literals of a text, in order.
pub(super) fn items<'a>(
    source: &'a [u8],
    tokens: &[Token<'a>],
    literals: &[Range<usize>],
) -> Vec<Item<'a>> {
    let words = tokens.iter().map(|token| Item {
        text: token.text,
        at: token.range.start,
        is_literal: false,
    });
    let literals = literals.iter().filter_map(|range| {
        Some(Item {
            text: source.get(range.clone())?,
            at: range.start,
            is_literal: true,
        })
    });
    let mut all: Vec<Item<'a>> = words.chain(literals).collect();
    all.sort_by_key(|item| item.at);
    all
}

/// What the text of a literal stands for: without prefix and quotes, and with its escapes read.
pub(super) fn value(literal: &[u8]) -> String {
    let is_quote = |byte: &u8| matches!(byte, b'"' | b'\'' | b'`');
    let Some(open) = literal.iter().position(is_quote) else {
        return String::new();
    };
    let is_raw = literal[..open]
        .iter()
        .any(|byte| matches!(byte, b'r' | b'R'));
    let quote = literal[open];
    let inner = literal.get(open..).unwrap_or_default();
    let from = inner
        .iter()
        .position(|byte| *byte != quote)
        .unwrap_or(inner.len());
    let inner = &inner[from..];
    let hashes = inner.iter().rev().take_while(|byte| **byte == b'#').count();
    let inner = &inner[..inner.len() - if is_raw { hashes } else { 0 }];
    // As many as opened it: a quote before them is one that the text holds.
    let closing = inner
        .iter()
        .rev()
        .take(from)
        .take_while(|byte| **byte == quote)
        .count();
    let inner = &inner[..inner.len() - closing];
    let text = String::from_utf8_lossy(match literal[..open].last() {
        Some(b'R') => untagged(inner),
        _ => inner,
    });
    if is_raw {
        text.into_owned()
    } else {
        unescaped(&text)
    }
}

/// The text of a raw literal of C++, without the brackets around it and their tags.
pub(super) fn untagged(inner: &[u8]) -> &[u8] {
    let Some(open) = inner.iter().position(|byte| *byte == b'(') else {
        return inner;
    };
    let (tag, rest) = (&inner[..open], &inner[open + 1..]);
    let text = rest.strip_suffix(tag);
    text.and_then(|text| text.strip_suffix(b")"))
        .unwrap_or(inner)
}

/// A text with its escapes read, in the notations that languages share.
pub(super) fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(kind) = rest.chars().next() else {
            return out;
        };
        let digits = |from: usize, most: usize, radix: u32| -> Option<(char, usize)> {
            let text = rest.get(from..)?;
            let count = text
                .chars()
                .take(most)
                .take_while(|digit| digit.is_digit(radix))
                .count();
            let number = u32::from_str_radix(text.get(..count)?, radix).ok()?;
            Some((char::from_u32(number)?, from + count))
        };
        let read = match kind {
            'x' => digits(1, 2, 16),
            'u' if rest.starts_with("u{") => digits(2, 6, 16).map(|(read, end)| (read, end + 1)),
            'u' => digits(1, 4, 16),
            '0'..='7' => digits(0, 3, 8),
            'n' => Some(('\n', 1)),
            'r' => Some(('\r', 1)),
            't' => Some(('\t', 1)),
            _ => None,
        };
        match read {
            Some((read, end)) => {
                out.push(read);
                rest = rest.get(end..).unwrap_or_default();
            }
            // A line that goes on in the next one.
            None if kind == '\n' => rest = rest[1..].trim_start(),
            None => {
                out.push(kind);
                rest = &rest[kind.len_utf8()..];
            }
        }
    }
    out + rest
}

/// The items between the bracket at `open` and the one that closes it; nothing where they are too many.
pub(super) fn inside<'i, 'a>(items: &'i [Item<'a>], open: usize) -> Option<&'i [Item<'a>]> {
    let mut depth = 0usize;
    for (at, item) in items.iter().enumerate().skip(open).take(MAX_WORDS) {
        match item.text {
            _ if item.is_literal => {}
            b"(" | b"[" | b"{" => depth += 1,
            b")" | b"]" | b"}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return items.get(open + 1..at);
        }
    }
    None
}

/// The text of items, for a person.
pub(super) fn source_text(items: &[Item<'_>]) -> String {
    let texts: Vec<_> = items
        .iter()
        .map(|item| String::from_utf8_lossy(item.text))
        .collect();
    texts.join(" ")
}

pub(super) fn has(source: &[u8], word: &str) -> bool {
    contains(source, word.as_bytes())
}

pub(super) fn has_any(source: &[u8], words: &[&str]) -> bool {
    words.iter().any(|word| has(source, word))
}

/// Every place behind `word` where it stands for itself.
pub(super) fn after<'t>(text: &'t str, word: &str) -> impl Iterator<Item = &'t str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).filter_map(move |(at, word)| {
        let (before, rest) = (&text[..at], &text[at + word.len()..]);
        let is_begun = word.starts_with(is_part) && before.ends_with(is_part);
        let goes_on = word.ends_with(is_part) && rest.starts_with(is_part);
        (!is_begun && !goes_on).then_some(rest)
    })
}
