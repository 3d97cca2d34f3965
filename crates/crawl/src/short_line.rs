//! Text from outside on one short line.

use crucible_model::is_hidden;

/// At most `longest` characters that stand for `text`: what nobody sees is escaped, so that two texts that differ look
/// different, and what is cut ends in `…`.
pub(crate) fn short_line(text: &str, longest: usize) -> String {
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
    fn a_text_is_whole_or_says_that_it_is_not() {
        assert_eq!(short_line("äöü", 3), "äöü");
        assert_eq!(short_line("äöüß", 3), "äö…");
        assert_eq!(short_line("a\u{1b}[2J\u{202e}\n", 40), "a\\u{1b}[2J\\u{202e}\\u{a}");
        assert_eq!(short_line("ab\u{202e}", 9), "ab…", "an escape is whole, too");
        assert_eq!(short_line("", 3), "");
    }

    proptest! {
        #[test]
        fn no_line_is_longer_or_shows_what_is_hidden(text in any::<String>(), longest in 1usize..40) {
            let line = short_line(&text, longest);
            prop_assert!(line.chars().count() <= longest && !line.contains(is_hidden), "{line}");
        }
    }
}
