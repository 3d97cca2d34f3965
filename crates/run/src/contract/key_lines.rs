//! `Key: value` lines, the form of every machine-read header in a run's Markdown files.
//!
//! A key line begins in the first column with its key and ends with the line; comments after a value do not
//! exist. A leading byte order mark is skipped, a line may end in `\r\n`, and white space around a value is
//! trimmed. A fenced code block has no key lines, so an example cannot set a header. A caller that names the keys
//! of a document also learns of lines that only look like one of them, of characters that nobody
//! sees, and of lines and texts that are too long: a reader of the text must see what we read. Linear in the
//! text.

use std::collections::BTreeMap;
use std::fmt;

use crucible_model::{CodeFence, is_hidden};

/// The longest line that is read, in bytes.
pub(crate) const MAX_LINE: usize = 64 * 1024;
/// The longest text that is read, in bytes.
pub(crate) const MAX_TEXT: usize = 1024 * 1024;
/// No key is longer, in characters.
const MAX_KEY: usize = 64;
/// Maximum number of errors of one text that are reported one by one.
const MAX_FAULTS: usize = 20;

/// The key lines of a text: the first value of each key, duplicate keys, and errors in lines.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyLines {
    pub(crate) values: BTreeMap<String, String>,
    pub(crate) repeated: Vec<String>,
    pub(crate) faults: Vec<Fault>,
}

/// The keys of a document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keys {
    /// Every key that means something.
    pub(crate) known: &'static [&'static str],
    /// Keys with free text for people. No decision uses their values, so they may have any characters.
    pub(crate) free: &'static [&'static str],
}

/// What is wrong with a line, counted from 1, or with the text as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The text is too long to be read at all.
    LongText,
    /// The line is too long.
    LongLine { line: u64 },
    /// The line has a hidden character.
    Hidden { line: u64, character: char },
    /// A fenced block begins in this line and never ends.
    OpenFence { line: u64 },
    /// The line resembles one with this key, but is not.
    Misspelt { line: u64, key: &'static str },
}

impl Fault {
    /// Where it is.
    pub(crate) fn place(&self) -> String {
        match self {
            Self::LongText => "the text".to_owned(),
            Self::LongLine { line }
            | Self::Hidden { line, .. }
            | Self::OpenFence { line }
            | Self::Misspelt { line, .. } => format!("line {line}"),
        }
    }
}

/// What to do about it, one sentence.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LongText => write!(f, "Write at most {MAX_TEXT} bytes."),
            Self::LongLine { .. } => write!(f, "Write lines of at most {MAX_LINE} bytes."),
            Self::Hidden { character, .. } => {
                write!(
                    f,
                    "Remove the invisible character U+{:04X}.",
                    u32::from(*character)
                )
            }
            Self::OpenFence { .. } => {
                f.write_str("Close the code block that begins here; it swallows all text after it.")
            }
            Self::Misspelt { key, .. } => {
                write!(
                    f,
                    "Begin the line with exactly `{key}:`, without leading space."
                )
            }
        }
    }
}

/// Parses every line of the form `Key: value`. A key has letters, digits, `_`, `-`, `/` and single spaces.
pub(crate) fn read(text: &str) -> KeyLines {
    read_keys(
        text,
        Keys {
            known: &[],
            free: &[],
        },
        1,
    )
}

/// Reads the key lines of a document with these keys; its first line has this number. Lines that are not key lines belong
/// to the reader of the text, not to us.
pub(crate) fn read_keys(text: &str, keys: Keys, first: u64) -> KeyLines {
    let mut lines = KeyLines::default();
    if text.len() > MAX_TEXT {
        lines.faults.push(Fault::LongText);
        return lines;
    }
    let mut fences = Fences::default();
    for (line, number) in strip_bom(text).lines().zip(first..) {
        let is_open = fences.is_open_text(line, number);
        let pair = line
            .split_once(':')
            .filter(|(key, _)| is_open && is_key(key));
        if !keys.known.is_empty() {
            let fault = fault_of(line, number, is_open, pair.map(|(key, _)| key), keys);
            lines
                .faults
                .extend(fault.filter(|_| lines.faults.len() < MAX_FAULTS));
        }
        let Some((key, value)) = pair else { continue };
        if lines.values.contains_key(key) {
            lines.repeated.push(key.to_owned());
        } else {
            lines.values.insert(key.to_owned(), value.trim().to_owned());
        }
    }
    if let Some(line) = fences.begun().filter(|_| !keys.known.is_empty()) {
        lines.faults.push(Fault::OpenFence { line });
    }
    lines
}

