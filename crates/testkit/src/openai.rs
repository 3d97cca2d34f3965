//! A model server that speaks OpenAI's chat completions, and misbehaves on request.
//!
//! Every request is recorded before it is answered, so a test can prove that none was made. Replies come
//! from a script (in order, the last one again and again) or from a function of the request.
//!
//! The place for Anthropic's `/v1/messages` (plain and as a stream, with `count_tokens`) is a sibling module;
//! the real `claude` client needs it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Response, StatusCode, Uri};
use axum::routing::{get, post};
use futures_util::stream;
use serde_json::{Value, json};

use crate::server::LoopbackServer;

/// What the server does with one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Answers well, and says that the answer is complete.
    Answer(String),
    /// Answers, and says that the answer was cut at the token limit.
    CutAnswer(String),
    /// Answers well, a few bytes at a time with this pause between them.
    SlowAnswer(String, Duration),
    /// Answers well after this long.
    LateAnswer(String, Duration),
    /// Refuses with this status and an error object whose message quotes the request's key and prompt, as
    /// some servers do.
    Status(u16),
    /// 429.
    RateLimited(RetryAfter),
    /// Sends this location with 302.
    Redirect(String),
    /// Accepts the request and never says a word.
    Hang,
    /// Closes the connection without an answer.
    Drop,
    /// Sends half of a good answer and closes the connection.
    DropHalfway,
    /// 200 with text that is not JSON.
    BadJson,
    /// 200 with an HTML page.
    Html,
    /// 200 with an empty list of choices.
    EmptyChoices,
    /// 200 with a choice whose content is null.
    NullContent,
    /// 200 with content of this many bytes.
    Huge(usize),
    /// 200 with JSON that holds bytes which are not UTF-8.
    InvalidUtf8,
    /// 200 and a body that never ends.
    Endless,
    /// Exactly this body with this status.
    Raw(u16, Vec<u8>),
}

/// The `retry-after` header of a 429.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetryAfter {
    /// None.
    Absent,
    /// With this value, which need not be sensible.
    Value(String),
}

/// One request as it came in.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenRequest {
    /// Path and query.
    pub path: String,
    /// Header names in lowercase with their values, in the order of arrival.
    pub headers: Vec<(String, String)>,
    /// The body as JSON; null when it is none.
    pub body: Value,
}

impl SeenRequest {
    /// The value of a header, by its lowercase name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// An OpenAI-compatible server on loopback; ends when it is dropped.
pub struct FakeOpenAi {
    server: LoopbackServer,
    seen: Arc<Mutex<Vec<SeenRequest>>>,
}

type Answerer = Box<dyn FnMut(&SeenRequest) -> Reply + Send>;

#[derive(Clone)]
struct Shared {
    seen: Arc<Mutex<Vec<SeenRequest>>>,
    answerer: Arc<Mutex<Answerer>>,
}

impl FakeOpenAi {
    /// Starts a server that gives these replies in order and repeats the last one for ever.
    #[must_use]
    pub fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let mut replies: std::collections::VecDeque<Reply> = replies.into_iter().collect();
        assert!(!replies.is_empty(), "a scripted server needs at least one reply");
        Self::answering(move |_| {
            let next = replies.pop_front().unwrap_or(Reply::Hang);
            if replies.is_empty() {
                replies.push_back(next.clone());
            }
            next
        })
    }

    /// Starts a server whose replies depend on the request.
    #[must_use]
    pub fn answering(answerer: impl FnMut(&SeenRequest) -> Reply + Send + 'static) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let shared = Shared { seen: Arc::clone(&seen), answerer: Arc::new(Mutex::new(Box::new(answerer))) };
        let router = Router::new()
            .route("/v1/chat/completions", post(complete))
            .route("/v1/models", get(models))
            .with_state(shared);
        Self { server: LoopbackServer::start(router), seen }
    }

    /// The address up to and including `/v1`, for a `base_url`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.server.address())
    }

    /// Every request so far.
    #[must_use]
    pub fn requests(&self) -> Vec<SeenRequest> {
        lock(&self.seen).clone()
    }
}

async fn models() -> Response<Body> {
    whole(200, "application/json", json!({"object": "list", "data": [{"id": "fake-model"}]}).to_string())
}

