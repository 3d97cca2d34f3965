//! `Key: value` lines, the form of every machine-read header in a run's Markdown files.
//!
//! Read strictly: a byte order mark and carriage returns are passed over, white space around a value is cut,
//! a key may stand once, and lines that are no key lines belong to the reader of the text, not to us.
//! Inside a fenced code block nothing is a key line: an example cannot set a header.

use std::collections::BTreeMap;

/// The key lines of a text: the first value of each known key, and the keys that stand more than once.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyLines {
    pub(crate) values: BTreeMap<String, String>,
    pub(crate) repeated: Vec<String>,
}

/// Reads every line of the form `Key: value`, where a key is letters, digits, `_`, `-`, `/` and single spaces.
pub(crate) fn read(text: &str) -> KeyLines {
    let mut lines = KeyLines::default();
    let mut fenced = false;
    for line in text.trim_start_matches('\u{feff}').lines() {
        let line = line.trim_end_matches('\r');
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        let Some((key, value)) = line.split_once(':').filter(|(key, _)| !fenced && is_key(key)) else {
            continue;
        };
        if lines.values.contains_key(key) {
            lines.repeated.push(key.to_owned());
        } else {
            lines.values.insert(key.to_owned(), value.trim().to_owned());
        }
    }
    lines
}

/// Splits a list value at commas and leaves out empty items.
pub(crate) fn list(value: &str) -> Vec<&str> {
    value.split(',').map(str::trim).filter(|item| !item.is_empty()).collect()
}

fn is_key(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && !text.ends_with(' ')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/' | ' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_keys_and_says_which_are_repeated() {
        let lines =
            read("\u{feff}Status: SIGNED\r\nGates: lite, plan_check\n```\nStop: never\n```\nStatus: DRAFT\n");
        assert_eq!(lines.values["Status"], "SIGNED");
        assert_eq!(list(&lines.values["Gates"]), ["lite", "plan_check"]);
        assert!(!lines.values.contains_key("Stop"));
        assert_eq!(lines.repeated, ["Status"]);
    }
}
