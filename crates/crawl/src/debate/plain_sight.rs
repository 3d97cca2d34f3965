//! Detects a secret in an answer, plain or escaped.
//!
//! JSON can write each letter as an escape, in values and in keys, and so can text that is not quite
//! JSON. So escapes are resolved everywhere in the text, before it is parsed as JSON. Invisible
//! characters are removed, because they are also removed when the text is shown.

use std::borrow::Cow;

use crucible_model::is_hidden;
use crucible_secrets::Scanner;

/// Whether `text` contains a secret, as it is or behind one level of JSON escapes.
pub(super) fn holds_secret(text: &str) -> bool {
    let scanner = Scanner::builtin();
    let finds = |text: &str| !scanner.scan(text.as_bytes()).is_empty();
    finds(text)
        || match plain(text) {
            Cow::Borrowed(_) => false,
            Cow::Owned(plain) => finds(&plain),
        }
}

/// The text without escapes and invisible characters; white space is kept.
fn plain(text: &str) -> Cow<'_, str> {
    let is_left_out = |c: char| is_hidden(c) && !c.is_whitespace();
    if !text.contains('\\') && !text.contains(is_left_out) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let (c, length) = if c == '\\' {
            escaped(rest)
        } else {
            (c, c.len_utf8())
        };
        if !is_left_out(c) {
            plain.push(c);
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    Cow::Owned(plain)
}

/// The character of the escape at the beginning of `text`, and its length in bytes. An invalid escape gives
/// its backslash; half of a surrogate pair gives a single character, because secrets do not contain such
/// characters.
fn escaped(text: &str) -> (char, usize) {
    let code = |digits: &str| u32::from_str_radix(digits, 16).ok();
    match text.as_bytes().get(1) {
        Some(b'n') => ('\n', 2),
        Some(b'r') => ('\r', 2),
        Some(b't') => ('\t', 2),
        Some(sign @ (b'"' | b'\\' | b'/')) => (char::from(*sign), 2),
        Some(b'u') => match text.get(2..6).and_then(code) {
            Some(code) => (
                char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
                6,
            ),
            None => ('\\', 1),
        },
        _ => ('\\', 1),
    }
}

#[cfg(test)]
mod tests {
    use crucible_testkit::made_up_token;
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn spelled(text: &str) -> String {
        text.chars()
            .map(|c| format!("\\u{:04X}", u32::from(c)))
            .collect()
    }

    #[test]
    fn escaped_secret_is_found_anywhere() {
        let all = spelled(&made_up_token());
        let hidden = made_up_token().replacen('h', "h\u{200b}", 1);
        let hidden_by_escape = made_up_token().replacen('h', "h\\u200b", 1);
        for form in [
            made_up_token(),
            all,
            made_up_token().replacen('g', "\\u0067", 1),
            hidden,
            hidden_by_escape,
        ] {
            for text in [
                format!(r#"{{"a":"{form}"}}"#),
                format!(r#"{{"{form}":1}}"#),
                format!(r#"{{"a":"{form}","a":1}}"#),
                format!(r#"{{"a":"{form}"#),
                format!("no JSON, {form}"),
            ] {
                assert!(holds_secret(&text), "{text}");
            }
        }
        let key = format!(
            "-----BEGIN {0}-----\n{1}\n-----END {0}-----",
            "PRIVATE KEY",
            "A1b2".repeat(16)
        );
        assert!(holds_secret(&key) && holds_secret(&spelled(&key)));
        for harmless in [
            "",
            "\\",
            "\\u",
            "\\u00",
            "\\ud800",
            "\\uD83D\\uDE00",
            "{\"a\":\"\\u0067\"}",
            "gh\\np_x",
        ] {
            assert!(!holds_secret(harmless), "{harmless}");
        }
    }

    mod properties {
        use super::*;

        proptest! {
            /// The scanned text equals the text that serde parses.
            #[test]
            fn unescaped_text_matches_serde(text in "[ -~\\n\\t\u{e4}\u{4e00}]{0,40}") {
                let json = Value::from(text.as_str()).to_string();
                prop_assert_eq!(plain(&json).into_owned(), format!("\"{text}\""));
                prop_assert_eq!(plain(&spelled(&text)).into_owned(), text);
            }
        }
    }
}
