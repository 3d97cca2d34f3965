//! The server as a client sees it: raw HTTP over a socket, each family's good answer, stream and refusal.
#![expect(clippy::expect_used, reason = "a helper of a test fails the test")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crucible_testkit::{Endpoint, FakeApi, Family, Reply, RetryAfter};
use serde_json::{Value, json};

/// What came back: the status line and headers as text, and the body without its chunk marks.
struct Answer {
    head: String,
    body: String,
}

impl Answer {
    fn status(&self) -> u16 {
        self.head
            .split(' ')
            .nth(1)
            .and_then(|code| code.parse().ok())
            .expect("a status line")
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("a JSON body")
    }

    /// The data of every event.
    fn events(&self) -> Vec<Value> {
        let data = self
            .body
            .lines()
            .filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| serde_json::from_str(data).expect("JSON in an event"))
            .collect()
    }
}

fn ask(api: &FakeApi, method: &str, path: &str, key: (&str, &str), body: &Value) -> Answer {
    let address = api.origin().replace("http://", "");
    let mut socket = TcpStream::connect(&address).expect("the server listens");
    socket
        .set_read_timeout(Some(Duration::from_secs(60)))
        .expect("a time limit");
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let (name, value) = key;
    // HTTP/1.0 has no chunks and closes the connection at the end.
    write!(
        socket,
        "{method} {path} HTTP/1.0\r\nhost: {address}\r\n{name}: {value}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("a request that is taken");
    let mut bytes = Vec::new();
    // A connection that is cut on purpose ends in an error; what came before it counts.
    let _cut = socket.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    Answer {
        head: head.to_ascii_lowercase(),
        body: body.to_owned(),
    }
}

const OPENAI_KEY: (&str, &str) = ("authorization", "Bearer key-of-test");
const ANTHROPIC_KEY: (&str, &str) = ("x-api-key", "key-of-test");
const GEMINI_KEY: (&str, &str) = ("x-goog-api-key", "key-of-test");

const ANSWER: &str = "an answer that is longer than one piece of a stream";

/// Each way to ask for an answer: path, key, body, and whether it is streamed.
fn questions() -> Vec<(&'static str, (&'static str, &'static str), Value)> {
    let messages = json!([{"role": "user", "content": "the-prompt"}]);
    let contents = json!({"contents": [{"role": "user", "parts": [{"text": "the-prompt"}]}]});
    vec![
        (
            "/v1/chat/completions",
            OPENAI_KEY,
            json!({"model": "m", "messages": messages}),
        ),
        (
            "/v1/responses",
            OPENAI_KEY,
            json!({"model": "m", "input": messages}),
        ),
        (
            "/v1/responses",
            OPENAI_KEY,
            json!({"model": "m", "input": messages, "stream": true}),
        ),
        (
            "/v1/messages",
            ANTHROPIC_KEY,
            json!({"model": "m", "messages": messages}),
        ),
        (
            "/v1/messages?beta=true",
            ANTHROPIC_KEY,
            json!({"model": "m", "messages": messages, "stream": true}),
        ),
        (
            "/v1beta/models/m:generateContent",
            GEMINI_KEY,
            contents.clone(),
        ),
        (
            "/v1beta/models/m:streamGenerateContent?alt=sse",
            GEMINI_KEY,
            contents,
        ),
    ]
}

/// The text of an answer, wherever its family puts it.
fn text_of(answer: &Answer) -> String {
    let whole = |value: &Value| -> String {
        let places = [
            "/choices/0/message/content",
            "/output/0/content/0/text",
            "/content/0/text",
            "/candidates/0/content/parts/0/text",
        ];
        places
            .iter()
            .find_map(|place| value.pointer(place)?.as_str())
            .unwrap_or_default()
            .to_owned()
    };
    if answer.head.contains("content-type: application/json") {
        return whole(&answer.json());
    }
    let piece = |event: &Value| {
        let places = [
            "/delta/text",
            "/delta",
            "/candidates/0/content/parts/0/text",
        ];
        places
            .iter()
            .find_map(|place| event.pointer(place)?.as_str().map(str::to_owned))
    };
    answer.events().iter().filter_map(piece).collect()
}

#[test]
fn good_answer_is_complete_in_every_form() {
    for (path, key, body) in questions() {
        let api = FakeApi::start([Reply::Answer(ANSWER.to_owned())]);
        let answer = ask(&api, "POST", path, key, &body);
        assert_eq!(answer.status(), 200, "{path}");
        assert_eq!(text_of(&answer), ANSWER, "{path} {}", answer.body);
        let [seen] = api.requests().try_into().expect("one request");
        assert_eq!(
            (seen.endpoint, seen.key()),
            (Endpoint::Completion, Some("key-of-test")),
            "{path}"
        );
        assert_eq!(seen.body, body, "{path}");
    }
}

#[test]
fn refusals_quote_key_and_prompt_per_family() {
    for (path, key, body) in questions() {
        for status in [400, 401, 403, 404, 429, 500, 503, 529] {
            let api = FakeApi::start([Reply::Status(status)]);
            let answer = ask(&api, "POST", path, key, &body);
            assert_eq!(answer.status(), status, "{path}");
            let message = answer.json()["error"]["message"]
                .as_str()
                .expect("a message")
                .to_owned();
            assert!(
                message.contains("key-of-test") && message.contains("the-prompt"),
                "{path}: {message}"
            );
            assert!(!answer.head.contains("retry-after"), "{path}");
        }
    }
}

#[test]
fn rate_limit_may_state_retry_time_and_ends() {
    for (path, key, body) in questions() {
        let once = Reply::RateLimited(RetryAfter::Value("7".to_owned()));
        let api = FakeApi::start([once, Reply::Answer(ANSWER.to_owned())]);
        let refused = ask(&api, "POST", path, key, &body);
        assert_eq!(refused.status(), 429, "{path}");
        assert!(
            refused.head.contains("retry-after: 7"),
            "{path}: {}",
            refused.head
        );
        assert_eq!(
            text_of(&ask(&api, "POST", path, key, &body)),
            ANSWER,
            "{path}"
        );
    }
}

#[test]
fn half_an_answer_is_sent_however_it_ends() {
    for (path, key, body) in questions() {
        for reply in [Reply::DropHalfway, Reply::EndHalfway] {
            let api = FakeApi::start([reply.clone(), Reply::Answer(ANSWER.to_owned())]);
            let half = ask(&api, "POST", path, key, &body);
            assert_eq!(half.status(), 200, "{path} {reply:?}");
            assert!(!half.body.is_empty(), "{path} {reply:?}");
            let ends_well = match half.head.contains("event-stream") {
                true => ["message_stop", "STOP", "response.completed"]
                    .iter()
                    .any(|end| half.body.contains(end)),
                false => serde_json::from_str::<Value>(&half.body).is_ok(),
            };
            assert!(!ends_well, "{path} {reply:?}: {}", half.body);
        }
    }
}

#[test]
fn a_connection_that_is_dropped_carries_nothing() {
    for (path, key, body) in questions() {
        let api = FakeApi::start([Reply::Drop]);
        let answer = ask(&api, "POST", path, key, &body);
        assert_eq!(
            (answer.head.as_str(), api.requests().len()),
            ("", 1),
            "{path}"
        );
    }
}

#[test]
fn a_stream_can_fail_after_a_good_start() {
    for (path, key, body) in questions() {
        let api = FakeApi::start([Reply::FailHalfway]);
        let answer = ask(&api, "POST", path, key, &body);
        assert!(
            answer.body.contains("key-of-test"),
            "{path}: {}",
            answer.body
        );
        let expected = if answer.head.contains("event-stream") {
            200
        } else {
            500
        };
        assert_eq!(answer.status(), expected, "{path}");
    }
}

#[test]
fn a_tool_is_asked_for_in_every_family() {
    for (path, key, body) in questions() {
        let api = FakeApi::start([Reply::ToolCall(
            "the-tool".to_owned(),
            json!({"argument": 1}),
        )]);
        let answer = ask(&api, "POST", path, key, &body);
        assert!(
            answer.body.contains("the-tool") && answer.body.contains("argument"),
            "{path}: {}",
            answer.body
        );
    }
}

#[test]
fn non_completion_requests_do_not_consume_script() {
    let api = FakeApi::start([Reply::Status(500), Reply::Answer(ANSWER.to_owned())]);
    let messages = json!({"messages": "four"});
    let count = ask(
        &api,
        "POST",
        "/v1/messages/count_tokens",
        ANTHROPIC_KEY,
        &messages,
    );
    assert_eq!(count.json(), json!({"input_tokens": 2}));
    let count = ask(
        &api,
        "POST",
        "/v1beta/models/m:countTokens",
        GEMINI_KEY,
        &json!({"contents": "four"}),
    );
    assert_eq!(count.json(), json!({"totalTokens": 2}));
    assert_eq!(
        ask(&api, "HEAD", "/", ANTHROPIC_KEY, &Value::Null).status(),
        200
    );
    let models = ask(&api, "GET", "/v1/models", OPENAI_KEY, &Value::Null);
    assert_eq!(models.json()["data"][0]["id"], "fake-model");
    assert_eq!(
        ask(&api, "GET", "/v1/nothing", OPENAI_KEY, &Value::Null).status(),
        404
    );
    assert!(api.completions().is_empty());
    let (path, key, body) = questions().swap_remove(0);
    assert_eq!(ask(&api, "POST", path, key, &body).status(), 500);
    assert_eq!(api.requests().len(), 6);
    assert_eq!(api.completions().len(), 1);
}

#[test]
fn the_family_follows_from_path_and_headers() {
    let api = FakeApi::start([Reply::Answer(String::new())]);
    for (path, key, body) in questions() {
        ask(&api, "POST", path, key, &body);
    }
    ask(&api, "GET", "/v1/models", ANTHROPIC_KEY, &Value::Null);
    let families: Vec<Family> = api.requests().iter().map(|seen| seen.family).collect();
    let expected = [
        [Family::OpenAi; 3].as_slice(),
        &[Family::Anthropic; 2],
        &[Family::Gemini; 2],
        &[Family::Anthropic],
    ];
    assert_eq!(families, expected.concat());
}

#[test]
fn slow_stream_and_large_request_are_complete() {
    for (path, key, mut body) in questions() {
        body["padding"] = "x".repeat(5_000_000).into();
        let api = FakeApi::start([Reply::SlowAnswer(
            "slow but whole".to_owned(),
            Duration::from_millis(1),
        )]);
        assert_eq!(
            text_of(&ask(&api, "POST", path, key, &body)),
            "slow but whole",
            "{path}"
        );
    }
}
