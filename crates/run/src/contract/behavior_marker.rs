//! Behaviour markers in source: `BEHAVIOR_ID: B012` in a comment.
//!
//! A marker is a comment sign at the start of a line or after white space, the word, a colon and one id. Only
//! the end of the comment may follow. The word alone, in a name or a text, is not a marker. Pure, and linear
//! in the bytes.

use memchr::memmem::Finder;

use crate::contract::ids::{IdKind, is_id};

/// The word of a marker.
const WORD: &str = "BEHAVIOR_ID";
/// Signs that begin a comment, wherever white space is before them. A sign may be doubled: `///`, `##`, `;;`.
const SIGNS: [&str; 9] = ["//!", "/**", "/*!", "//", "/*", "<!--", "#", ";", "--"];
/// Signs that begin one, or a further line of one, at the beginning of a line alone.
const FIRST_SIGNS: [&str; 3] = ["*", "%", "'"];
/// Ends of comments on the same line.
const ENDS: [&str; 2] = ["*/", "-->"];

/// Maximum distance of a marker from the start of its line, in bytes.
const MAX_BEFORE: usize = 1024;
/// Bytes examined after the word.
const MAX_AFTER: usize = 256;

/// A marker in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BehaviorMarker {
    /// The line number, from 1.
    pub line: u64,
    /// The id; `None` if it is invalid.
    pub id: Option<String>,
}

/// Returns every marker in the bytes of a file. Bytes with a NUL are not source and have none.
#[must_use]
pub(crate) fn behavior_markers(bytes: &[u8]) -> Vec<BehaviorMarker> {
    let mut markers = Vec::new();
    // Position of the line count, the line number there, and the start of that line.
    let (mut counted, mut line, mut begin) = (0, 1, 0);
    for at in Finder::new(WORD).find_iter(bytes) {
        let between = bytes.get(counted..at).unwrap_or_default();
        line += memchr::memchr_iter(b'\n', between).count() as u64;
        begin = memchr::memrchr(b'\n', between).map_or(begin, |end| counted + end + 1);
        counted = at;
        let before = bytes.get(begin..at).unwrap_or_default();
        let rest = bytes.get(at + WORD.len()..).unwrap_or_default();
        let Some(rest) = rest.strip_prefix(b":") else {
            continue;
        };
        if before.len() > MAX_BEFORE || !begins_comment(before) {
            continue;
        }
        if markers.is_empty() && memchr::memchr(0, bytes).is_some() {
            return Vec::new();
        }
        let near = rest.get(..MAX_AFTER).unwrap_or(rest);
        let after =
            memchr::memchr(b'\n', near).map_or(near, |end| near.get(..end).unwrap_or_default());
        markers.push(BehaviorMarker {
            line,
            id: id_of(after),
        });
    }
    markers
}

/// Returns whether the text before the word is only the start of a comment.
fn begins_comment(before: &[u8]) -> bool {
    let before = before.trim_ascii_end();
    let is_space = |rest: &[u8]| rest.last().is_none_or(u8::is_ascii_whitespace);
    let is_first = |rest: &[u8]| rest.trim_ascii().is_empty();
    let without = |sign: &str| {
        let mut rest = before.strip_suffix(sign.as_bytes())?;
        // `////`, `###`: the sign, or its last character, once more.
        while let Some(shorter) = sign
            .as_bytes()
            .last()
            .and_then(|last| rest.strip_suffix(&[*last]))
        {
            rest = shorter;
        }
        Some(rest)
    };
    SIGNS.iter().filter_map(|sign| without(sign)).any(is_space)
        || FIRST_SIGNS
            .iter()
            .filter_map(|sign| without(sign))
            .any(is_first)
}

fn id_of(after: &[u8]) -> Option<String> {
    let mut text = std::str::from_utf8(after).ok()?.trim();
    for end in ENDS {
        text = text.strip_suffix(end).unwrap_or(text).trim_end();
    }
    is_id(IdKind::Behavior, text).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(u64, Option<String>)> {
        behavior_markers(text.as_bytes())
            .into_iter()
            .map(|marker| (marker.line, marker.id))
            .collect()
    }

    #[test]
    fn a_comment_of_any_language_holds_a_marker() {
        for line in [
            "# BEHAVIOR_ID: B012",
            "// BEHAVIOR_ID: B012",
            "    //! BEHAVIOR_ID: B012\r",
            "/// BEHAVIOR_ID:B012",
            "/* BEHAVIOR_ID: B012 */",
            " * BEHAVIOR_ID: B012",
            "<!-- BEHAVIOR_ID: B012 -->",
            "-- BEHAVIOR_ID: B012",
            ";; BEHAVIOR_ID: B012",
            "% BEHAVIOR_ID: B012",
            "x = 1  # BEHAVIOR_ID: B012",
            "f();\t// BEHAVIOR_ID: B012",
            "/** BEHAVIOR_ID: B012 **/",
        ] {
            let expected = if line.ends_with("**/") {
                None
            } else {
                Some("B012".to_owned())
            };
            assert_eq!(
                found(&format!("a\n{line}\nb\n")),
                [(2, expected)],
                "{line:?}"
            );
        }
    }

    #[test]
    fn marker_word_in_text_is_not_marker() {
        for line in [
            "const BEHAVIOR_ID: &str = x;",
            "\"# BEHAVIOR_ID: B012\"",
            "# the BEHAVIOR_ID: B012",
            "MY_BEHAVIOR_ID: B012",
            "# BEHAVIOR_IDS: B012",
            "# BEHAVIOR_ID B012",
            "a * BEHAVIOR_ID: B012",
            "x#BEHAVIOR_ID: B012",
            "http://BEHAVIOR_ID: B012",
            "# behavior_id: B012",
        ] {
            assert_eq!(found(line), [], "{line:?}");
        }
        assert_eq!(found("# BEHAVIOR_ID: B012\n\0"), []);
    }

    #[test]
    fn marker_without_exact_id_is_invalid() {
        for line in [
            "B12",
            "B012, B013",
            "B012 because",
            "b012",
            "",
            "B0123",
            "\u{202e}B012",
        ] {
            assert_eq!(
                found(&format!("# BEHAVIOR_ID: {line}")),
                [(1, None)],
                "{line:?}"
            );
        }
        assert_eq!(
            behavior_markers(b"# BEHAVIOR_ID: \xff"),
            [BehaviorMarker { line: 1, id: None }]
        );
    }

    #[test]
    fn marker_lines_are_counted() {
        let text = "\n# BEHAVIOR_ID: B001\n".repeat(50_000);
        let markers = behavior_markers(text.as_bytes());
        assert_eq!(markers.len(), 50_000);
        assert_eq!(markers[49_999].line, 100_000);
        let one_line = format!(
            "{}{}",
            " ".repeat(1_000_000),
            "* BEHAVIOR_ID:".repeat(200_000)
        );
        assert_eq!(found(&one_line), []);
        let many = format!("{}\n", "# BEHAVIOR_ID: ".repeat(60)).repeat(1000);
        assert_eq!(found(&many).len(), 60_000);
    }
}
