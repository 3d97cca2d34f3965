//! Secrets stop a call, are removed from answers, and appear in no error.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crucible_llm::{
    CallError, Cassette, CassetteHeader, CassetteWriter, LlmBackend, Message, Recording,
    RetryPolicy, Reuse, SecretPlace,
};
use crucible_model::{PromptBuilder, Untrusted};
use crucible_testkit::{FakeOpenAi, Reply, made_up_token};
use proptest::prelude::*;
use serde_json::json;

use crate::support::{CAPABILITIES, Scripted, answer, ask, client, gateway};

#[tokio::test]
async fn secret_in_request_stops_it_unsent() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("calls.jsonl");
    let header = CassetteHeader::new("gateway", "m", CAPABILITIES);
    let writer = Arc::new(CassetteWriter::open(&path, &header, Reuse::Nothing).unwrap());
    let server = FakeOpenAi::start([Reply::Answer("ok".to_owned())]);
    let client = client(
        gateway(&server.base_url(), None),
        Recording::To(writer),
        RetryPolicy::PHASES,
    );

    let mut in_message = ask("x");
    let leak = Untrusted::new(format!("a\nb\ntoken: {}\n", made_up_token()));
    in_message.messages.push(Message::user(
        PromptBuilder::new().untrusted("f", &leak).build(),
    ));
    let mut in_model = ask("x");
    in_model.model = made_up_token();
    let mut in_metadata = ask("x");
    in_metadata.metadata.insert(
        "response_format".to_owned(),
        json!({"a": [{"b": format!("key {}", made_up_token())}]}),
    );
    let places = [
        SecretPlace::Message(2),
        SecretPlace::Model,
        SecretPlace::Metadata,
    ];
    for (inv, expected) in [in_message, in_model, in_metadata].into_iter().zip(places) {
        let error = client.call(inv).await.unwrap_err();
        let text = format!("{error} {error:?}");
        let CallError::Secret(found) = error else {
            panic!("not stopped: {text}")
        };
        assert_eq!(found.place, expected);
        assert!(found.rule.contains("github"), "{text}");
        assert!(
            !text.contains(&made_up_token()) && !text.contains("a1B2c3D4"),
            "{text}"
        );
    }
    assert_eq!(server.requests().len(), 0);
    assert_eq!(
        Cassette::parse(&std::fs::read(&path).unwrap())
            .unwrap()
            .calls
            .len(),
        0
    );
}

#[tokio::test]
async fn secret_in_answer_is_redacted_everywhere() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("calls.jsonl");
    let header = CassetteHeader::new("scripted", "m", CAPABILITIES);
    let writer = Arc::new(CassetteWriter::open(&path, &header, Reuse::Nothing).unwrap());
    let leaking = || {
        let mut leaking = answer(&format!("use {} here", made_up_token()));
        leaking.extensions = BTreeMap::from([(
            "note".to_owned(),
            json!([{"k": format!("key {}", made_up_token())}]),
        )]);
        leaking
    };
    let recorded = client(
        Scripted::new([Ok(leaking())]).backend(),
        Recording::To(writer),
        RetryPolicy::NEVER,
    );
    let unrecorded = client(
        Scripted::new([Ok(leaking())]).backend(),
        Recording::Off,
        RetryPolicy::NEVER,
    );
    for client in [&recorded, &unrecorded] {
        let result = client.call(ask("x")).await.unwrap();
        assert!(
            result.raw_response.starts_with("use [secret:"),
            "{}",
            result.raw_response
        );
        assert!(
            !serde_json::to_string(&result)
                .unwrap()
                .contains(&made_up_token())
        );
        assert_eq!(result.extensions["redactions"], 2);
    }
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains(&made_up_token()));
    assert_eq!(
        Cassette::parse(text.as_bytes()).unwrap().calls[0].redactions,
        2
    );
}

/// An older program with fewer rules may have recorded the reused answer.
#[tokio::test]
async fn secret_in_reused_answer_is_redacted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("calls.jsonl");
    let header = CassetteHeader::new("scripted", "m", CAPABILITIES);
    let writer = Arc::new(CassetteWriter::open(&path, &header, Reuse::Nothing).unwrap());
    let first = client(
        Scripted::new([Ok(answer("use PLACE here"))]).backend(),
        Recording::To(writer),
        RetryPolicy::NEVER,
    );
    first.call(ask("x")).await.unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("use PLACE here"));
    std::fs::write(&path, text.replace("PLACE", &made_up_token())).unwrap();
    let writer = Arc::new(CassetteWriter::open(&path, &header, Reuse::After(0)).unwrap());
    let second_model_client = client(
        Scripted::new([]).backend(),
        Recording::To(writer),
        RetryPolicy::NEVER,
    );
    let result = second_model_client.call(ask("x")).await.unwrap();
    assert!(
        result.raw_response.starts_with("use [secret:"),
        "{}",
        result.raw_response
    );
    assert_eq!(result.extensions["redactions"], 1);
}

