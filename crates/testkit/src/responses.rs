//! OpenAI's responses, plain and as the stream that `codex` reads.

use serde_json::{Value, json};

use crate::openai;
use crate::seen::{SeenRequest, tokens};
use crate::wire::{Content, Dialect, Event, Finish, deltas};

/// `POST /v1/responses`.
pub(crate) struct Responses;

impl Dialect for Responses {
    fn plain(&self, request: &SeenRequest, content: &Content, finish: Finish) -> Value {
        let mut response = begun(request);
        response["output"] = output(content).map_or_else(|| json!([]), |item| json!([item]));
        let answer = if let Content::Text(text) = content {
            tokens(text)
        } else {
            0
        };
        response["usage"] = json!({
            "input_tokens": request.prompt_tokens(),
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": answer,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": request.prompt_tokens() + answer,
        });
        match finish {
            Finish::Done => response["status"] = "completed".into(),
            Finish::Limit => {
                response["status"] = "incomplete".into();
                response["incomplete_details"] = json!({"reason": "max_output_tokens"});
            }
        }
        response
    }

    fn events(&self, request: &SeenRequest, content: &Content, finish: Finish) -> Vec<Event> {
        let mut events = vec![Event::new(
            "response.created",
            json!({"response": begun(request)}),
        )];
        if let Some(item) = output(content) {
            let mut opened = item.clone();
            opened["status"] = "in_progress".into();
            if let Content::Text(text) = content {
                opened["content"] = json!([]);
                events.push(item_event("response.output_item.added", &opened));
                events.extend(deltas(text).into_iter().map(|piece| {
                    Event::new(
                        "response.output_text.delta",
                        json!({"item_id": item["id"], "output_index": 0, "content_index": 0, "delta": piece}),
                    )
                }));
            } else {
                events.push(item_event("response.output_item.added", &opened));
            }
            events.push(item_event("response.output_item.done", &item));
        }
        let last = match finish {
            Finish::Done => "response.completed",
            Finish::Limit => "response.incomplete",
        };
        events.push(Event::new(
            last,
            json!({"response": self.plain(request, content, finish)}),
        ));
        for (number, event) in events.iter_mut().enumerate() {
            event.set("sequence_number", number.into());
        }
        events
    }

    fn refusal(&self, status: u16, message: &str, _retry_after: Option<&str>) -> Value {
        openai::refusal(status, message)
    }

    fn failure(&self, message: &str) -> Event {
        let error = json!({"code": "server_error", "message": message});
        Event::new(
            "response.failed",
            json!({"response": {"id": "resp_fake", "object": "response", "status": "failed", "error": error}}),
        )
    }
}

fn begun(request: &SeenRequest) -> Value {
    json!({
        "id": "resp_fake", "object": "response", "created_at": 0, "status": "in_progress",
        "model": request.model(), "output": [], "error": null, "incomplete_details": null, "usage": null,
    })
}

fn output(content: &Content) -> Option<Value> {
    match content {
        Content::Text(text) => Some(json!({
            "id": "msg_fake", "type": "message", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        })),
        Content::Null => Some(json!({
            "id": "msg_fake", "type": "message", "role": "assistant", "status": "completed", "content": null,
        })),
        Content::Empty => None,
        Content::Tool { name, input } => Some(json!({
            "id": "fc_fake", "type": "function_call", "status": "completed", "call_id": "call_fake",
            "name": name, "arguments": input.to_string(),
        })),
    }
}

fn item_event(name: &str, item: &Value) -> Event {
    Event::new(name, json!({"output_index": 0, "item": item}))
}
