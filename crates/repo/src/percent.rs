//! Percent-encoding of names from outside: into addresses and into paths of GitHub's interface.

use std::fmt::Write;

/// Whether a `/` separates parts or is one more character of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slash {
    Separates,
    IsEncoded,
}

/// Percent-encodes everything except letters, digits, `-`, `.`, `_` and `~`, so that a colon is not a scheme and
/// braces are not a placeholder.
pub(crate) fn encode(bytes: &[u8], slash: Slash) -> String {
    let is_kept = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || b"-._~".contains(&byte)
            || (byte == b'/' && slash == Slash::Separates)
    };
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len()), |mut text, byte| {
            if is_kept(*byte) {
                text.push(char::from(*byte));
            } else {
                let _never_fails = write!(text, "%{byte:02X}");
            }
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slash_is_encoded_unless_separator() {
        assert_eq!(
            encode("a/é ~{x}".as_bytes(), Slash::Separates),
            "a/%C3%A9%20~%7Bx%7D"
        );
        assert_eq!(encode(b"a/b", Slash::IsEncoded), "a%2Fb");
    }
}
