//! The scanner: all rules with their keywords, and functions for whole texts.
//!
//! Invariants: a scan is linear in its input, its result is sorted without overlaps, and it contains no
//! secret.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::LazyLock;

use crate::keywords::{Hit, Keywords};
use crate::rule::{self, Rule, RuleId, RulesError, WrittenRule};
use crate::stream::StreamRedactor;
use crate::walk::{Input, Span, Walk};

pub(crate) const BUILTIN_RULES: &str = include_str!("../rules.toml");

/// A set of secret rules, ready to scan. Cheap to share between threads.
pub struct Scanner {
    rules: Vec<WrittenRule>,
    keywords: Keywords,
}

/// A match of a scan. It has the position, never the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretMatch<'s> {
    /// The rule that matched; the first one listed if several did.
    pub rule: &'s RuleId,
    /// A description that completes "this looks like".
    pub description: &'s str,
    /// Its bytes in the scanned text.
    pub range: Range<usize>,
    /// The line it begins in, counted from 1.
    pub line: u64,
}

/// The beginning of a replacement; the rule's id and `]` follow.
pub const MARKER_BEGIN: &str = "[secret:";

/// A text without its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redacted<'a> {
    /// The text with each secret replaced by `[secret:<rule-id>]`; borrowed if there was none.
    pub text: Cow<'a, str>,
    /// How many were replaced.
    pub count: u64,
}

impl Scanner {
    /// Returns the built-in rules. Each is parsed when its keyword first occurs.
    #[must_use]
    pub fn builtin() -> &'static Self {
        static BUILTIN: LazyLock<Scanner> =
            LazyLock::new(|| Scanner::from_rules(rule::built_in_rules(BUILTIN_RULES)));
        &BUILTIN
    }

    /// A scanner for the rules in `text`, written as `rules.toml` explains.
    ///
    /// # Errors
    /// When the text is not a TOML document of rules, a rule contradicts itself, or two have one id.
    pub fn from_toml(text: &str) -> Result<Self, RulesError> {
        Ok(Self::from_rules(
            rule::parse(text)?
                .into_iter()
                .map(WrittenRule::read)
                .collect(),
        ))
    }

    fn from_rules(rules: Vec<WrittenRule>) -> Self {
        let keywords = Keywords::new(rules.iter().map(|rule| &rule.keywords[..]));
        Self { rules, keywords }
    }

    /// Returns all secrets in `bytes`, in order and without overlaps.
    #[must_use]
    pub fn scan(&self, bytes: &[u8]) -> Vec<SecretMatch<'_>> {
        let mut line = 1;
        let mut counted = 0;
        let locate = |span: Span| {
            line += bytes[counted..span.start]
                .iter()
                .filter(|byte| **byte == b'\n')
                .count() as u64;
            counted = span.start;
            let rule = self.rule(span.rule);
            SecretMatch {
                rule: &rule.id,
                description: &rule.description,
                range: span.start..span.end,
                line,
            }
        };
        self.spans(bytes).into_iter().map(locate).collect()
    }

    /// The rule of the first secret in a file, whether its characters have one byte or, as in UTF-16, zeros between them.
    #[must_use]
    pub fn first_in_file(&self, bytes: &[u8]) -> Option<&RuleId> {
        let first = |bytes: &[u8]| self.scan(bytes).first().map(|found| found.rule);
        first(bytes).or_else(|| {
            let wide = bytes.contains(&0);
            wide.then(|| {
                bytes
                    .iter()
                    .copied()
                    .filter(|byte| *byte != 0)
                    .collect::<Vec<u8>>()
            })
            .and_then(|narrow| first(&narrow))
        })
    }

    /// `text` with each secret replaced by `[secret:<rule-id>]`.
    #[must_use]
    pub fn redact<'a>(&self, text: &'a str) -> Redacted<'a> {
        let mut spans = self.spans(text.as_bytes());
        if spans.is_empty() {
            return Redacted {
                text: Cow::Borrowed(text),
                count: 0,
            };
        }
        for span in &mut spans {
            span.start = text.floor_char_boundary(span.start);
            span.end = text.ceil_char_boundary(span.end);
        }
        let mut out = String::with_capacity(text.len());
        let mut from = 0;
        for span in &spans {
            out.push_str(&text[from.min(span.start)..span.start]);
            out.push_str(&self.marker(*span));
            from = span.end;
        }
        out.push_str(&text[from..]);
        Redacted {
            text: Cow::Owned(out),
            count: spans.len() as u64,
        }
    }

    /// `bytes` with each secret replaced by `[secret:<rule-id>]`, and how many there were.
    #[must_use]
    pub fn redact_bytes(&self, bytes: &[u8]) -> (Vec<u8>, u64) {
        let spans = self.spans(bytes);
        let mut out = Vec::with_capacity(bytes.len());
        let mut from = 0;
        for span in &spans {
            out.extend_from_slice(&bytes[from..span.start]);
            out.extend_from_slice(self.marker(*span).as_bytes());
            from = span.end;
        }
        out.extend_from_slice(&bytes[from..]);
        (out, spans.len() as u64)
    }

    /// A redactor for bytes that come piece by piece.
    #[must_use]
    pub fn redactor(&self) -> StreamRedactor<'_> {
        StreamRedactor::new(self)
    }

    pub(crate) fn rule(&self, index: usize) -> &Rule {
        self.rules[index].rule()
    }

    pub(crate) fn marker(&self, span: Span) -> String {
        format!("{MARKER_BEGIN}{}]", self.rule(span.rule).id)
    }

    /// Appends every keyword that begins within `within`, with each rule that it belongs to, ordered by begin and rule.
    pub(crate) fn keywords_in(&self, buffer: &[u8], within: Range<usize>, hits: &mut Vec<Hit>) {
        self.keywords.find(buffer, within, hits);
    }

    fn spans(&self, bytes: &[u8]) -> Vec<Span> {
        let mut walk = Walk::new(self);
        walk.advance(bytes, Input::Whole);
        walk.spans
    }
}

impl fmt::Debug for Scanner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scanner")
            .field("rules", &self.rules.len())
            .finish_non_exhaustive()
    }
}
