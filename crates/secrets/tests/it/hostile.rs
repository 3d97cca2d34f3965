//! Input made to slow the scanner down, to confuse it, or to hide a secret from it.

use crucible_secrets::Scanner;

fn github() -> String {
    format!("gh{}_{}", 'p', "16C7e42F292c6912E7710c838347Ae178B4a")
}

fn rules_in(text: &[u8]) -> Vec<String> {
    Scanner::builtin()
        .scan(text)
        .iter()
        .map(|found| found.rule.to_string())
        .collect()
}

fn anthropic() -> String {
    format!("sk-{}-api03-q7Zt4Lm2WsR8vK1xq7Zt4Lm2", "ant")
}

/// Scans 2 MB of one pattern on as few lines as it has. What is quadratic needs some 10^11 steps for this: the runner ends
/// such a test as too slow.
fn must_be_linear(piece: &str) {
    let text = piece.repeat(2_000_000 / piece.len());
    let _ = Scanner::builtin().scan(text.as_bytes());
}

#[test]
fn one_line_of_keywords() {
    for piece in [
        "token",
        "secret=",
        "://",
        "sk-ant-",
        "eyJ",
        "-----BEGIN ",
        "password=\"",
        ":AA",
        "-us",
        "key-",
    ] {
        must_be_linear(piece);
    }
}

#[test]
fn one_line_of_secrets_without_a_gap() {
    must_be_linear(&anthropic());
    must_be_linear(&format!("{} ", anthropic()));
    must_be_linear(&format!("{}/", github()));
}

#[test]
fn one_line_of_openings_that_never_close() {
    must_be_linear(&format!("-----BEGIN {} KEY-----", "PRIVATE"));
    must_be_linear(&format!(
        "-----BEGIN {} KEY-----\nMIIEpAIBAAKCAQEA7qkC0n4WmJXk",
        "PRIVATE"
    ));
    must_be_linear(&format!(
        "q7Zt4Lm2WsR8vK1xq7Zt4Lm2WsR8vK1xq7Zt4Lm2WsR8vK1x\n-----END {} KEY-----\n",
        "PRIVATE"
    ));
    must_be_linear("-----END \n");
    must_be_linear("\"auth\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
}

#[test]
fn long_token_run_matches_from_both_sides() {
    let near = anthropic();
    let text = format!(
        "{}{}",
        format!("{near} ").repeat(40),
        "q7Zt4Lm2".repeat(1_000_000)
    );
    assert_eq!(rules_in(text.as_bytes()).len(), 40);
    let joined = format!("{}{}", near.repeat(40), "q7Zt4Lm2".repeat(1_000_000));
    assert_eq!(rules_in(joined.as_bytes()), ["anthropic-key"]);
}

#[test]
fn bytes_that_are_no_utf8() {
    let mut text = vec![0xff; 1000];
    text.extend_from_slice(github().as_bytes());
    text.extend(vec![0xc3; 1000]);
    assert_eq!(rules_in(&text), ["github-personal-token"]);
    let (out, count) = Scanner::builtin().redact_bytes(&text);
    assert_eq!(count, 1);
    assert_eq!(out.len(), 2000 + "[secret:github-personal-token]".len());
}

#[test]
fn secrets_behind_escapes_colours_and_words() {
    let secret = github();
    for before in [
        "\\n",
        "%3D",
        "\\u0022",
        "\u{1b}[32m",
        "x",
        "_",
        "\"",
        "é",
        "\0",
    ] {
        let text = format!("{before}{secret}");
        assert_eq!(
            rules_in(text.as_bytes()),
            ["github-personal-token"],
            "{before:?}"
        );
    }
    let aws = format!("AK{}{}", "IA", "QY3ZT5LM2WSR4VKX");
    for before in ["\\n", "%3D", "\\u0022", "\u{1b}[32m", "\"", "é", "\0"] {
        assert_eq!(
            rules_in(format!("{before}{aws}").as_bytes()),
            ["aws-access-key-id"],
            "{before:?}"
        );
    }
}

#[test]
fn assigned_secret_keeps_provider_name() {
    for text in [
        format!("api_key = \"{}\"", github()),
        format!("https://u:{}@github.com", github()),
    ] {
        assert_eq!(
            rules_in(text.as_bytes()),
            ["github-personal-token"],
            "{text}"
        );
    }
}

#[test]
fn multibyte_characters_around_secret_stay_whole() {
    let text = format!("ключ={}é — 終わり", github());
    let redacted = Scanner::builtin().redact(&text);
    assert_eq!(
        redacted.text,
        "ключ=[secret:github-personal-token]é — 終わり"
    );
    let url = ["https:", "//bob:пароль77@host/"].concat();
    assert_eq!(
        Scanner::builtin().redact(&url).text,
        "https://bob:[secret:password-in-url]@host/"
    );
}

#[test]
fn empty_input_has_no_match() {
    assert!(Scanner::builtin().scan(b"").is_empty());
    assert_eq!(Scanner::builtin().redact("").count, 0);
    assert!(Scanner::builtin().redactor().finish().is_empty());
}

#[test]
fn the_sources_of_this_crate_hold_no_secret() {
    let sources = [
        include_str!("../../src/file_name.rs"),
        include_str!("../../src/judge.rs"),
        include_str!("../../src/key_lines.rs"),
        include_str!("../../src/keywords.rs"),
        include_str!("../../src/report.rs"),
        include_str!("../../src/rule.rs"),
        include_str!("../../src/scanner.rs"),
        include_str!("../../src/stream.rs"),
        include_str!("../../src/walk.rs"),
        include_str!("hostile.rs"),
        include_str!("streams.rs"),
    ];
    for source in sources {
        assert_eq!(Scanner::builtin().scan(source.as_bytes()), []);
    }
}
