//! Words and punctuation of masked source text.

use std::ops::Range;

/// One word or one punctuation byte.
#[derive(Debug, Clone)]
pub(super) struct Token<'a> {
    pub(super) text: &'a [u8],
    pub(super) range: Range<usize>,
    pub(super) position: Position,
}

/// Where on its line a token stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    First,
    Later,
}

impl Token<'_> {
    pub(super) fn is(&self, text: &str) -> bool {
        self.text == text.as_bytes()
    }

    pub(super) fn is_word(&self) -> bool {
        self.text.first().is_some_and(|byte| is_word_byte(*byte) && !byte.is_ascii_digit())
    }

    pub(super) fn name(&self) -> String {
        String::from_utf8_lossy(self.text).into_owned()
    }
}

/// Splits masked text into tokens; white space is left out.
pub(super) fn tokens(masked: &[u8]) -> Vec<Token<'_>> {
    let mut out = Vec::new();
    let mut position = Position::First;
    let mut at = 0;
    while let Some(byte) = masked.get(at) {
        let start = at;
        if byte.is_ascii_whitespace() {
            if *byte == b'\n' {
                position = Position::First;
            }
            at += 1;
            continue;
        }
        at += 1;
        if is_word_byte(*byte) {
            while masked.get(at).is_some_and(|byte| is_word_byte(*byte)) {
                at += 1;
            }
        }
        out.push(Token { text: &masked[start..at], range: start..at, position });
        position = Position::Later;
    }
    out
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}
