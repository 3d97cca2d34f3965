//! Escapes the characters of a text that are not visible.
//!
//! File names, goals, gates and models may hold characters that a terminal acts upon, that turn the direction of text,
//! or that nobody sees. JSON has escapes of its own, so that a program reads the same text. Only printed text is
//! escaped, never a file.

use std::fmt::Write;

use serde::Serialize;

use crate::failure::Failure;
use crate::text::is_hidden;

/// Escapes a text for people. Newlines and tabs stay.
#[must_use]
pub fn escaped(text: &str) -> String {
    let stays = |c: char| matches!(c, '\n' | '\t') || !is_hidden(c);
    rewritten(text, stays, |c, safe| safe.extend(c.escape_default()))
}

/// Escapes a text for people that must stay on one line, such as a name or a goal.
#[must_use]
pub fn one_line(text: &str) -> String {
    rewritten(
        text,
        |c| !is_hidden(c),
        |c, safe| safe.extend(c.escape_default()),
    )
}

/// Escapes a JSON document and keeps its value. Outside of strings JSON is ASCII, so JSON's escapes are valid wherever
/// another character occurs.
#[must_use]
pub fn escaped_json(document: &str) -> String {
    let stays = |c: char| (c.is_ascii() && c != '\u{7f}') || !is_hidden(c);
    rewritten(document, stays, |c, safe| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _a_string_takes_it = write!(safe, "\\u{unit:04x}");
        }
    })
}

/// Returns the JSON document of a result, indented and escaped, without a final newline. Every command and every tool
/// prints this form, so the same result has the same bytes.
///
/// # Errors
///
/// Fails if the value has no JSON form.
pub fn json_document<T: Serialize>(value: &T) -> Result<String, Failure> {
    serde_json::to_string_pretty(value)
        .map(|text| escaped_json(&text))
        .map_err(|error| Failure::refused(format!("the result has no JSON form: {error}")))
}

fn rewritten(
    text: &str,
    stays: impl Fn(char) -> bool,
    escape: impl Fn(char, &mut String),
) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if stays(c) {
            safe.push(c);
        } else {
            escape(c, &mut safe);
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\u{1b}[2J\u{7f}\u{85}\u{9b}31m\u{202e}\u{2028}\u{e0041}\nb\tc";

    #[test]
    fn invisible_characters_are_escaped() {
        let seen = "a\\u{1b}[2J\\u{7f}\\u{85}\\u{9b}31m\\u{202e}\\u{2028}\\u{e0041}";
        assert_eq!(escaped(HOSTILE), format!("{seen}\nb\tc"));
        assert_eq!(one_line(HOSTILE), format!("{seen}\\nb\\tc"));
        let plain = "zażółć 漢字 नमस्ते می\u{200c}خواهم 👩\u{200d}👧 \u{a0}";
        assert_eq!(escaped(plain), plain);
        assert_eq!(escaped(&escaped(HOSTILE)), escaped(HOSTILE));
    }

    #[test]
    fn a_document_keeps_its_value_and_its_shape() {
        let value = serde_json::json!({ HOSTILE: [HOSTILE, "👩\u{200d}👧"] });
        for document in [
            value.to_string(),
            serde_json::to_string_pretty(&value).unwrap(),
        ] {
            let safe = escaped_json(&document);
            assert_eq!(
                serde_json::from_str::<serde_json::Value>(&safe).unwrap(),
                value
            );
            assert!(!safe.chars().any(|c| c != '\n' && is_hidden(c)), "{safe:?}");
            assert_eq!(safe.lines().count(), document.lines().count());
        }
    }
}