/// Returns the lines of a text outside fenced code: the line number from 1, the offset, and the line.
pub(crate) fn open_lines(text: &str) -> impl Iterator<Item = (u64, usize, &str)> {
    let mut fences = Fences::default();
    let text_itself = strip_bom(text);
    let mut at = text.len() - text_itself.len();
    let lines = text_itself
        .split_inclusive('\n')
        .zip(1..)
        .map(move |(line, number)| {
            let from = at;
            at += line.len();
            let line = line.strip_suffix('\n').unwrap_or(line);
            (number, from, line.strip_suffix('\r').unwrap_or(line))
        });
    lines.filter(move |(number, _, line)| fences.is_open_text(line, *number))
}

/// Splits a list value at commas and leaves out empty items.
pub(crate) fn list(value: &str) -> Vec<&str> {
    value
        .split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
        .collect()
}

/// Splits a list of paths at commas, like [`list`]. A path with a comma is quoted, with `\"` for a quotation
/// mark and `\\` for a backslash. An incompletely quoted item is read as written.
pub(crate) fn paths(value: &str) -> Vec<String> {
    path_items(value)
        .into_iter()
        .filter(|item| !item.is_empty())
        .collect()
}

/// Returns whether a list of paths has an empty item.
pub(crate) fn paths_have_empty_item(value: &str) -> bool {
    path_items(value).iter().any(String::is_empty)
}

/// Returns the items of a list of paths, empty ones included.
fn path_items(value: &str) -> Vec<String> {
    let mut items = Vec::new();
    let mut next = Some(value.trim()).filter(|value| !value.is_empty());
    while let Some(rest) = next {
        let rest = rest.trim_start();
        let plain = || {
            let (item, behind) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
            (item.trim_end().to_owned(), behind)
        };
        let (item, behind) = unquoted(rest).unwrap_or_else(plain);
        items.push(item);
        next = behind.strip_prefix(',');
    }
    items
}

/// A path as [`paths`] reads it back.
pub(crate) fn quote_path(path: &str) -> String {
    let is_plain = !path.contains(',') && !path.starts_with('"') && path.trim() == path;
    if is_plain {
        return path.to_owned();
    }
    format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Returns the quoted item at the start of a text and the rest: nothing, or a comma and the next item.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut item = String::new();
    let mut characters = text.strip_prefix('"')?.chars();
    loop {
        match characters.next()? {
            '\\' => item.push(characters.next().filter(|c| matches!(c, '"' | '\\'))?),
            '"' => break,
            other => item.push(other),
        }
    }
    let rest = characters.as_str().trim_start();
    (rest.is_empty() || rest.starts_with(',')).then_some((item, rest))
}

/// Returns whether a list value has an empty item: `a,,b` or `a,`.
pub(crate) fn has_empty_item(value: &str) -> bool {
    !value.is_empty() && value.split(',').any(|item| item.trim().is_empty())
}

