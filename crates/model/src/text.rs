//! Hidden characters, white space and length of untrusted text.

/// Returns whether a character is invisible or misleading: control characters (C0, DEL, C1), direction marks
/// and overrides, line separators, and zero-width characters without meaning. Joiners are not hidden, because
/// many scripts need them.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// Returns whether a text has nothing to read: it is empty or has only white space, hidden characters and
/// joiners.
#[must_use]
pub fn says_nothing(text: &str) -> bool {
    text.chars()
        .all(|c| c.is_whitespace() || is_hidden(c) || matches!(c, '\u{200c}' | '\u{200d}'))
}

/// Returns the text on one line: each run of white space becomes one space, and the ends are trimmed.
#[must_use]
pub fn single_spaced(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// Returns at most `longest` characters of `text`. Hidden characters are escaped, so that different texts
/// look different. A cut text ends in `…`.
#[must_use]
pub fn short_line(text: &str, longest: usize) -> String {
    let mut line = String::new();
    let (mut count, mut end) = (0, 0);
    for c in text.chars() {
        let from = line.len();
        if is_hidden(c) {
            line.extend(c.escape_unicode());
        } else {
            line.push(c);
        }
        count += line.get(from..).unwrap_or_default().chars().count();
        if count > longest {
            line.truncate(end);
            line.push('…');
            break;
        }
        if count < longest {
            end = line.len();
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn joiners_are_not_hidden_characters() {
        for c in
            "\u{0}\n\u{1b}\u{7f}\u{9b}\u{ad}\u{200b}\u{200e}\u{2028}\u{202e}\u{2066}\u{feff}\u{e0041}".chars()
        {
            assert!(is_hidden(c), "{c:?}");
        }
        for c in "a ż漢\u{200c}\u{200d}\u{a0}".chars() {
            assert!(!is_hidden(c), "{c:?}");
        }
    }

    #[test]
    fn one_visible_character_is_not_empty() {
        for nothing in [
            "",
            " \n\t\r",
            "\u{a0}\u{3000}",
            "\u{200b}\u{feff}\u{202e}\u{0}",
            "\u{200c} \u{200d}",
        ] {
            assert!(says_nothing(nothing), "{nothing:?}");
        }
        for something in [
            "0",
            " .",
            "\u{200d}x",
            "\u{645}\u{6cc}\u{200c}\u{631}",
            "\u{1f6d1}",
        ] {
            assert!(!says_nothing(something), "{something:?}");
        }
    }

    #[test]
    fn white_space_of_any_kind_becomes_one_space() {
        assert_eq!(single_spaced(" a\r\n\tb \u{a0}c\u{2028}d  "), "a b c d");
        assert_eq!(single_spaced(" \n "), "");
    }

    #[test]
    fn cut_text_is_marked() {
        assert_eq!(short_line("äöü", 3), "äöü");
        assert_eq!(short_line("äöüß", 3), "äö…");
        assert_eq!(
            short_line("a\u{1b}[2J\u{202e}\n", 40),
            "a\\u{1b}[2J\\u{202e}\\u{a}"
        );
        assert_eq!(
            short_line("ab\u{202e}", 9),
            "ab…",
            "an escape is whole, too"
        );
        assert_eq!(short_line("", 3), "");
    }

    mod properties {
        use super::*;

        proptest! {
            #[test]
            fn short_line_is_bounded_and_escaped(text in any::<String>(), longest in 1usize..40) {
                let line = short_line(&text, longest);
                prop_assert!(line.chars().count() <= longest && !line.contains(is_hidden), "{line}");
            }
        }
    }
}
