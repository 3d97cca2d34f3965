//! Finds the Base64 lines of a private key, from its end upward.
//!
//! A key whose beginning was cut off is recognisable only by its END line and the lines above it. The search
//! goes up: a Base64 token, the gap to the line above (a line break, plain or escaped, and the prefix of the
//! lines), the next token.
//!
//! Invariant: a search reads at most [`KEY_REACH`] bytes before its end and [`KEY_MARGIN`] before the first
//! byte of the match.

/// Number of bytes before its END line in which a key is searched.
pub(crate) const KEY_REACH: usize = 16 * 1024;

/// How many bytes before the first byte of a key decide that it begins there.
pub(crate) const KEY_MARGIN: usize = 128;

/// Bytes of Base64 that a whole line of a key has at least.
const FULL_LINE: usize = 40;
/// Number of lines at a key's end that may be shorter: the last line and a checksum.
const SHORT_LINES: usize = 2;
/// Bytes of a key without a whole line.
const LEAST: usize = 24;
/// Bytes that a line may begin with before its Base64: a number, a mark of a comment or of a diff.
const MAX_PREFIX_LEN: usize = 32;
/// Maximum bytes between the Base64 and the end of a line: quotes, a comma.
const MAX_SUFFIX_LEN: usize = 8;
/// Maximum distance to the end of the next token above, short lines included.
const FARTHEST: usize = 256;

/// Returns the start of the key lines that end before `end`, if any.
pub(crate) fn key_above(bytes: &[u8], end: usize) -> Option<usize> {
    let floor = end.saturating_sub(KEY_REACH);
    let (mut start, mut cursor) = (None, end);
    let (mut full, mut short, mut longest) = (false, 0, 0);
    while let Some(token) = token_above(bytes, cursor, floor) {
        let length = token.len();
        if length >= FULL_LINE {
            full = true;
        } else if full {
            // The line in which the text was cut, or a word of what stands above.
            if length >= LEAST / 2 && crate::judge::is_mixed(&bytes[token.clone()]) {
                start = Some(token.start);
            }
            break;
        } else {
            short += 1;
            if short > SHORT_LINES {
                break;
            }
        }
        longest = longest.max(length);
        (start, cursor) = (Some(token.start), token.start);
    }
    start.filter(|_| longest >= LEAST)
}

/// No match of [`key_above`] from an end at or after `settled` begins before this.
pub(crate) fn key_may_begin(bytes: &[u8], settled: usize) -> usize {
    let floor = settled.saturating_sub(KEY_REACH);
    let mut cursor = settled;
    loop {
        let mut end = cursor;
        let from = cursor.saturating_sub(FARTHEST).max(floor);
        let start = loop {
            while end > from && !is_base64(bytes[end - 1]) {
                end -= 1;
            }
            if end <= from {
                break None;
            }
            let start = token_start(bytes, end, floor);
            if end - start >= FULL_LINE {
                break Some(start);
            }
            end = start;
        };
        match start {
            Some(start) if start > floor => cursor = start,
            Some(start) => return start.saturating_sub(KEY_MARGIN),
            None => return cursor.saturating_sub(FARTHEST + KEY_MARGIN),
        }
    }
}

/// Returns the Base64 at the end of the line above the line of `below`.
fn token_above(bytes: &[u8], below: usize, floor: usize) -> Option<std::ops::Range<usize>> {
    let lowest = below.saturating_sub(MAX_PREFIX_LEN).max(floor);
    let line_end = bytes[lowest..below]
        .iter()
        .rposition(|byte| matches!(byte, b'\n' | b'\\'))?
        + lowest;
    let lowest = line_end.saturating_sub(MAX_SUFFIX_LEN).max(floor);
    let between = bytes[lowest..line_end]
        .iter()
        .rev()
        .take_while(|byte| is_between(**byte))
        .count();
    let end = line_end - between;
    let start = token_start(bytes, end, floor);
    (start < end).then_some(start..end)
}

fn token_start(bytes: &[u8], end: usize, floor: usize) -> usize {
    end - bytes[floor..end]
        .iter()
        .rev()
        .take_while(|byte| is_base64(**byte))
        .count()
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

fn is_between(byte: u8) -> bool {
    matches!(
        byte,
        b'\r' | b' ' | b'\t' | b'"' | b'\'' | b'`' | b',' | b';' | b'\\'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "q7Zt4Lm2WsR8vK1xq7Zt4Lm2WsR8vK1xq7Zt4Lm2WsR8vK1xq7Zt4Lm2WsR8vK1x";

    fn key(text: &str) -> Option<&str> {
        key_above(text.as_bytes(), text.len()).map(|start| &text[start..])
    }

    #[test]
    fn key_lines_end_at_other_text() {
        for (above, lines) in [
            ("", format!("{LINE}\n{LINE}\nab==\n")),
            ("some words\n", format!("{LINE}\r\nab==\r\n")),
            ("x = \"", format!("{LINE}\\n{LINE}\\n")),
            ("@@ -1 +1 @@\n", format!("+{LINE}\n+{LINE}\n+ab\n+=abcd\n+")),
            ("  12: ", format!("{LINE}\n  13: {LINE}\n  14: ")),
            ("cut ", format!("{}\n{LINE}\n", &LINE[..20])),
            ("", format!("{}\n", &LINE[..30])),
        ] {
            assert_eq!(
                key(&format!("{above}{lines}")),
                Some(lines.as_str()),
                "{lines}"
            );
        }
        for text in [
            "",
            "\n",
            "word\n",
            "a word\nother\nmore\n",
            "let end = text.find(\"",
        ] {
            assert_eq!(key(text), None, "{text:?}");
        }
        assert_eq!(key(LINE), None, "nothing ends the line");
    }

    #[test]
    fn a_walk_is_bounded() {
        let long = format!("{LINE}\n").repeat(1_000);
        assert!(key(&long).is_some_and(|key| key.len() <= KEY_REACH));
        assert!(
            key_may_begin(long.as_bytes(), long.len())
                >= long.len() - KEY_REACH - FARTHEST - KEY_MARGIN
        );
        assert!(key_may_begin(&[b' '; 4_000], 4_000) >= 4_000 - FARTHEST - KEY_MARGIN);
    }
}