/// Returns a text without a leading byte order mark.
pub(crate) fn strip_bom(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// The first fault of a line.
fn fault_of(
    line: &str,
    number: u64,
    is_open: bool,
    key: Option<&str>,
    keys: Keys,
) -> Option<Fault> {
    let exact = key.filter(|key| keys.known.contains(key));
    if exact.is_some_and(|key| keys.free.contains(&key)) {
        return None;
    }
    if line.len() > MAX_LINE {
        return Some(Fault::LongLine { line: number });
    }
    if exact.is_none()
        && is_open
        && let Some((head, _)) = line.split_once(':')
        && let Some(key) = seen_as(head, keys)
    {
        return Some(Fault::Misspelt { line: number, key });
    }
    let is_bad = |c: &char| match exact {
        Some(_) => is_hidden(*c) && *c != '\t',
        None => c.is_control() && *c != '\t',
    };
    line.chars().find(is_bad).map(|character| Fault::Hidden {
        line: number,
        character,
    })
}

/// Returns the key that a person would read in `head`, ignoring case, spaces and invisible characters.
fn seen_as(head: &str, keys: Keys) -> Option<&'static str> {
    let is_seen =
        |c: &char| !c.is_whitespace() && !is_hidden(*c) && !matches!(c, '\u{200c}' | '\u{200d}');
    let seen: String = head.chars().filter(is_seen).take(MAX_KEY).collect();
    keys.known
        .iter()
        .copied()
        .find(|known| known.eq_ignore_ascii_case(&seen))
}

fn is_key(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && !text.ends_with(' ')
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/' | ' '))
}

/// Follows the fenced code blocks of a text from line to line.
#[derive(Debug, Default)]
struct Fences<'t> {
    open: Option<(CodeFence<'t>, u64)>,
}

impl<'t> Fences<'t> {
    /// Whether the line is neither a fence nor inside of a fenced block.
    fn is_open_text(&mut self, line: &'t str, number: u64) -> bool {
        match (self.open, CodeFence::parse(line)) {
            (None, None) => return true,
            (None, Some(found)) => self.open = Some((found, number)),
            (Some((open, _)), Some(found)) if open.is_closed_by(found) => self.open = None,
            (Some(_), _) => {}
        }
        false
    }

