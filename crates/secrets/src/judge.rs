//! Checks of a candidate that a regex cannot express: its randomness, whether it is a placeholder, what
//! precedes it.
//!
//! Invariant: a result depends only on the given bytes and on at most 96 bytes before a position.

/// Returns the Shannon entropy in bits per byte; 0 for no bytes and for one repeated byte.
pub(crate) fn entropy(bytes: &[u8]) -> f32 {
    let mut counts = [0_u32; 256];
    for &byte in bytes {
        counts[usize::from(byte)] += 1;
    }
    let total = bytes.len() as f32;
    counts
        .iter()
        .filter(|&&count| count > 0)
        .map(|&count| {
            let share = count as f32 / total;
            -share * share.log2()
        })
        .sum()
}

/// Returns whether a run of at least eight letters and digits has two of each and alternates at least twice.
/// Words, numbers and words followed by a number do not.
pub(crate) fn is_mixed(bytes: &[u8]) -> bool {
    bytes
        .split(|byte| !byte.is_ascii_alphanumeric())
        .any(|run| {
            let digits = run.iter().filter(|byte| byte.is_ascii_digit()).count();
            let changes = run
                .windows(2)
                .filter(|two| two[0].is_ascii_digit() != two[1].is_ascii_digit())
                .count();
            run.len() >= 8 && digits >= 2 && run.len() - digits >= 2 && changes >= 2
        })
}

/// Returns whether the text is a placeholder: `EXAMPLE`, `your-key`, `xxxxx`, `${VAR}`, `<token>`,
/// `password`.
pub(crate) fn is_placeholder(bytes: &[u8]) -> bool {
    let text: Vec<u8> = bytes.to_ascii_lowercase();
    is_template(&text)
        || has_long_repeat(&text)
        || WHOLE.iter().any(|word| word.as_bytes() == text)
        || PARTS
            .iter()
            .any(|word| text.windows(word.len()).any(|part| part == word.as_bytes()))
}

/// Like [`is_placeholder`], for text that people choose and that may contain such a word by chance. It is a
/// placeholder only if nothing but a trailing number surrounds the word.
pub(crate) fn is_whole_placeholder(bytes: &[u8]) -> bool {
    let text: Vec<u8> = bytes.to_ascii_lowercase();
    let is_word = |text: &[u8]| {
        let words = WHOLE
            .iter()
            .chain(PARTS)
            .chain(BESIDE)
            .map(|word| word.trim_end_matches(['-', '_']).as_bytes());
        words.into_iter().any(|word| word == text)
    };
    let is_filler = |piece: &[u8]| {
        let digits = piece
            .iter()
            .rev()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let is_repeat = piece.len() >= 3 && piece.iter().all(|byte| Some(byte) == piece.first());
        is_repeat || is_word(piece) || is_word(&piece[..piece.len() - digits])
    };
    is_template(&text)
        || is_word(&text)
        || text
            .split(|byte| matches!(byte, b'-' | b'_' | b'.'))
            .all(|piece| piece.is_empty() || is_filler(piece))
}

fn is_template(text: &[u8]) -> bool {
    match text {
        [b'$' | b'<' | b'%' | b'[', .., _] | [b'{', .., b'}'] => true,
        all => all
            .windows(2)
            .any(|pair| matches!(pair, b"${" | b"{{" | b"}}" | b"$(")),
    }
}

/// Returns the start of the token that ends at `end`, or `None` if it is longer than `longest` bytes.
pub(crate) fn token_start(bytes: &[u8], end: usize, longest: usize) -> Option<usize> {
    let length = bytes[..end]
        .iter()
        .rev()
        .take(longest + 1)
        .take_while(|byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'~')
        })
        .count();
    (length <= longest).then_some(end - length)
}

/// Returns whether a token can begin at `position`: no letter, digit or underscore precedes it, except at the
/// end of an escape (`\n`, `\x22`, `\u0022`, `%3D`) or terminal colour.
pub(crate) fn at_edge(bytes: &[u8], position: usize) -> bool {
    let before = &bytes[..position];
    match before {
        [] => true,
        [.., last] if !last.is_ascii_alphanumeric() && *last != b'_' => true,
        [.., b'\\', b'n' | b'r' | b't' | b'b' | b'f' | b'0'] => true,
        [.., b'%', a, b] | [.., b'\\', b'x', a, b]
            if [a, b].iter().all(|c| c.is_ascii_hexdigit()) =>
        {
            true
        }
        [.., b'\\', b'u', a, b, c, d] if [a, b, c, d].iter().all(|c| c.is_ascii_hexdigit()) => true,
        [.., b'm'] => {
            let mut colour = before[..position - 1].iter().rev().take(16);
            colour.find(|byte| !byte.is_ascii_digit() && **byte != b';') == Some(&b'[')
        }
        _ => false,
    }
}

