//! A stream redacts to the same bytes wherever it is cut, and holds back no more than it says.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use crucible_secrets::{HELD_BACK, Scanner};
use proptest::prelude::*;

const RULES: &str = include_str!("../../rules.toml");

/// The true samples of all rules, joined.
fn samples() -> Vec<String> {
    let file: toml::Table = toml::from_str(RULES).unwrap();
    let of_rule = |rule: &toml::Value| rule["positive"].as_array().unwrap().clone();
    let all = file["rule"].as_array().unwrap().iter().flat_map(of_rule);
    all.map(|sample| sample.as_str().unwrap().replace("{{}}", ""))
        .collect()
}

fn in_pieces(text: &[u8], cuts: &[usize]) -> Vec<u8> {
    let mut redactor = Scanner::builtin().redactor();
    let mut out = Vec::new();
    let mut from = 0;
    for &cut in cuts {
        out.extend(redactor.push(&text[from..cut]));
        from = cut;
    }
    out.extend(redactor.push(&text[from..]));
    out.extend(redactor.finish());
    out
}

/// Text of a few kilobytes, with secrets among filler of lengths around the bounds of the redactor.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let secret = proptest::sample::select(samples()).prop_map(String::into_bytes);
    let filler = prop_oneof![
        "[ -~\n]{0,40}".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..40),
        (0_usize..1500).prop_map(|length| vec![b' '; length]),
        (0_usize..1500).prop_map(|length| vec![b'A'; length]),
        (0_usize..60)
            .prop_map(|lines| b"q7Zt4Lm2WsR8vK1xq7Zt4Lm2WsR8vK1xq7Zt4Lm2WsR8vK1x\n".repeat(lines)),
        Just(["-----END ", "PRIVATE", " KEY-----"].concat().into_bytes()),
        proptest::sample::select(vec![
            "token=\"",
            "://",
            "sk-ant-api03-",
            ":AA",
            "-us1",
            "secret: ",
            "-----BEGIN ",
            "=",
            "\n"
        ])
        .prop_map(|word| word.as_bytes().to_vec()),
    ];
    let part = prop_oneof![2 => secret, 3 => filler];
    proptest::collection::vec(part, 1..14).prop_map(|parts| parts.concat())
}

mod properties {
    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_stream_equals_the_whole(text in text(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6)) {
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
            cuts.sort_unstable();
            prop_assert_eq!(in_pieces(&text, &cuts), Scanner::builtin().redact_bytes(&text).0);
        }

        #[test]
        fn a_stream_of_small_pieces_equals_the_whole(text in text(), size in 1_usize..40) {
            let cuts: Vec<usize> = (size..text.len()).step_by(size).collect();
            prop_assert_eq!(in_pieces(&text, &cuts), Scanner::builtin().redact_bytes(&text).0);
        }

        #[test]
        fn text_redacts_like_bytes(text in text()) {
            let text = String::from_utf8_lossy(&text);
            let redacted = Scanner::builtin().redact(&text);
            let (bytes, count) = Scanner::builtin().redact_bytes(text.as_bytes());
            prop_assert_eq!(redacted.text.as_bytes(), &bytes[..]);
            prop_assert_eq!(redacted.count, count);
        }

        #[test]
        fn matches_are_sorted_disjoint_and_inside(text in text()) {
            let found = Scanner::builtin().scan(&text);
            let mut end = 0;
            for found in &found {
                prop_assert!(found.range.start >= end && found.range.start < found.range.end);
                prop_assert!(found.range.end <= text.len());
                let lines = text[..found.range.start].iter().filter(|byte| **byte == b'\n').count() as u64;
                prop_assert_eq!(found.line, lines + 1);
                end = found.range.end;
            }
        }
    }
}

#[test]
fn every_split_position_gives_same_redaction() {
    let mut text = Vec::new();
    for sample in samples() {
        text.extend_from_slice(sample.as_bytes());
        text.extend_from_slice(b"\nand so on\n");
    }
    // The block that is never closed would hide what follows it.
    let text = String::from_utf8(text).unwrap().replace(
        "(the rest was cut off)",
        "-----END OPENSSH PRIVATE KEY-----",
    );
    let (full_content, count) = Scanner::builtin().redact_bytes(text.as_bytes());
    assert!(count > 120, "{count}");
    for cut in (0..=text.len()).step_by(61) {
        assert!(
            in_pieces(text.as_bytes(), &[cut]) == full_content,
            "cut at {cut}"
        );
    }
    for sample in samples() {
        let padded = format!("{}{sample}{}", " ".repeat(2060), " x".repeat(600));
        let (whole, _) = Scanner::builtin().redact_bytes(padded.as_bytes());
        for cut in (2050..2070 + sample.len()).step_by(3) {
            assert!(
                in_pieces(padded.as_bytes(), &[cut]) == whole,
                "cut at {cut} of {sample}"
            );
        }
    }
}

#[test]
fn a_redactor_can_move_to_another_thread() {
    let mut redactor = Scanner::builtin().redactor();
    let thread = std::thread::spawn(move || [redactor.push(b"plain"), redactor.finish()].concat());
    assert_eq!(thread.join().unwrap(), b"plain");
}