    /// The line in which a block began that has not ended.
    fn begun(&self) -> Option<u64> {
        self.open.map(|(_, line)| line)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEYS: Keys = Keys {
        known: &["Status", "Gates", "Goal", "Stop"],
        free: &["Goal"],
    };

    fn faults(text: &str) -> Vec<Fault> {
        read_keys(text, KEYS, 1).faults
    }

    #[test]
    fn repeated_keys_are_reported() {
        let lines = read(
            "\u{feff}Status: SIGNED\r\nGates: lite, plan_check\n```\nStop: never\n```\nStatus: DRAFT\n",
        );
        assert_eq!(lines.values["Status"], "SIGNED");
        assert_eq!(list(&lines.values["Gates"]), ["lite", "plan_check"]);
        assert!(!lines.values.contains_key("Stop"));
        assert_eq!(lines.repeated, ["Status"]);
    }

    #[test]
    fn code_of_both_kinds_holds_no_key() {
        for (fenced, is_code) in [
            ("```\nStop: x\n```\n", true),
            ("~~~ text\nStop: x\n~~~\n", true),
            ("   ````\nStop: x\n````\n", true),
            ("````\n```\nStop: x\n````\n", true),
            ("```\n~~~\nStop: x\n```\n", true),
            ("```\n``` x\nStop: x\n```\n", true),
            ("    ```\nStop: x\n", false),
            ("``\nStop: x\n", false),
            ("```a`b\nStop: x\n", false),
            ("```\nx\n```\nStop: x\n", false),
        ] {
            let lines = read_keys(fenced, KEYS, 1);
            assert_eq!(lines.values.contains_key("Stop"), !is_code, "{fenced:?}");
            assert_eq!(lines.faults, [], "{fenced:?}");
        }
        assert_eq!(
            faults("Status: x\n```\nStop: x\n"),
            [Fault::OpenFence { line: 2 }]
        );
    }

    #[test]
    fn misspelt_key_is_reported() {
        for text in [
            "status: x",
            "STATUS: x",
            " Status: x",
            "\tStatus: x",
            "Status : x",
            "Status\u{a0}: x",
            "\u{feff}\u{feff}Status: x",
            "Sta\u{200b}tus: x",
            "\u{202e}Status\u{200d}: x",
            "\0Status: x",
        ] {
            let lines = read_keys(text, KEYS, 1);
            assert_eq!(
                lines.faults,
                [Fault::Misspelt {
                    line: 1,
                    key: "Status"
                }],
                "{text:?}"
            );
            assert!(!lines.values.contains_key("Status"), "{text:?}");
        }
        assert_eq!(
            faults("Remark: x\nof the Status: x\n- Status: x\n```\n status: x\n```\n"),
            []
        );
    }

    #[test]
    fn hidden_characters_are_reported_except_in_free_text() {
        let hidden = |line, character| Fault::Hidden { line, character };
        assert_eq!(faults("Status: x\0y\n"), [hidden(1, '\0')]);
        assert_eq!(faults("Status: x\r\r\n"), [hidden(1, '\r')]);
        assert_eq!(faults("x\nStatus: \u{202e}x\n"), [hidden(2, '\u{202e}')]);
        assert_eq!(faults("plain \u{1b}[2J\n"), [hidden(1, '\u{1b}')]);
        assert_eq!(faults("```\n\u{8}\n```\n"), [hidden(2, '\u{8}')]);
        assert_eq!(
            faults("Goal: \u{1b}\u{202e}\nplain \u{202e}\nStatus:\tx\r\n"),
            []
        );
    }

    #[test]
    fn long_lines_are_reported_not_cut() {
        let line = format!("Status: {}\n", "x".repeat(MAX_LINE));
        assert_eq!(faults(&line), [Fault::LongLine { line: 1 }]);
        assert_eq!(faults(&line[9..]), []);
        assert_eq!(
            faults(&"Status: x\n".repeat(MAX_TEXT / 10 + 1)),
            [Fault::LongText]
        );
        assert_eq!(faults(&"\0\n".repeat(1000)).len(), MAX_FAULTS);
    }

    #[test]
    fn value_extends_to_the_end_of_line() {
        let lines = read_keys("Status: SIGNED # not yet\nGates:\nStop: a: b\n", KEYS, 1);
        assert_eq!(lines.values["Status"], "SIGNED # not yet");
        assert_eq!(lines.values["Gates"], "");
        assert_eq!(lines.values["Stop"], "a: b");
    }

    #[test]
    fn empty_item_is_a_gap() {
        for path in [
            "a b",
            "add, tests/add.py",
            "\"x",
            "a\\, \"b\"",
            "a\"b",
            "a\\b",
            ",",
        ] {
            assert_eq!(
                paths(&format!("src, {}, b", quote_path(path))),
                ["src", path, "b"]
            );
            assert!(!paths_have_empty_item(&quote_path(path)));
        }
        assert_eq!(
            paths("\"open, a, \"b\"c, \"d\" ,"),
            ["\"open", "a", "\"b\"c", "d"]
        );
        assert!(
            paths_have_empty_item("a,")
                && paths_have_empty_item(",")
                && paths_have_empty_item("a, ,b")
                && paths_have_empty_item("\"\"")
        );
        assert!(
            !paths_have_empty_item("")
                && !paths_have_empty_item("a")
                && !paths_have_empty_item("a, b")
        );
        assert!(has_empty_item("a,") && has_empty_item(",") && has_empty_item("a, ,b"));
        assert!(!has_empty_item("") && !has_empty_item("a") && !has_empty_item("a, b"));
    }

    mod properties {
        use super::*;

        proptest! {
            #[test]
            fn key_is_set_once_from_line_start(text in "(?s).{0,200}|([ `~]{0,4}(Status|Stop): ?[a-z]?\r?\n){0,8}") {
                let lines = read_keys(&text, KEYS, 1);
                for (key, value) in &lines.values {
                    let head = format!("{key}:");
                    let begins = strip_bom(&text).lines().any(|line| line.starts_with(&head));
                    prop_assert!(begins);
                    prop_assert!(!value.contains('\n'));
                }
            }
        }
    }
}