/// Whether bytes of this kind carry a token on: the alphabets of Base64 in both forms, hexadecimal, and the dots of a JWT.
pub(crate) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'/' | b'=' | b'.' | b'~')
}

fn has_long_repeat(text: &[u8]) -> bool {
    text.windows(5)
        .any(|five| five.iter().all(|byte| *byte == five[0]))
}

const PARTS: &[&str] = &[
    "example",
    "sample",
    "dummy",
    "placeholder",
    "changeme",
    "change-me",
    "change_me",
    "replace",
    "redacted",
    "your-",
    "your_",
    "insert-",
    "insert_",
    "notreal",
    "not-real",
    "foobar",
    "abcdef123",
    "123456789",
];

/// Words that accompany others in a placeholder.
const BESIDE: &[&str] = &[
    "your", "my", "the", "here", "some", "insert", "me", "change", "not", "real", "with",
];

const WHOLE: &[&str] = &[
    "password",
    "passwd",
    "pass",
    "passw0rd",
    "pwd",
    "pw",
    "secret",
    "token",
    "user",
    "username",
    "root",
    "admin",
    "postgres",
    "mysql",
    "guest",
    "test",
    "testing",
    "foo",
    "bar",
    "baz",
    "xxx",
    "***",
    "...",
    "key",
    "string",
    "none",
    "null",
    "redis",
    "rabbitmq",
    "mongo",
    "credentials",
    "apikey",
    "api_key",
    "mypassword",
    "hunter2",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropy_counts_bits() {
        assert_eq!(entropy(b""), 0.0);
        assert_eq!(entropy(b"aaaa"), 0.0);
        assert!((entropy(b"abcdefgh") - 3.0).abs() < 1e-5);
    }

    #[test]
    fn placeholders_are_known() {
        for text in [
            "EXAMPLE",
            "xxxxxxxx",
            "${VAR}",
            "<token>",
            "your-key-here",
            "a${B}c",
            "{name}",
            "{{x}}",
            "password",
        ] {
            assert!(is_placeholder(text.as_bytes()), "{text}");
        }
        for text in ["q9Zt4Lm2Ws", "s3cr3tPa55", "a{b"] {
            assert!(!is_placeholder(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn word_inside_password_is_not_placeholder() {
        for text in [
            "your-password",
            "EXAMPLE",
            "changeme123",
            "change-me",
            "xxxx",
            "password",
            "${P}",
            "abcdef123",
            "my_secret",
        ] {
            assert!(is_whole_placeholder(text.as_bytes()), "{text}");
        }
        for text in [
            "abcDEF123passwd",
            "s3cr3tPa55",
            "sample9Kq",
            "Replace-7fQz",
            "x11111y",
            "fooexample",
            "1",
            "0000",
        ] {
            let expected = matches!(text, "0000");
            assert_eq!(is_whole_placeholder(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn words_and_numbers_are_not_mixed() {
        for text in [
            "next_token_v2_handler",
            "1234567890123",
            "AbstractFactory",
            "a1b2",
            "CHACHA20_POLY1305",
        ] {
            assert!(!is_mixed(text.as_bytes()), "{text}");
        }
        assert!(is_mixed(b"x_a1b2c3d4"));
    }

    #[test]
    fn edges_see_through_escapes_and_colours() {
        for text in [
            "",
            " ",
            "\\n",
            "%3D",
            "\\u0022",
            "\\x22",
            "\u{1b}[31m",
            "\u{1b}[1;31m",
            "=",
            "é",
        ] {
            assert!(at_edge(text.as_bytes(), text.len()), "{text:?}");
        }
        for text in ["a", "_", "x9", "31m", "%zz", "\\a", "um"] {
            assert!(!at_edge(text.as_bytes(), text.len()), "{text:?}");
        }
    }

    #[test]
    fn overlong_token_has_no_start() {
        assert_eq!(token_start(b"= abcd:", 6, 4), Some(2));
        assert_eq!(token_start(b"= abcd:", 6, 3), None);
        assert_eq!(token_start(b"abcd", 4, 4), Some(0));
    }
}
