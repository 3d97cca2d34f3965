//! Characters that are not seen as themselves, white space, and length: what everyone who shows text from outside asks about it.

/// Whether a character is not seen as itself: control characters (C0, DEL, C1), marks and overrides of direction, line
/// separators, and characters without a width that stand for nothing. Joiners are none of them: words and signs of many
/// scripts need them.
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

/// Whether a text holds nothing that anybody could read: it is empty, or made of white space, hidden characters and joiners, which
/// mean something between other characters alone.
#[must_use]
pub fn says_nothing(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || is_hidden(c) || matches!(c, '\u{200c}' | '\u{200d}'))
}

/// The text on one line: every run of white space, newlines included, becomes one space, and none stands at the ends.
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

/// At most `longest` characters that stand for `text`: what nobody sees is escaped, so that two texts that differ look
/// different, and what is cut ends in `…`.
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
    fn what_nobody_sees_is_hidden_and_what_scripts_need_is_not() {
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
    fn a_text_says_something_as_soon_as_one_character_can_be_read() {
        for nothing in ["", " \n\t\r", "\u{a0}\u{3000}", "\u{200b}\u{feff}\u{202e}\u{0}", "\u{200c} \u{200d}"]
        {
            assert!(says_nothing(nothing), "{nothing:?}");
        }
        for something in ["0", " .", "\u{200d}x", "\u{645}\u{6cc}\u{200c}\u{631}", "\u{1f6d1}"] {
            assert!(!says_nothing(something), "{something:?}");
        }
    }

    #[test]
    fn white_space_of_any_kind_becomes_one_space() {
        assert_eq!(single_spaced(" a\r\n\tb \u{a0}c\u{2028}d  "), "a b c d");
        assert_eq!(single_spaced(" \n "), "");
    }

    #[test]
    fn a_text_is_whole_or_says_that_it_is_not() {
        assert_eq!(short_line("äöü", 3), "äöü");
        assert_eq!(short_line("äöüß", 3), "äö…");
        assert_eq!(short_line("a\u{1b}[2J\u{202e}\n", 40), "a\\u{1b}[2J\\u{202e}\\u{a}");
        assert_eq!(short_line("ab\u{202e}", 9), "ab…", "an escape is whole, too");
        assert_eq!(short_line("", 3), "");
    }

    mod properties {
        use super::*;

        proptest! {
            #[test]
            fn no_line_is_longer_or_shows_what_is_hidden(text in any::<String>(), longest in 1usize..40) {
                let line = short_line(&text, longest);
                prop_assert!(line.chars().count() <= longest && !line.contains(is_hidden), "{line}");
            }
        }
    }
}
