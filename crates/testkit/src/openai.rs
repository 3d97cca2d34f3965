//! OpenAI's chat completions, plain and as a stream.

use serde_json::{Value, json};

use crate::seen::{SeenRequest, tokens};
use crate::wire::{Content, Dialect, Event, Finish, deltas};

/// `POST /v1/chat/completions`.
pub(crate) struct ChatCompletions;

impl Dialect for ChatCompletions {
    fn plain(&self, request: &SeenRequest, content: &Content, finish: Finish) -> Value {
        let message = match content {
            Content::Text(text) => json!({"role": "assistant", "content": text}),
            Content::Null | Content::Empty => json!({"role": "assistant", "content": null}),
            Content::Tool { .. } => {
                json!({"role": "assistant", "content": null, "tool_calls": [tool_call(content)]})
            }
        };
        let choice = json!({"index": 0, "finish_reason": finish_reason(content, finish), "message": message});
        json!({
            "id": "chatcmpl-fake", "object": "chat.completion", "created": 0,
            "model": request.model(),
            "choices": if *content == Content::Empty { json!([]) } else { json!([choice]) },
            "usage": usage(request, content),
        })
    }

    fn events(&self, request: &SeenRequest, content: &Content, finish: Finish) -> Vec<Event> {
        let chunk = |choices: Value| {
            json!({
                "id": "chatcmpl-fake", "object": "chat.completion.chunk", "created": 0,
                "model": request.model(), "choices": choices,
            })
        };
        let delta = |delta: Value| Event::bare(chunk(json!([{"index": 0, "delta": delta}])));
        let mut events = match content {
            Content::Text(text) => deltas(text)
                .into_iter()
                .map(|piece| delta(json!({"content": piece})))
                .collect(),
            Content::Null => vec![delta(json!({"content": null}))],
            Content::Empty => Vec::new(),
            Content::Tool { .. } => vec![delta(json!({"tool_calls": [tool_call(content)]}))],
        };
        let last =
            json!([{"index": 0, "delta": {}, "finish_reason": finish_reason(content, finish)}]);
        let mut last = chunk(if *content == Content::Empty {
            json!([])
        } else {
            last
        });
        last["usage"] = usage(request, content);
        events.push(Event::bare(last));
        events
    }

    fn refusal(&self, status: u16, message: &str, _retry_after: Option<&str>) -> Value {
        refusal(status, message)
    }

    fn failure(&self, message: &str) -> Event {
        Event::bare(refusal(500, message))
    }
}

/// An error object as OpenAI writes it, the same for chat completions and responses.
pub(crate) fn refusal(status: u16, message: &str) -> Value {
    let (kind, code) = match status {
        401 => ("invalid_request_error", "invalid_api_key"),
        429 => ("requests", "rate_limit_exceeded"),
        404 => ("invalid_request_error", "model_not_found"),
        500.. => ("server_error", "server_error"),
        _ => ("invalid_request_error", "invalid_request"),
    };
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}

fn tool_call(content: &Content) -> Value {
    let Content::Tool { name, input } = content else {
        return Value::Null;
    };
    json!({
        "index": 0, "id": "call_fake", "type": "function",
        "function": {"name": name, "arguments": input.to_string()},
    })
}

fn finish_reason(content: &Content, finish: Finish) -> &'static str {
    match (content, finish) {
        (Content::Tool { .. }, _) => "tool_calls",
        (_, Finish::Done) => "stop",
        (_, Finish::Limit) => "length",
    }
}

/// A usage that depends on the lengths.
fn usage(request: &SeenRequest, content: &Content) -> Value {
    let prompt = request.prompt_tokens();
    let answer = if let Content::Text(text) = content {
        tokens(text)
    } else {
        0
    };
    json!({"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer})
}
