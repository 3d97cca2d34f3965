//! The context pack: what a model sees and what was left out.

use std::borrow::Cow;

use crucible_model::{CanonicalError, to_canonical_json};
use serde::{Deserialize, Serialize};

use crate::json::{self, DocumentError, schema_id};
use crate::request::LineRange;

/// The most bytes of content that a pack holds, whatever a request allows: 64 MiB.
pub(crate) const MAX_CONTENT_BYTES: u64 = 64 * 1024 * 1024;

/// Maximum size of a pack to read, in bytes. Crucible writes packs within a budget, but a person may provide
/// one. JSON writes a byte of content as at most six, so every built pack can be read.
const MAX_PACK_BYTES: u64 = 8 * MAX_CONTENT_BYTES;

/// `artifacts/context_pack.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextPack {
    /// The schema of this document.
    pub schema_version: PackVersion,
    /// The goal of the request.
    pub goal: String,
    /// The repository's name, never its location.
    pub repo_slug: String,
    /// What was left out and why, in a sentence or two.
    pub summary: String,
    /// What is in: mandatory documents first, then the needs in their order.
    pub files: Vec<PackedFile>,
    /// What is not, in the order of the needs.
    pub omitted: Vec<Omitted>,
}

schema_id!(
    /// The schema id of a context pack.
    PackVersion,
    "ctcp-context-pack-v1"
);

/// One file of a pack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackedFile {
    /// Its path in the repository.
    pub path: String,
    /// The source of the text: `mandatory_contract` or `requested:<reason>`, and how it was changed.
    pub why: String,
    /// Its text, copied.
    pub content: String,
    /// Whether the content is a prefix of the file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// The lines in the content, if it is an excerpt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<LineRange>,
}

impl PackedFile {
    /// Returns the content for a reader: in an excerpt, a line with its position precedes each range.
    #[must_use]
    pub fn readable_text(&self) -> Cow<'_, str> {
        if self.ranges.is_empty() {
            return Cow::Borrowed(&self.content);
        }
        let mut lines = self.content.split_inclusive('\n');
        let mut text = String::with_capacity(self.content.len() + 32 * self.ranges.len());
        for range in &self.ranges {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&format!("[lines {}-{}]\n", range.start, range.end));
            let count = range.end.saturating_sub(range.start).saturating_add(1);
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            lines
                .by_ref()
                .take(count)
                .for_each(|line| text.push_str(line));
        }
        // What a pack from elsewhere holds beyond its ranges is not lost.
        lines.for_each(|line| text.push_str(line));
        Cow::Owned(text)
    }
}

/// A requested file that is not in the pack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Omitted {
    /// The requested path; an invalid path is escaped and truncated.
    pub path: String,
    /// Why it is not there.
    pub reason: OmittedReason,
}

/// Why a file is not in a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OmittedReason {
    /// The requested lines are too deep in a huge file.
    TooLarge,
    /// The path is off limits, leaves the repository, holds a secret or cannot be read.
    Denied,
    /// The file is unrelated to the goal.
    Irrelevant,
    /// There is nothing at this path.
    NotFound,
    /// The need is invalid: snippets without lines, reversed lines, or not a file.
    InvalidRequest,
    /// The budget is used up.
    BudgetExceeded,
}

impl OmittedReason {
    /// The reason as the pack spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TooLarge => "too_large",
            Self::Denied => "denied",
            Self::Irrelevant => "irrelevant",
            Self::NotFound => "not_found",
            Self::InvalidRequest => "invalid_request",
            Self::BudgetExceeded => "budget_exceeded",
        }
    }
}

impl ContextPack {
    /// Parses a pack, possibly written by someone else.
    ///
    /// # Errors
    ///
    /// Fails when the document does not match the schema; the error names the field.
    pub fn parse(bytes: &[u8]) -> Result<Self, DocumentError> {
        json::parse_up_to(bytes, PackVersion::ID, MAX_PACK_BYTES)
    }

    /// Returns the pack as canonical JSON: the bytes of `artifacts/context_pack.json`.
    ///
    /// # Errors
    ///
    /// Fails as [`to_canonical_json`] does, which cannot happen for this type.
    pub fn to_bytes(&self) -> Result<Vec<u8>, CanonicalError> {
        to_canonical_json(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpt_shows_where_its_lines_stand() {
        let mut file = PackedFile {
            path: "a".into(),
            why: "requested:r; lines 1-1, 5-6".into(),
            content: "a\ne\nf".into(),
            truncated: false,
            ranges: vec![
                LineRange { start: 1, end: 1 },
                LineRange { start: 5, end: 6 },
            ],
        };
        assert_eq!(file.readable_text(), "[lines 1-1]\na\n[lines 5-6]\ne\nf");
        file.ranges = vec![
            LineRange {
                start: 3,
                end: u64::MAX,
            },
            LineRange { start: 9, end: 2 },
        ];
        assert_eq!(
            file.readable_text(),
            "[lines 3-18446744073709551615]\na\ne\nf\n[lines 9-2]\n"
        );
        file.ranges.clear();
        assert_eq!(file.readable_text(), "a\ne\nf");
    }
}
