//! Anthropic's messages, plain and as the stream that `claude` reads.

use serde_json::{Value, json};

use crate::seen::{SeenRequest, tokens};
use crate::wire::{Content, Dialect, Event, Finish, deltas};

/// `POST /v1/messages`.
pub(crate) struct Messages;

impl Dialect for Messages {
    fn plain(&self, request: &SeenRequest, content: &Content, finish: Finish) -> Value {
        let blocks = match content {
            Content::Text(text) => json!([{"type": "text", "text": text}]),
            Content::Null => json!([{"type": "text", "text": null}]),
            Content::Empty => json!([]),
            Content::Tool { .. } => json!([tool_use(request, content)]),
        };
        let answer = if let Content::Text(text) = content {
            tokens(text)
        } else {
            0
        };
        json!({
            "id": id("msg_fake", request), "type": "message", "role": "assistant", "model": request.model(),
            "content": blocks,
            "stop_reason": stop_reason(content, finish), "stop_sequence": null,
            "usage": usage(request, answer),
        })
    }

    fn events(&self, request: &SeenRequest, content: &Content, finish: Finish) -> Vec<Event> {
        let message = json!({
            "id": id("msg_fake", request), "type": "message", "role": "assistant", "model": request.model(),
            "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage(request, 1),
        });
        let mut events = vec![Event::new("message_start", json!({"message": message}))];
        events.extend(block_events(request, content));
        let answer = if let Content::Text(text) = content {
            tokens(text)
        } else {
            0
        };
        events.push(Event::new(
            "message_delta",
            json!({
                "delta": {"stop_reason": stop_reason(content, finish), "stop_sequence": null},
                "usage": {"output_tokens": answer},
            }),
        ));
        events.push(Event::new("message_stop", json!({})));
        events
    }

    fn refusal(&self, status: u16, message: &str, _retry_after: Option<&str>) -> Value {
        let kind = match status {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            500.. => "api_error",
            _ => "invalid_request_error",
        };
        json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_fake"})
    }

    fn failure(&self, message: &str) -> Event {
        Event::new(
            "error",
            json!({"error": {"type": "overloaded_error", "message": message}}),
        )
    }
}

/// The events of the one block of an answer; none when it has none.
fn block_events(request: &SeenRequest, content: &Content) -> Vec<Event> {
    let (block, pieces) = match content {
        Content::Text(text) => {
            let pieces = deltas(text)
                .into_iter()
                .map(|piece| json!({"type": "text_delta", "text": piece}));
            (json!({"type": "text", "text": ""}), pieces.collect())
        }
        Content::Null => (
            json!({"type": "text", "text": ""}),
            vec![json!({"type": "text_delta", "text": null})],
        ),
        Content::Empty => return Vec::new(),
        Content::Tool { input, .. } => {
            let mut block = tool_use(request, content);
            block["input"] = json!({});
            (
                block,
                vec![json!({"type": "input_json_delta", "partial_json": input.to_string()})],
            )
        }
    };
    let start = Event::new(
        "content_block_start",
        json!({"index": 0, "content_block": block}),
    );
    let deltas = pieces
        .into_iter()
        .map(|delta| Event::new("content_block_delta", json!({"index": 0, "delta": delta})));
    let stop = Event::new("content_block_stop", json!({"index": 0}));
    [start, Event::new("ping", json!({}))]
        .into_iter()
        .chain(deltas)
        .chain([stop])
        .collect()
}

/// An id that no other answer of the same conversation has: clients take two messages of one id for one.
fn id(name: &str, request: &SeenRequest) -> String {
    let before = request.body["messages"].as_array().map_or(0, Vec::len);
    format!("{name}_{before}")
}

fn tool_use(request: &SeenRequest, content: &Content) -> Value {
    let Content::Tool { name, input } = content else {
        return Value::Null;
    };
    json!({"type": "tool_use", "id": id("toolu_fake", request), "name": name, "input": input})
}

fn stop_reason(content: &Content, finish: Finish) -> &'static str {
    match (content, finish) {
        (Content::Tool { .. }, _) => "tool_use",
        (_, Finish::Done) => "end_turn",
        (_, Finish::Limit) => "max_tokens",
    }
}

/// A usage that depends on the lengths.
fn usage(request: &SeenRequest, output: usize) -> Value {
    json!({
        "input_tokens": request.prompt_tokens(), "output_tokens": output,
        "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
    })
}
