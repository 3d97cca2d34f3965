//! Lines that fit into columns. No character that a reader sees as one is cut.

use ratatui::text::Span;
use unicode_segmentation::UnicodeSegmentation;

/// The number of columns of a text.
fn columns(text: &str) -> usize {
    Span::raw(text).width()
}

/// Splits a line into pieces of at most `width` columns: between words where a word fits, else between characters. A
/// character that is wider has its own piece.
pub(super) fn wrapped(line: &str, width: u16) -> Vec<String> {
    let most = usize::from(width).max(1);
    let (mut pieces, mut piece, mut used) = (Vec::new(), String::new(), 0);
    for word in line.split_word_bounds() {
        let wide = columns(word);
        if used + wide <= most {
            piece.push_str(word);
            used += wide;
            continue;
        }
        // Only what fits on no line is split.
        if wide <= most && !piece.is_empty() {
            pieces.push(std::mem::take(&mut piece));
            piece.push_str(word);
            used = wide;
            continue;
        }
        for character in word.graphemes(true) {
            let wide = columns(character);
            if used + wide > most && !piece.is_empty() {
                pieces.push(std::mem::take(&mut piece));
                used = 0;
            }
            piece.push_str(character);
            used += wide;
        }
    }
    pieces.push(piece);
    pieces
}

/// Shortens a line to `width` columns; an ellipsis says that something is missing.
pub(super) fn fitted(line: &str, width: usize) -> String {
    if columns(line) <= width {
        return line.to_owned();
    }
    let mut text = String::new();
    let mut used = 0;
    for character in line.graphemes(true) {
        let wide = columns(character);
        // The ellipsis takes one column.
        if used + wide + 1 > width {
            break;
        }
        text.push_str(character);
        used += wide;
    }
    if width > 0 {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words_and_lose_nothing() {
        let pieces = |line: &str, width| wrapped(line, width);
        assert_eq!(pieces("", 5), [""]);
        assert_eq!(pieces("one two three", 8), ["one two ", "three"]);
        assert_eq!(pieces("abcdefgh", 3), ["abc", "def", "gh"]);
        // Two columns each, a flag of two code points, and a letter with its accent.
        assert_eq!(pieces("漢字", 1), ["漢", "字"]);
        assert_eq!(pieces("🇩🇪🇫🇷", 2), ["🇩🇪", "🇫🇷"]);
        assert_eq!(pieces("ae\u{301}", 1), ["a", "e\u{301}"]);
        for width in 1..9 {
            let line = "a long — lïne 漢字 of words-and-more";
            assert_eq!(wrapped(line, width).concat(), line);
        }
    }

    #[test]
    fn short_lines_say_that_something_is_missing() {
        assert_eq!(fitted("abc", 3), "abc");
        assert_eq!(fitted("abcd", 3), "ab…");
        assert_eq!(fitted("漢字漢", 4), "漢…");
        assert_eq!(fitted("e\u{301}e\u{301}e\u{301}", 2), "e\u{301}…");
        assert_eq!(
            (fitted("ab", 1), fitted("ab", 0)),
            ("…".to_owned(), String::new())
        );
    }
}
