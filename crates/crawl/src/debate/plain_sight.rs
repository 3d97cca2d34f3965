//! Whether an answer holds a secret, hidden or not.
//!
//! JSON can spell each letter as an escape, in values and in keys, and so can text that is not quite JSON. So the escapes are
//! resolved wherever they stand in the text, before anything asks whether the text is JSON at all. Characters that nobody
//! sees are left out, for they fall out of what is shown later, too.

use std::borrow::Cow;

use crucible_model::is_hidden;
use crucible_secrets::Scanner;

/// Whether there is a secret in `text`, as it stands or behind one level of JSON's escapes.
pub(super) fn holds_secret(text: &str) -> bool {
    let scanner = Scanner::builtin();
    let finds = |text: &str| !scanner.scan(text.as_bytes()).is_empty();
    finds(text)
        || match plain(text) {
            Cow::Borrowed(_) => false,
            Cow::Owned(plain) => finds(&plain),
        }
}

/// The text without escapes and hidden characters; whitespace stays.
fn plain(text: &str) -> Cow<'_, str> {
    let is_left_out = |c: char| is_hidden(c) && !c.is_whitespace();
    if !text.contains('\\') && !text.contains(is_left_out) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let (c, length) = if c == '\\' { escaped(rest) } else { (c, c.len_utf8()) };
        if !is_left_out(c) {
            plain.push(c);
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    Cow::Owned(plain)
}

/// What the escape at the beginning of `text` stands for, and its length in bytes. What is no escape stands for its
/// backslash; half of a pair stands for a character of its own, because no secret is made of those.
fn escaped(text: &str) -> (char, usize) {
    let code = |digits: &str| u32::from_str_radix(digits, 16).ok();
    match text.as_bytes().get(1) {
        Some(b'n') => ('\n', 2),
        Some(b'r') => ('\r', 2),
        Some(b't') => ('\t', 2),
        Some(sign @ (b'"' | b'\\' | b'/')) => (char::from(*sign), 2),
        Some(b'u') => match text.get(2..6).and_then(code) {
            Some(code) => (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 6),
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
        text.chars().map(|c| format!("\\u{:04X}", u32::from(c))).collect()
    }

    #[test]
    fn a_secret_is_seen_however_it_is_spelled_and_wherever_it_stands() {
        let all = spelled(&made_up_token());
        let hidden = made_up_token().replacen('h', "h\u{200b}", 1);
        let hidden_by_escape = made_up_token().replacen('h', "h\\u200b", 1);
        for form in
            [made_up_token(), all, made_up_token().replacen('g', "\\u0067", 1), hidden, hidden_by_escape]
        {
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
        let key = format!("-----BEGIN {0}-----\n{1}\n-----END {0}-----", "PRIVATE KEY", "A1b2".repeat(16));
        assert!(holds_secret(&key) && holds_secret(&spelled(&key)));
        for harmless in
            ["", "\\", "\\u", "\\u00", "\\ud800", "\\uD83D\\uDE00", "{\"a\":\"\\u0067\"}", "gh\\np_x"]
        {
            assert!(!holds_secret(harmless), "{harmless}");
        }
    }

    mod properties {
        use super::*;

        proptest! {
            /// What serde makes of a text is what is scanned.
            #[test]
            fn a_text_of_json_reads_as_its_reader_reads_it(text in "[ -~\\n\\t\u{e4}\u{4e00}]{0,40}") {
                let json = Value::from(text.as_str()).to_string();
                prop_assert_eq!(plain(&json).into_owned(), format!("\"{text}\""));
                prop_assert_eq!(plain(&spelled(&text)).into_owned(), text);
            }
        }
    }
}
