//! Gemini's `generateContent`, plain and as the stream that `gemini` reads.

use serde_json::{Value, json};

use crate::seen::{SeenRequest, tokens};
use crate::wire::{Content, Dialect, Event, Finish, deltas};

/// `POST /v1beta/models/{model}:generateContent` and `:streamGenerateContent`.
pub(crate) struct GenerateContent;

impl Dialect for GenerateContent {
    fn plain(&self, request: &SeenRequest, content: &Content, finish: Finish) -> Value {
        let candidate = match content {
            Content::Text(text) => candidate(json!([{"text": text}])),
            Content::Null => json!({"content": null, "index": 0}),
            Content::Empty => return chunk(request, json!([]), 0),
            Content::Tool { .. } => candidate(json!([function_call(content)])),
        };
        let answer = if let Content::Text(text) = content {
            tokens(text)
        } else {
            0
        };
        chunk(request, json!([finished(candidate, finish)]), answer)
    }

    fn events(&self, request: &SeenRequest, content: &Content, finish: Finish) -> Vec<Event> {
        let Content::Text(text) = content else {
            return vec![Event::bare(self.plain(request, content, finish))];
        };
        let mut stream = String::new();
        let pieces = deltas(text);
        let count = pieces.len();
        let event = |(number, piece): (usize, String)| {
            stream.push_str(&piece);
            let candidate = candidate(json!([{"text": piece}]));
            let candidate = if number + 1 == count {
                finished(candidate, finish)
            } else {
                candidate
            };
            Event::bare(chunk(request, json!([candidate]), tokens(&stream)))
        };
        pieces.into_iter().enumerate().map(event).collect()
    }

    fn refusal(&self, status: u16, message: &str, retry_after: Option<&str>) -> Value {
        let name = match status {
            400 => "INVALID_ARGUMENT",
            401 => "UNAUTHENTICATED",
            403 => "PERMISSION_DENIED",
            404 => "NOT_FOUND",
            429 => "RESOURCE_EXHAUSTED",
            503 => "UNAVAILABLE",
            500.. => "INTERNAL",
            _ => "FAILED_PRECONDITION",
        };
        let mut error = json!({"code": status, "message": message, "status": name});
        if let Some(seconds) = retry_after {
            let kind = "type.googleapis.com/google.rpc.RetryInfo";
            error["details"] = json!([{"@type": kind, "retryDelay": format!("{seconds}s")}]);
        }
        json!({"error": error})
    }

    fn failure(&self, message: &str) -> Event {
        Event::bare(json!({"error": {"code": 503, "message": message, "status": "UNAVAILABLE"}}))
    }
}

fn candidate(parts: Value) -> Value {
    json!({"content": {"role": "model", "parts": parts}, "index": 0})
}

fn finished(mut candidate: Value, finish: Finish) -> Value {
    candidate["finishReason"] = match finish {
        Finish::Done => "STOP".into(),
        Finish::Limit => "MAX_TOKENS".into(),
    };
    candidate
}

fn function_call(content: &Content) -> Value {
    let Content::Tool { name, input } = content else {
        return Value::Null;
    };
    json!({"functionCall": {"name": name, "args": input}})
}

/// One object of the answer, with a usage that depends on the lengths.
fn chunk(request: &SeenRequest, candidates: Value, answer: usize) -> Value {
    let prompt = request.prompt_tokens();
    json!({
        "candidates": candidates,
        "usageMetadata": {
            "promptTokenCount": prompt, "candidatesTokenCount": answer, "totalTokenCount": prompt + answer,
        },
        "modelVersion": request.model(), "responseId": "fake",
    })
}
