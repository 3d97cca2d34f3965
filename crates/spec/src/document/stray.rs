//! Lines that look like an entry (a requirement, a task, a finding) and stand where none is read.
//!
//! A model may write an entry as a paragraph, in a table or inside a code block. What is no entry to the reader is left out or belongs to
//! the entry before it, so an entry in another form would be lost without a word: such a line is a fault.
//!
//! What always holds: each answer depends on one line, and is found in one walk over it.

use super::ids::{Lead, leading, mentions};
use super::lines::list_item;

/// What a review calls its findings, the worst first.
pub(crate) const SEVERITIES: [&str; 3] = ["blocker", "major", "minor"];

/// Marks that separate an id from what it heads.
const BEHIND: [char; 12] = [':', '.', ')', '-', '–', '—', '*', '`', ']', '|', '>', '='];

/// Where a line stands that names an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// At the begin of a paragraph: whatever follows the id, it heads the paragraph.
    Paragraph,
    /// In an entry of a list, or in the middle of a paragraph: `- R-002 still holds` only speaks of it.
    Within,
}

/// The id that a line begins with as the heading of an entry does: `**R-002: Security**`, `| T-002 | …`, `> F-001 [minor] …`.
pub(crate) fn headed(line: &str, letter: char, standing: Standing) -> Option<Lead> {
    // `__` marks what `**` does, and would make one word of the id.
    let line = line.replace("__", "**");
    let text = unmarked(&line);
    let (lead, title) = leading(text, letter)?;
    let before = text.len() - title.len();
    let mark = text.get(..before).and_then(|head| head.trim_end().chars().next_back());
    let is_set_apart = mark.is_some_and(|c| BEHIND.contains(&c)) || title.starts_with(['(', '[', '|', '/']);
    match lead {
        Lead::New if title.is_empty() => None,
        Lead::New => is_set_apart.then_some(lead),
        Lead::Numbered(_) => {
            (title.is_empty() || is_set_apart || standing == Standing::Paragraph).then_some(lead)
        }
    }
}

/// Whether a line that is read as no finding tells one.
pub(crate) fn tells_finding(line: &str) -> bool {
    mentions(line, 'F').next().is_some()
        || headed(line, 'F', Standing::Within).is_some()
        || names_severity(line)
        || line.split(['|', '\t']).any(|cell| severity(cell.trim_matches(['*', '`', '_', ' '])))
        || unmarked(line)
            .split_once([':', '–', '—', ']', ')', '*'])
            .is_some_and(|(word, _)| severity(word.trim_matches(['*', '`', '_', ' '])))
}

/// Whether a line that goes on with a finding is one of its own.
pub(crate) fn begins_finding(line: &str) -> bool {
    headed(line, 'F', Standing::Within).is_some() || names_severity(line)
}

/// Whether a severity stands in brackets: `[blocker]`.
pub(crate) fn names_severity(text: &str) -> bool {
    let mut parts = text.split(['[', '(', '{']);
    parts.next();
    parts.any(|part| {
        part.split_once([']', ')', '}'])
            .is_some_and(|(word, _)| severity(word.trim_matches(['*', '`', '_', ' '])))
    })
}

/// Whether a line heads an entry of any kind, as no word around a document does.
pub(crate) fn heads_any(line: &str) -> bool {
    ['R', 'T', 'F'].into_iter().any(|letter| headed(line, letter, Standing::Within).is_some())
        || names_severity(line)
}

fn severity(word: &str) -> bool {
    SEVERITIES.iter().any(|known| known.eq_ignore_ascii_case(word.trim()))
}

/// The line without what may stand before an id: marks of lists, tables, quotes and emphasis, a checkbox, a tag.
fn unmarked(line: &str) -> &str {
    let mut text = line;
    loop {
        let rest = text.trim_start_matches(|c: char| {
            c.is_whitespace()
                || matches!(c, '>' | '|' | '#' | '_' | '*' | '`' | '~' | '"' | '\'' | '(' | '[' | '\\' | '“')
        });
        let rest =
            ["x] ", "X] ", " ] ", "] "].into_iter().find_map(|mark| rest.strip_prefix(mark)).unwrap_or(rest);
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
    fn an_entry_in_another_form_is_told_from_a_sentence_that_names_one() {
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
        assert_eq!(headed("D holds with R-004.", 'R', Standing::Paragraph), None);
    }

    #[test]
    fn a_finding_in_another_form_is_told() {
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
        for line in ["All is well.", "The major part is done", "Minor things were left alone", "no [link](x)"]
        {
            assert!(!tells_finding(line), "{line}");
        }
        assert!(begins_finding("  - F-002 [blocker] x") && !begins_finding("  as in F-002"));
    }
}
