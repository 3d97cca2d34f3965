//! Markdown code fences: the one parser for answers, plans and documents.
//!
//! A fence is a line of at least three backticks or tildes. A fence of the same kind and at least the same
//! length closes it if no text follows. Backticks followed by more backticks on the line are inline code, not
//! a fence.

/// A line that opens or closes a block of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeFence<'a> {
    mark: char,
    length: usize,
    info: &'a str,
}

impl<'a> CodeFence<'a> {
    /// Reads a line as a fence. It may be indented by three blanks at the most: further in, it is code itself.
    #[must_use]
    pub fn parse(line: &'a str) -> Option<Self> {
        let text = line.trim_start_matches(' ');
        let is_near = line.len() - text.len() <= 3 && !text.starts_with('\t');
        Self::indented(text).filter(|_| is_near)
    }

    /// Reads a line as a fence, however far it is indented, as inside of a list.
    #[must_use]
    pub fn indented(line: &'a str) -> Option<Self> {
        let text = line.trim_start_matches([' ', '\t']);
        let mark = text
            .chars()
            .next()
            .filter(|mark| matches!(mark, '`' | '~'))?;
        let info = text.trim_start_matches(mark);
        let length = text.len() - info.len();
        let is_fence = length >= 3 && !(mark == '`' && info.contains('`'));
        is_fence.then_some(Self {
            mark,
            length,
            info: info.trim(),
        })
    }

    /// Returns the text after the marks, such as the language.
    #[must_use]
    pub const fn info(&self) -> &'a str {
        self.info
    }

    /// How many marks it has.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.length
    }

    /// Returns the line that closes this fence.
    #[must_use]
    pub fn end(&self) -> String {
        String::from(self.mark).repeat(self.length)
    }

    /// Whether `later` closes the block that this fence opens.
    #[must_use]
    pub fn is_closed_by(&self, later: CodeFence<'_>) -> bool {
        self.is_matched_by(later) && later.info.is_empty()
    }

    /// Whether `inner` would close this block, but for its words: it opens a block inside of it.
    #[must_use]
    pub fn holds(&self, inner: CodeFence<'_>) -> bool {
        self.is_matched_by(inner) && !inner.info.is_empty()
    }

    fn is_matched_by(&self, other: CodeFence<'_>) -> bool {
        other.mark == self.mark && other.length >= self.length
    }
}

/// The text without white space and without one block of code around the whole of it, which chats like to add. A text that
/// holds a fence of the same kind inside could be read in two ways, and stays as it is.
#[must_use]
pub fn unfenced(text: &str) -> &str {
    let trimmed = text.trim();
    inside(trimmed).unwrap_or(trimmed)
}

fn inside(text: &str) -> Option<&str> {
    let (first, rest) = text.split_once('\n')?;
    let open = CodeFence::parse(first)?;
    let end = open.end();
    // Models forget the line break before the closing fence.
    let inner = rest.trim_end_matches(open.mark);
    let closes = rest.len() - inner.len() >= open.length;
    (closes && !inner.contains(&end)).then_some(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fence_is_recognised_by_marks_and_indent() {
        for (line, length, info) in [
            ("```", 3, ""),
            ("~~~~", 4, ""),
            ("   ```rust", 3, "rust"),
            ("``` a b \r\n", 3, "a b"),
            ("~~~ a`b", 3, "a`b"),
        ] {
            let fence = CodeFence::parse(line).unwrap();
            assert_eq!((fence.length(), fence.info()), (length, info), "{line:?}");
            assert_eq!(CodeFence::indented(line), Some(fence));
        }
        for line in ["", "``", "~~", "x```", "```a`b", "``` ```", "`~`~"] {
            assert_eq!(CodeFence::indented(line), None, "{line:?}");
        }
        for line in ["    ```", "\t```", " \t```"] {
            assert!(
                CodeFence::parse(line).is_none() && CodeFence::indented(line).is_some(),
                "{line:?}"
            );
        }
    }

    #[test]
    fn block_ends_only_at_matching_fence() {
        let fence = |line| CodeFence::parse(line).unwrap();
        for (open, later, closes, holds) in [
            ("```rust", "```", true, false),
            ("```", "````", true, false),
            ("````", "```", false, false),
            ("```", "~~~", false, false),
            ("```", "```rust", false, true),
            ("````", "```rust", false, false),
        ] {
            let (open, later) = (fence(open), fence(later));
            assert_eq!(
                (open.is_closed_by(later), open.holds(later)),
                (closes, holds),
                "{open:?} {later:?}"
            );
        }
        assert_eq!(fence("  ~~~~ x").end(), "~~~~");
    }

    #[test]
    fn only_one_enclosing_block_is_removed() {
        for (text, inner) in [
            ("a: b", "a: b"),
            (" \n```json\n{}\n```\n", "{}\n"),
            ("~~~\na\n~~~", "a\n"),
            ("```\r\na\r\n```\r\n", "a\r\n"),
            ("```\n{}```", "{}"),
            ("````\n```\na\n```\n````", "```\na\n```\n"),
            ("```", "```"),
            ("```\n", "```"),
            ("```\na", "```\na"),
            ("a\n```\nb\n```", "a\n```\nb\n```"),
            ("```\na\n```\nb\n```", "```\na\n```\nb\n```"),
            ("```\na\n```\nmore", "```\na\n```\nmore"),
            ("```\na\n~~~", "```\na\n~~~"),
        ] {
            assert_eq!(unfenced(text), inner, "{text:?}");
        }
    }
}