/// The text as a JSON string with every character escaped.
fn escaped(text: &str) -> String {
    text.chars()
        .map(|c| format!("\\u{:04x}", u32::from(c)))
        .collect()
}

#[test]
fn secret_anywhere_in_value_is_found() {
    let client = client(
        Scripted::new([]).backend(),
        Recording::Off,
        RetryPolicy::NEVER,
    );
    for (value, line) in [
        (json!(made_up_token()), 1),
        (
            json!({"k": [{"b": format!("a\nb\n{}", made_up_token())}]}),
            3,
        ),
        (json!({"k": [{format!("x {}", made_up_token()): 1}]}), 1),
        // As JSON it would follow the letter `n`, as a part of another word.
        (json!({"k": format!("x\n{}\n", made_up_token())}), 2),
    ] {
        let found = client.refuse_secrets(&value).unwrap_err();
        assert_eq!(found.line, line, "{value}");
        assert!(!format!("{found} {found:?}").contains(&made_up_token()));
    }
    assert!(
        client
            .refuse_secrets(&json!({"k": ["nothing", 1, null, true]}))
            .is_ok()
    );
}

#[test]
fn escaped_secret_in_json_is_redacted() {
    let client = client(
        Scripted::new([]).backend(),
        Recording::Off,
        RetryPolicy::NEVER,
    );
    let hidden = escaped(&made_up_token());
    for around in [
        r#"{"a" : "@", "a": 1.50, "b":["x\"y", "\u0041"]}"#,
        r#"{"say": "\"@\" \\"}"#,
        r#"{"@": 1}"#,
        "```json one \" quotation mark\n{\"a\": \"@\"}\n```",
        "```json one \"\\\n{\"a\": \"@\"}\n```",
        r#"{"a": "@", "b": "no end"#,
    ] {
        let message = around.replace('@', &hidden);
        let (clean, redactions) = client.redact_json(&message);
        let marker = clean.find("[secret:").map(|begin| &clean[begin..]).unwrap();
        let marker = &marker[..=marker.find(']').unwrap()];
        assert_eq!(
            (clean.replace(marker, "@"), redactions),
            (around.to_owned(), 1)
        );
    }
    for plain in [
        "",
        "\"",
        "\"\\",
        r#"{"a": "\u0041\n"}"#,
        "é \" ü",
        &escaped("\""),
    ] {
        assert_eq!(client.redact_json(plain), (plain.into(), 0));
    }
    let both = format!(r#"["{hidden}", "{hidden} \u0041"]"#);
    assert_eq!(client.redact_json(&both).1, 2);
}

mod properties {
    use super::*;

    proptest! {
        /// Seed 002, property 8: for any key and server failure, no error contains the key or the prompt.
        #[test]
        fn no_error_tells_the_key_or_the_prompt(
            key in "[A-Za-z0-9_-]{12,60}",
            prompt in "[a-z]{20,40}",
            mode in 0usize..9,
            status in prop_oneof![Just(400u16), Just(401), Just(403), Just(404), Just(429), Just(500), Just(503)],
        ) {
            let reply = match mode {
                0 | 1 => Reply::Status(status),
                2 => Reply::Drop,
                3 => Reply::BadJson,
                4 => Reply::Html,
                5 => Reply::DropHalfway,
                6 => Reply::Hang,
                // Servers that quote the request.
                7 => Reply::Raw(200, format!(r#"{{"error":{{"code":{status},"message":"{key} {prompt}"}}}}"#).into_bytes()),
                _ => Reply::Raw(200, format!("{key} {prompt}").into_bytes()),
            };
            tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
                let server = FakeOpenAi::start([reply]);
                let mut inv = ask(&prompt);
                inv.timeout = Duration::from_millis(200);
                let error = gateway(&server.base_url(), Some(&key)).invoke(inv).await.unwrap_err();
                let text = format!("{error}\n{error:?}\n{error:#?}");
                assert!(!text.contains(&key), "{text}");
                assert!(!text.contains(&prompt), "{text}");
            });
        }
    }
}
