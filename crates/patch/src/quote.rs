//! Names as git writes them: plain, or quoted as a C string when a plain one would be hard to read back.

/// Appends `name` (prefix included) as git does by default: quoted when it holds a control character, a quote, a
/// backslash or a byte above 0x7f.
pub(crate) fn push_quoted(out: &mut Vec<u8>, name: &str) {
    if name.bytes().all(is_plain) {
        out.extend_from_slice(name.as_bytes());
        return;
    }
    out.push(b'"');
    for byte in name.bytes() {
        let letter = match byte {
            0x07 => b'a',
            0x08 => b'b',
            b'\t' => b't',
            b'\n' => b'n',
            0x0b => b'v',
            0x0c => b'f',
            b'\r' => b'r',
            b'"' | b'\\' => byte,
            _ if is_plain(byte) => {
                out.push(byte);
                continue;
            }
            _ => {
                out.extend_from_slice(&[
                    b'\\',
                    b'0' + (byte >> 6),
                    b'0' + (byte >> 3 & 7),
                    b'0' + (byte & 7),
                ]);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', letter]);
    }
    out.push(b'"');
}

/// Reads a quoted name that begins `text`: its bytes, and what follows the closing quote.
pub(crate) fn unquote(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut rest = text.strip_prefix(b"\"")?;
    let mut name = Vec::new();
    loop {
        match rest {
            [b'"', after @ ..] => return Some((name, after)),
            [
                b'\\',
                a @ b'0'..=b'3',
                b @ b'0'..=b'7',
                c @ b'0'..=b'7',
                after @ ..,
            ] => {
                name.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = after;
            }
            [b'\\', letter, after @ ..] => {
                name.push(match letter {
                    b'a' => 0x07,
                    b'b' => 0x08,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'v' => 0x0b,
                    b'f' => 0x0c,
                    b'r' => b'\r',
                    b'"' | b'\\' => *letter,
                    _ => return None,
                });
                rest = after;
            }
            [byte, after @ ..] => {
                name.push(*byte);
                rest = after;
            }
            [] => return None,
        }
    }
}

/// Whether git writes a name unquoted that holds this byte. Bytes above 0x7f are left to the reader: git writes
/// them plain when `core.quotePath` is off.
pub(crate) fn may_stand_unquoted(byte: u8) -> bool {
    is_plain(byte) || byte >= 0x80
}

fn is_plain(byte: u8) -> bool {
    (0x20..0x7f).contains(&byte) && !matches!(byte, b'"' | b'\\')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn quoted(name: &str) -> String {
        let mut out = Vec::new();
        push_quoted(&mut out, name);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn quotes_what_git_quotes() {
        assert_eq!(quoted("a/b c.rs"), "a/b c.rs");
        assert_eq!(quoted("a/é"), "\"a/\\303\\251\"");
        assert_eq!(quoted("a/\"\n\t\x01"), "\"a/\\\"\\n\\t\\001\"");
    }

    #[test]
    fn refuses_escapes_that_git_does_not_know() {
        for bad in ["\"a", "\"\\x41\"", "\"\\400\"", "\"\\08\"", "\"\\", "a", ""] {
            assert_eq!(unquote(bad.as_bytes()), None, "{bad:?}");
        }
    }

    mod properties {
        use super::*;

        proptest! {
            #[test]
            fn what_is_quoted_reads_back(name in "[\\PC\\x00-\\x1f\"\\\\]{0,20}") {
                let text = quoted(&name);
                match unquote(text.as_bytes()) {
                    Some((bytes, rest)) => prop_assert_eq!((bytes.as_slice(), rest), (name.as_bytes(), &b""[..])),
                    None => prop_assert_eq!(text, name),
                }
            }
        }
    }
}