async fn complete(State(shared): State<Shared>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response<Body> {
    let request = SeenRequest {
        path: uri.to_string(),
        headers: (headers.iter())
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
            .collect(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    };
    lock(&shared.seen).push(request.clone());
    let reply = (lock(&shared.answerer))(&request);
    answer(&request, reply).await
}

async fn answer(request: &SeenRequest, reply: Reply) -> Response<Body> {
    let completed = |text: &str| completion(request, &json!(text), "stop");
    match reply {
        Reply::Answer(text) => whole(200, "application/json", completed(&text)),
        Reply::CutAnswer(text) => whole(200, "application/json", completion(request, &json!(text), "length")),
        Reply::SlowAnswer(text, pause) => slow(completed(&text), pause),
        Reply::LateAnswer(text, pause) => {
            tokio::time::sleep(pause).await;
            whole(200, "application/json", completed(&text))
        }
        Reply::Status(status) => whole(status, "application/json", refusal(request)),
        Reply::RateLimited(retry_after) => {
            let mut response = whole(429, "application/json", refusal(request));
            if let RetryAfter::Value(value) = retry_after {
                let value = value.parse().expect("a retry-after that fits into a header");
                response.headers_mut().insert("retry-after", value);
            }
            response
        }
        Reply::Redirect(location) => {
            let mut response = whole(302, "text/plain", String::new());
            response
                .headers_mut()
                .insert("location", location.parse().expect("a location that fits into a header"));
            response
        }
        Reply::Hang => std::future::pending().await,
        // Unwinding ends this connection's task, which closes the socket; `resume_unwind` prints nothing.
        Reply::Drop => std::panic::resume_unwind(Box::new("connection dropped on request")),
        Reply::DropHalfway => halfway(completed("an answer that will never arrive whole")),
        Reply::BadJson => whole(200, "application/json", "{\"choices\": [".to_owned()),
        Reply::Html => whole(200, "text/html", "<!doctype html><title>Welcome</title>".to_owned()),
        Reply::EmptyChoices => {
            whole(200, "application/json", json!({"model": "m", "choices": []}).to_string())
        }
        Reply::NullContent => whole(200, "application/json", completion(request, &Value::Null, "stop")),
        Reply::Huge(bytes) => whole(200, "application/json", completed(&"x".repeat(bytes))),
        Reply::InvalidUtf8 => {
            let mut body = completed("@@").into_bytes();
            for byte in body.iter_mut().filter(|byte| **byte == b'@') {
                *byte = 0xff;
            }
            whole(200, "application/json", body)
        }
        Reply::Endless => endless(),
        Reply::Raw(status, body) => whole(status, "application/json", body),
    }
}

/// A completion of the shape the real servers send, with a usage that depends on the lengths.
fn completion(request: &SeenRequest, content: &Value, finish_reason: &str) -> String {
    let tokens = |bytes: usize| bytes.div_ceil(4);
    let prompt = tokens(request.body["messages"].to_string().len());
    let answer = tokens(content.as_str().map_or(0, str::len));
    json!({
        "id": "chatcmpl-fake", "object": "chat.completion", "created": 0,
        "model": request.body["model"],
        "choices": [{
            "index": 0, "finish_reason": finish_reason,
            "message": {"role": "assistant", "content": content},
        }],
        "usage": {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer},
    })
    .to_string()
}

fn refusal(request: &SeenRequest) -> String {
    let quoted = format!("refused: {:?} {}", request.header("authorization"), request.body["messages"]);
    json!({"error": {"message": quoted, "type": "invalid_request_error"}}).to_string()
}

fn whole(status: u16, content_type: &'static str, body: impl Into<Body>) -> Response<Body> {
    respond(status, content_type, body.into())
}

fn slow(text: String, pause: Duration) -> Response<Body> {
    let pieces: Vec<Bytes> = text.as_bytes().chunks(16).map(Bytes::copy_from_slice).collect();
    let stream = stream::unfold(pieces.into_iter(), move |mut pieces| async move {
        let piece = pieces.next()?;
        tokio::time::sleep(pause).await;
        Some((Ok::<_, std::io::Error>(piece), pieces))
    });
    respond(200, "application/json", Body::from_stream(stream))
}

fn halfway(text: String) -> Response<Body> {
    let half = Bytes::copy_from_slice(&text.as_bytes()[..text.len() / 2]);
    let pieces = [Ok(half), Err(std::io::Error::from(std::io::ErrorKind::ConnectionAborted))];
    respond(200, "application/json", Body::from_stream(stream::iter(pieces)))
}

fn endless() -> Response<Body> {
    let stream = stream::unfold((), |()| async {
        // Slow enough that a reader without a time limit would wait for ever under its byte limit.
        tokio::time::sleep(Duration::from_millis(10)).await;
        Some((Ok::<_, std::io::Error>(Bytes::from_static(b"{\"a\":[")), ()))
    });
    respond(200, "application/json", Body::from_stream(stream))
}

fn respond(status: u16, content_type: &'static str, body: Body) -> Response<Body> {
    let status = StatusCode::from_u16(status).expect("a status between 100 and 999");
    Response::builder()
        .status(status)
        .header("content-type", content_type)
        .body(body)
        .expect("a valid response")
}

/// A test that panicked while it held the lock has failed already; what the lock guards is still whole.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
