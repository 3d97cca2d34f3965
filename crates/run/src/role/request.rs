//! A model's answer that requests more files instead of proposing a change. Pure.
//!
//! It consists only of lines `NEED: path`, `NEED: path:10-80` or `SEARCH: words`. Any other line makes it an
//! ordinary answer, so a change is never taken for a request. The lines are not trusted: the librarian judges
//! them.

use crucible_pack::LineRange;
use crucible_patch::strip_reasoning;

/// The most lines that are read.
pub(crate) const MAX_LINES: usize = 5;

/// The longest path or search that is read, in characters.
const MAX_LEN: usize = 200;

/// What one line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestItem {
    /// A file, whole or some lines of it. The path is not judged yet.
    File {
        path: String,
        lines: Option<LineRange>,
    },
    /// The files that share most with these words.
    Search { words: String },
}

/// An answer that asks for files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MoreFiles {
    /// The requested items, each once, in order.
    pub(crate) wanted: Vec<RequestItem>,
    /// How many lines are not read.
    pub(crate) unread: usize,
}

impl MoreFiles {
    /// Parses an answer; `None` if it contains anything else. List marks and a code fence around the lines
    /// are skipped.
    pub(crate) fn read(answer: &str) -> Option<Self> {
        let mut request = Self {
            wanted: Vec::new(),
            unread: 0,
        };
        for line in strip_reasoning(answer).lines().map(str::trim) {
            if line.is_empty() || line.starts_with("```") {
                continue;
            }
            let line = line.trim_start_matches(['-', '*', ' ']);
            let (is_file, argument) =
                match (line.strip_prefix("NEED:"), line.strip_prefix("SEARCH:")) {
                    (Some(path), _) => (true, path),
                    (None, Some(words)) => (false, words),
                    (None, None) => return None,
                };
            if request.wanted.len() >= MAX_LINES {
                request.unread += 1;
                continue;
            }
            let argument: String = argument
                .trim()
                .trim_matches(['`', '"', '\''])
                .chars()
                .take(MAX_LEN)
                .collect();
            let requested = if is_file {
                file(&argument)
            } else {
                RequestItem::Search { words: argument }
            };
            if !request.wanted.contains(&requested) {
                request.wanted.push(requested);
            }
        }
        (!request.wanted.is_empty()).then_some(request)
    }
}

impl RequestItem {
    /// The line that asks for it.
    pub(crate) fn line(&self) -> String {
        match self {
            Self::File { path, lines: None } => format!("NEED: {path}"),
            Self::File {
                path,
                lines: Some(lines),
            } => format!("NEED: {path}:{}-{}", lines.start, lines.end),
            Self::Search { words } => format!("SEARCH: {words}"),
        }
    }
}

/// Parses a path and optional lines.
fn file(text: &str) -> RequestItem {
    let text = text.strip_prefix("./").unwrap_or(text);
    let with_lines = text.rsplit_once(':').and_then(|(path, lines)| {
        let (start, end) = lines.split_once('-').unwrap_or((lines, lines));
        Some((
            path,
            LineRange {
                start: start.trim().parse().ok()?,
                end: end.trim().parse().ok()?,
            },
        ))
    });
    match with_lines {
        Some((path, lines)) => RequestItem::File {
            path: path.to_owned(),
            lines: Some(lines),
        },
        None => RequestItem::File {
            path: text.to_owned(),
            lines: None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(answer: &str) -> Option<(Vec<String>, usize)> {
        let request = MoreFiles::read(answer)?;
        Some((
            request.wanted.iter().map(RequestItem::line).collect(),
            request.unread,
        ))
    }

    #[test]
    fn request_answer_contains_only_requests() {
        let read = |answer| lines(answer).map(|(lines, _)| lines.join("|"));
        assert_eq!(read("NEED: src/a.py"), Some("NEED: src/a.py".into()));
        let marked = "<think>NEED: x</think>\n```text\n- NEED: `./src/a.py`\n\n* SEARCH: \"parse a date\"\r\n```\n";
        assert_eq!(
            read(marked),
            Some("NEED: src/a.py|SEARCH: parse a date".into())
        );
        assert_eq!(
            read("NEED: a.py:10-80\nNEED: b.py: 7"),
            Some("NEED: a.py:10-80|NEED: b.py:7-7".into())
        );
        assert_eq!(read("NEED: c:d\nNEED: c:d"), Some("NEED: c:d".into()));
        for answer in [
            "",
            "```\n```",
            "need: a",
            "I NEED: a",
            "NEED: a\nPlease.",
            "NEED: a\nFILE: b\n```\nx\n```\n",
            "FILE: a\n```\nNEED: b\n```\n",
            "NEED: a\ndiff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-NEED: x\n+NEED: y\n",
            "<think>NEED: a",
        ] {
            assert_eq!(read(answer), None, "{answer}");
        }
    }

    #[test]
    fn thousands_of_lines_and_huge_words_are_cut() {
        let many: String = (0..9_000).map(|at| format!("NEED: f{at}\n")).collect();
        let (read, unread) = lines(&many).unwrap();
        assert_eq!((read.len(), unread), (MAX_LINES, 9_000 - MAX_LINES));
        let (read, _) = lines(&format!("SEARCH: {}", "é".repeat(1_000_000))).unwrap();
        assert_eq!(read[0].chars().count(), "SEARCH: ".len() + MAX_LEN);
        let (read, _) = lines("NEED: a:99999999999999999999999-3").unwrap();
        assert_eq!(read, ["NEED: a:99999999999999999999999-3"]);
    }
}