#[test]
fn no_more_is_held_back_than_promised() {
    let mut redactor = Scanner::builtin().redactor();
    let (mut taken, mut given) = (0, 0);
    for size in (0..5000).map(|n| 1 + n * 7919 % 4001) {
        given += redactor
            .push(&b"fn main() { plain(text); }\n".repeat(size / 27 + 1)[..size])
            .len();
        taken += size;
        assert!(taken - given <= HELD_BACK, "{taken} {given}");
    }
    assert_eq!(given + redactor.finish().len(), taken);
}

#[test]
fn open_block_of_any_length_is_redacted() {
    let mut redactor = Scanner::builtin().redactor();
    let mut out = redactor.push(format!("before -----BEGIN {} KEY-----\n", "PRIVATE").as_bytes());
    for _ in 0..20_000 {
        out.extend(redactor.push(b"MIIEpAIBAAKCAQEA7qkC0n4WmJXkQm9n\n"));
        assert!(format!("{redactor:?}").len() < 60, "Debug shows the buffer");
    }
    assert_eq!(out, b"before ");
    out.extend(redactor.push(format!("-----END {} KEY-----", "PRIVATE").as_bytes()));
    out.extend(redactor.push(&b" after ".repeat(600)));
    out.extend(redactor.finish());
    let expected = format!("before [secret:private-key-block]{}", " after ".repeat(600));
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn a_block_that_never_ends_hides_the_rest() {
    let mut redactor = Scanner::builtin().redactor();
    let mut out = redactor.push(format!("a -----BEGIN {} KEY-----\n", "PRIVATE").as_bytes());
    for _ in 0..1000 {
        out.extend(redactor.push(b"MIIEpAIBAAKCAQEA7qkC0n4WmJXkQm9n\n"));
    }
    out.extend(redactor.finish());
    assert_eq!(out, b"a [secret:private-key-block]");
}

#[test]
fn token_longer_than_buffer_is_redacted_whole() {
    let mut redactor = Scanner::builtin().redactor();
    let mut out = redactor.push(format!("key sk-{}-api03-", "ant").as_bytes());
    for _ in 0..5000 {
        out.extend(redactor.push(b"q7Zt4Lm2WsR8vK1x"));
    }
    out.extend(redactor.push(b" done"));
    out.extend(redactor.finish());
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "key [secret:anthropic-key] done"
    );
}

#[test]
fn block_end_across_pieces_is_found() {
    let begin = format!(
        "-----BEGIN {} KEY-----\n{}",
        "PRIVATE",
        "MIIEpAIBAAKCAQEA7qkC0n4WmJXkQm9n\n".repeat(100)
    );
    let end = format!("-----END {} KEY-----", "PRIVATE");
    let text = format!("{begin}{end}{}", "\nplain".repeat(500));
    for cut in begin.len()..=begin.len() + end.len() {
        let out = in_pieces(text.as_bytes(), &[cut]);
        assert_eq!(
            out,
            format!("[secret:private-key-block]{}", "\nplain".repeat(500)).as_bytes(),
            "{cut}"
        );
    }
}

#[test]
fn keyword_inside_block_ends_with_block() {
    let text = format!(
        "-----BEGIN {0} KEY-----\nMIIEpAIBAAKCAQEA7qkC0n4WmJXkQm9n\nkind: Secret\n-----END {0} KEY-----\ndata:\n  a: {1}\n",
        "PRIVATE", "q7Zt4Lm2WsR8vK1xq7Zt4Lm2"
    );
    let (full_content, count) = Scanner::builtin().redact_bytes(text.as_bytes());
    assert_eq!(count, 1);
    assert!(full_content.starts_with(b"[secret:private-key-block]\ndata:"));
}

#[test]
fn key_end_redacts_lines_above() {
    let line = "q7Zt4Lm2WsR8vK1xq7Zt4Lm2WsR8vK1xq7Zt4Lm2WsR8vK1xq7Zt4Lm2WsR8vK1x\n";
    let end = format!("-----END {} KEY-----", "PRIVATE");
    let text = format!(
        "{}\n{}ab==\n{end}{}",
        "plain ".repeat(700),
        line.repeat(50),
        "\nplain".repeat(500)
    );
    let expected = format!(
        "{}\n[secret:private-key-end]{}",
        "plain ".repeat(700),
        "\nplain".repeat(500)
    );
    assert_eq!(Scanner::builtin().redact(&text).text, expected);
    for cut in (0..text.len()).step_by(37) {
        assert_eq!(
            in_pieces(text.as_bytes(), &[cut]),
            expected.as_bytes(),
            "{cut}"
        );
    }
    for size in [1, 7, 300, 5_000] {
        let cuts: Vec<usize> = (size..text.len()).step_by(size).collect();
        assert_eq!(
            in_pieces(text.as_bytes(), &cuts),
            expected.as_bytes(),
            "{size}"
        );
    }
    // Without that line they are what they are: digests, say.
    let digests = line.repeat(2_000);
    assert_eq!(
        in_pieces(digests.as_bytes(), &[5, 70_000]),
        digests.as_bytes()
    );
}
