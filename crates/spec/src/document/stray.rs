//! Detects lines that look like an entry (a requirement, a task or a finding) where no entry is parsed.
//!
//! A model may write an entry as a paragraph, in a table or in a code block. Text that is not parsed as
//! an entry is dropped or attached to the entry before it, so such an entry would be lost silently. The
//! line is therefore a fault.
//!
//! Invariant: each result depends on one line, in one pass over it.

use super::ids::{Lead, leading, mentions};
use super::lines::list_item;

/// The severities of a review, the worst first.
pub(crate) const SEVERITIES: [&str; 3] = ["blocker", "major", "minor"];

/// Characters that separate an id from the text after it.
const BEHIND: [char; 12] = [':', '.', ')', '-', '–', '—', '*', '`', ']', '|', '>', '='];

/// The position of a line that names an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// At the beginning of a paragraph, where an id is a heading whatever follows.
    Paragraph,
    /// In a list entry or inside a paragraph, where `- R-002 still holds` is only a mention.
    Within,
}

/// The id at the beginning of a line that looks like the heading of an entry: `**R-002: Security**`,
/// `| T-002 | …`, `> F-001 [minor] …`.
pub(crate) fn headed(line: &str, letter: char, standing: Standing) -> Option<Lead> {
    // `__` means the same as `**`, but would join the id with a word.
    let line = line.replace("__", "**");
    let text = unmarked(&line);
    let (lead, title) = leading(text, letter)?;
    let before = text.len() - title.len();
    let mark = text
        .get(..before)
        .and_then(|head| head.trim_end().chars().next_back());
    let is_set_apart =
        mark.is_some_and(|c| BEHIND.contains(&c)) || title.starts_with(['(', '[', '|', '/']);
    match lead {
        Lead::New if title.is_empty() => None,
        Lead::New => is_set_apart.then_some(lead),
        Lead::Numbered(_) => {
            (title.is_empty() || is_set_apart || standing == Standing::Paragraph).then_some(lead)
        }
    }
}

/// Whether a line that is not parsed as a finding contains one.
pub(crate) fn tells_finding(line: &str) -> bool {
    mentions(line, 'F').next().is_some()
        || headed(line, 'F', Standing::Within).is_some()
        || names_severity(line)
        || line
            .split(['|', '\t'])
            .any(|cell| severity(cell.trim_matches(['*', '`', '_', ' '])))
        || unmarked(line)
            .split_once([':', '–', '—', ']', ')', '*'])
            .is_some_and(|(word, _)| severity(word.trim_matches(['*', '`', '_', ' '])))
}

/// Whether a continuation line of a finding begins another one.
pub(crate) fn begins_finding(line: &str) -> bool {
    headed(line, 'F', Standing::Within).is_some() || names_severity(line)
}

/// Whether a text names a severity in brackets: `[blocker]`.
pub(crate) fn names_severity(text: &str) -> bool {
    let mut parts = text.split(['[', '(', '{']);
    parts.next();
    parts.any(|part| {
        part.split_once([']', ')', '}'])
            .is_some_and(|(word, _)| severity(word.trim_matches(['*', '`', '_', ' '])))
    })
}

/// Whether a line begins an entry of any kind.
pub(crate) fn heads_any(line: &str) -> bool {
    ['R', 'T', 'F']
        .into_iter()
        .any(|letter| headed(line, letter, Standing::Within).is_some())
        || names_severity(line)
}

fn severity(word: &str) -> bool {
    SEVERITIES
        .iter()
        .any(|known| known.eq_ignore_ascii_case(word.trim()))
}

/// The line without prefixes that may precede an id: markers of lists, tables, quotes and emphasis, a
/// checkbox, a tag.
fn unmarked(line: &str) -> &str {
    let mut text = line;
    loop {
        let rest = text.trim_start_matches(|c: char| {
            c.is_whitespace()
                || matches!(
                    c,
                    '>' | '|' | '#' | '_' | '*' | '`' | '~' | '"' | '\'' | '(' | '[' | '\\' | '“'
                )
        });
        let rest = ["x] ", "X] ", " ] ", "] "]
            .into_iter()
            .find_map(|mark| rest.strip_prefix(mark))
            .unwrap_or(rest);
        let rest = list_item(rest).unwrap_or(rest);
        let tag = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'));
        let rest = tag.map_or(rest, |(_, rest)| rest);
        if rest.len() == text.len() {
            return rest;
        }
        text = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_entry_differs_from_mention() {
        for line in [
            "**R-002: Security**",
            "R-004: D holds.",
            "| R-002 | Security |",
            "> R-2 - Security",
            "- **R-002** Security",
            "1. R-002: Security",
            "- [ ] R-002: Security",
            "<h3>R-002: Security</h3>",
            "__R-002__: Security",
            "REQ-002: Security",
            "R-002",
            "R-002 (Security)",
            "R-NEW: Security",
        ] {
            assert!(headed(line, 'R', Standing::Within).is_some(), "{line}");
        }
        for line in [
            "R-002 holds as well",
            "- R-002 still holds",
            "- As R-002: it holds",
            "**R-NEW**",
            "",
            "text",
            "R2 buckets: x",
        ] {
            assert_eq!(headed(line, 'R', Standing::Within), None, "{line}");
        }
        assert!(headed("R-004 D holds.", 'R', Standing::Paragraph).is_some());
        assert_eq!(
            headed("D holds with R-004.", 'R', Standing::Paragraph),
            None
        );
    }

    #[test]
    fn finding_in_other_form_is_reported() {
        for line in [
            "F-001 [blocker] src/export.py: remote code execution",
            "| F-001 | blocker | src/export.py | remote code execution |",
            "| blocker | src/export.py | remote code execution |",
            "[BLOCKER] src/export.py: x",
            "**[ major ]** x",
            "Blocker: src/export.py runs code of strangers",
            "**Minor** – a typo",
            "see F-12",
            "(major) x",
        ] {
            assert!(tells_finding(line), "{line}");
        }
        for line in [
            "All is well.",
            "The major part is done",
            "Minor things were left alone",
            "no [link](x)",
        ] {
            assert!(!tells_finding(line), "{line}");
        }
        assert!(begins_finding("  - F-002 [blocker] x") && !begins_finding("  as in F-002"));
    }
}
