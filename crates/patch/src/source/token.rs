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
        self.text
            .first()
            .is_some_and(|byte| is_word_byte(*byte) && !byte.is_ascii_digit())
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
        out.push(Token {
            text: &masked[start..at],
            range: start..at,
            position,
        });
        position = Position::Later;
    }
    out
}

/// Takes the `r#` off names: `r#exit` is `exit`.
pub(super) fn plain_names(tokens: &mut Vec<Token<'_>>) {
    let touch = |a: &Token<'_>, b: &Token<'_>| a.range.end == b.range.start;
    let mut at = 0;
    let marks: Vec<bool> = (0..tokens.len())
        .map(|index| {
            let is_mark = |start: usize| {
                matches!(tokens.get(start..start + 3), Some([r, hash, name])
                    if r.is("r") && hash.is("#") && name.is_word() && touch(r, hash) && touch(hash, name))
            };
            is_mark(index) || index.checked_sub(1).is_some_and(is_mark)
        })
        .collect();
    tokens.retain(|_| {
        at += 1;
        !marks[at - 1]
    });
}

/// The index of the bracket that closes the one at `open`, or of the last token; `open` itself where no bracket
/// opens there.
pub(super) fn close(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text {
            b"(" | b"[" | b"{" => depth += 1,
            b")" | b"]" | b"}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    tokens.len().saturating_sub(1)
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}
