//! Classifies the lines of a Markdown text: headings, code fences and other lines.
//!
//! Only what determines the structure of a document is distinguished. A line inside a fence is never a
//! heading, so an example in a document cannot become a requirement.

use crucible_model::CodeFence;

/// The kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineKind<'a> {
    /// `## Title`.
    Heading {
        /// The number of `#`.
        level: usize,
        /// The title, without surrounding emphasis.
        title: &'a str,
    },
    /// A fence, or a line inside one.
    Fenced,
    /// Only white space.
    Blank,
    /// `---`: a horizontal rule.
    Rule,
    /// Anything else.
    Text,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// Its text, without the line ending.
    pub(crate) text: &'a str,
    pub(crate) kind: LineKind<'a>,
}

/// Whether the last fence of a text is closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fences {
    /// It is, or no fence was opened.
    Closed,
    /// It is open until the end of the text; this line would close it.
    Open(String),
}

/// Splits a text with LF line endings into lines.
pub(crate) fn scan(text: &str) -> (Vec<Line<'_>>, Fences) {
    let mut open: Option<CodeFence<'_>> = None;
    let mut lines = Vec::new();
    for text in text.lines() {
        // Inside a list it may be indented.
        let kind = match (open, CodeFence::indented(text)) {
            (Some(opened), Some(found)) if opened.is_closed_by(found) => {
                open = None;
                LineKind::Fenced
            }
            (Some(_), _) => LineKind::Fenced,
            (None, Some(found)) => {
                open = Some(found);
                LineKind::Fenced
            }
            (None, None) => plain(text),
        };
        lines.push(Line { text, kind });
    }
    #[cfg(test)]
    SCANNED.with(|scanned| scanned.set(scanned.get() + lines.len()));
    (
        lines,
        open.map_or(Fences::Closed, |fence| Fences::Open(fence.end())),
    )
}

#[cfg(test)]
std::thread_local! {
    static SCANNED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The number of lines that this thread has scanned.
#[cfg(test)]
pub(crate) fn scanned() -> usize {
    SCANNED.with(std::cell::Cell::get)
}

/// Parses a heading: its level and its title.
pub(crate) fn heading(line: &str) -> Option<(usize, &str)> {
    let rest = line.trim_start_matches(' ');
    let title = rest.trim_start_matches('#');
    let level = rest.len() - title.len();
    if line.len() - rest.len() > 3
        || !(1..=6).contains(&level)
        || !(title.is_empty() || title.starts_with([' ', '\t']))
    {
        return None;
    }
    Some((level, bare(title.trim().trim_end_matches('#').trim_end())))
}

/// The text after a list marker: `- `, `* `, `+ `, `• `, `1. ` or `1) `.
pub(crate) fn list_item(line: &str) -> Option<&str> {
    let line = line.trim_start_matches([' ', '\t']);
    let rest = line.strip_prefix(['-', '*', '+', '•']).or_else(|| {
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = line.len() - rest.len();
        if (1..=3).contains(&digits) {
            rest.strip_prefix(['.', ')'])
        } else {
            None
        }
    })?;
    rest.starts_with([' ', '\t']).then(|| rest.trim())
}

/// Removes surrounding emphasis.
pub(crate) fn bare(text: &str) -> &str {
    let text = text.trim();
    let inner = text
        .strip_prefix("**")
        .and_then(|rest| rest.strip_suffix("**"));
    inner
        .filter(|inner| !inner.contains("**"))
        .unwrap_or(text)
        .trim()
}

/// Joins lines without outer blank lines, rules, trailing white space and repeated blank lines; code
/// blocks are unchanged.
pub(crate) fn tidied<'a>(lines: impl IntoIterator<Item = Line<'a>>) -> String {
    let mut text = String::new();
    let mut blank = false;
    for line in lines {
        match line.kind {
            LineKind::Blank | LineKind::Rule => {
                blank = !text.is_empty();
                continue;
            }
            LineKind::Fenced | LineKind::Heading { .. } | LineKind::Text => {}
        }
        if !text.is_empty() {
            text.push('\n');
        }
        if blank {
            text.push('\n');
        }
        blank = false;
        text.push_str(if line.kind == LineKind::Fenced {
            line.text
        } else {
            line.text.trim_end()
        });
    }
    text
}

fn plain(line: &str) -> LineKind<'_> {
    if line.trim().is_empty() {
        return LineKind::Blank;
    }
    if let Some((level, title)) = heading(line) {
        return LineKind::Heading { level, title };
    }
    let mut marks = line.chars().filter(|c| !c.is_whitespace());
    let first = marks.next();
    let rule = matches!(first, Some('-' | '*' | '_')) && marks.clone().count() >= 2;
    if rule && marks.all(|c| Some(c) == first) {
        LineKind::Rule
    } else {
        LineKind::Text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headings(text: &str) -> Vec<(usize, &str)> {
        let (lines, _) = scan(text);
        let found = lines.iter().filter_map(|line| match line.kind {
            LineKind::Heading { level, title } => Some((level, title)),
            _ => None,
        });
        found.collect()
    }

    #[test]
    fn a_line_inside_a_fence_is_no_heading() {
        let text =
            "# A\n```md\n## B\n````\n~~~\n# C\n```\n~~~\n### **D** ##\n#no\n    # indented\n";
        assert_eq!(headings(text), [(1, "A"), (3, "D")]);
        let text = "````\n```\n# in\n```\n````\n# out";
        assert_eq!(headings(text), [(1, "out")]);
        assert_eq!(
            headings("## **Bold title**\n####### seven\n#"),
            [(2, "Bold title"), (1, "")]
        );
    }

    #[test]
    fn unclosed_fence_is_reported() {
        assert_eq!(scan("a\n```\nb\n").1, Fences::Open("```".to_owned()));
        assert_eq!(scan("a\n```\nb\n```\n").1, Fences::Closed);
        assert_eq!(
            scan("```a`b\n").1,
            Fences::Closed,
            "a code span is not a fence"
        );
        assert_eq!(scan("````\n~~~\n").1, Fences::Open("````".to_owned()));
        assert_eq!(
            scan("- x\n      ```\n      y\n      ```\n").1,
            Fences::Closed
        );
    }

    #[test]
    fn lists_are_distinguished_from_emphasis_and_rules() {
        assert_eq!(list_item("  * a"), Some("a"));
        assert_eq!(list_item("12. a"), Some("a"));
        assert_eq!(list_item("1) a"), Some("a"));
        for text in ["**a**", "-a", "2026. ", "a", "", "-", "é"] {
            assert_eq!(list_item(text), None, "{text:?}");
        }
        assert_eq!(
            scan("---\n* * *\n--\n-*-")
                .0
                .iter()
                .filter(|l| l.kind == LineKind::Rule)
                .count(),
            2
        );
    }

    #[test]
    fn tidying_keeps_code_as_it_is() {
        let text = "\n\na  \n\n\n\nb\n---\n```\nx  \n\n\ny\n```\n\n";
        assert_eq!(tidied(scan(text).0), "a\n\nb\n\n```\nx  \n\n\ny\n```");
    }
}
