//! Turns a reply into bytes on a connection: the same misbehaviour for every family, each in its own shape.
//!
//! A family ([`Dialect`]) only knows how to write an answer, a refusal and an error within a stream.
//! How the bytes arrive (at once, slowly, half of them, never) is decided here.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{Response, StatusCode};
use futures_util::{StreamExt, stream};
use serde_json::Value;

use crate::reply::{Reply, RetryAfter};
use crate::seen::{Family, SeenRequest};
use crate::{anthropic, gemini, openai, responses};

/// What a model has to say.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Content {
    /// An answer.
    Text(String),
    /// A choice without content.
    Null,
    /// No choice at all.
    Empty,
    /// A tool to be called.
    Tool {
        name: String,
        /// What it is called with.
        input: Value,
    },
}

/// Why the model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finish {
    /// It was done.
    Done,
    /// It reached the limit of tokens.
    Limit,
}

/// How a family writes.
pub(crate) trait Dialect: Sync {
    /// A whole answer in one JSON object.
    fn plain(&self, request: &SeenRequest, content: &Content, finish: Finish) -> Value;

    /// A whole answer as server-sent events.
    fn events(&self, request: &SeenRequest, content: &Content, finish: Finish) -> Vec<Event>;

    /// The body of a refusal with this status; a 429 may say in seconds when to come back.
    fn refusal(&self, status: u16, message: &str, retry_after: Option<&str>) -> Value;

    /// The event by which a stream that began well says that it failed.
    fn failure(&self, message: &str) -> Event;
}

/// One server-sent event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    name: Option<String>,
    data: Value,
}

impl Event {
    /// An event that has a name, which its data repeats as `type`.
    pub(crate) fn new(name: &str, mut data: Value) -> Self {
        data["type"] = name.into();
        Self {
            name: Some(name.to_owned()),
            data,
        }
    }

    /// An event that is only data.
    pub(crate) fn bare(data: Value) -> Self {
        Self { name: None, data }
    }

    /// Adds a field to the data.
    pub(crate) fn set(&mut self, field: &str, value: Value) {
        self.data[field] = value;
    }

    fn text(&self) -> String {
        let name = self
            .name
            .as_ref()
            .map_or(String::new(), |name| format!("event: {name}\n"));
        format!("{name}data: {}\n\n", self.data)
    }
}

/// Plays a reply to a request for an answer.
pub(crate) async fn answer(request: &SeenRequest, reply: Reply) -> Response<Body> {
    let dialect = dialect(request);
    let good = |content: Content, finish: Finish| Pieces::new(dialect, request, &content, finish);
    let text = |text: String| good(Content::Text(text), Finish::Done);
    match reply {
        Reply::Answer(answer) => text(answer).into_response(),
        Reply::CutAnswer(answer) => good(Content::Text(answer), Finish::Limit).into_response(),
        Reply::SlowAnswer(answer, pause) => text(answer).slow(pause),
        Reply::LateAnswer(answer, pause) => {
            tokio::time::sleep(pause).await;
            text(answer).into_response()
        }
        Reply::ToolCall(name, input) => {
            good(Content::Tool { name, input }, Finish::Done).into_response()
        }
        Reply::Status(status) => refuse(dialect, request, status, None),
        Reply::RateLimited(RetryAfter::Absent) => refuse(dialect, request, 429, None),
        Reply::RateLimited(RetryAfter::Value(value)) => refuse(dialect, request, 429, Some(&value)),
        Reply::Redirect(location) => {
            let mut response = respond(302, "text/plain", Body::empty());
            let location = location
                .parse()
                .expect("a location that fits into a header");
            response.headers_mut().insert("location", location);
            response
        }
        Reply::Hang => std::future::pending().await,
        // Unwinding ends this connection's task, which closes the socket; `resume_unwind` prints nothing.
        Reply::Drop => std::panic::resume_unwind(Box::new("connection dropped on request")),
        Reply::DropHalfway => text(UNFINISHED.to_owned()).half(AfterHalf::Drop),
        Reply::EndHalfway => text(UNFINISHED.to_owned()).half(AfterHalf::End),
        Reply::FailHalfway if request.is_streamed() => {
            let failure = dialect.failure(&quote(request)).text();
            text(UNFINISHED.to_owned()).half(AfterHalf::Say(failure))
        }
        Reply::FailHalfway => refuse(dialect, request, 500, None),
        Reply::BadJson if request.is_streamed() => respond(
            200,
            EVENT_STREAM,
            Body::from("event: message_start\ndata: {\"choices\": [\n\n"),
        ),
        Reply::BadJson => respond(200, JSON, Body::from("{\"choices\": [")),
        Reply::Html => respond(
            200,
            "text/html",
            Body::from("<!doctype html><title>Welcome</title>"),
        ),
        Reply::EmptyChoices => good(Content::Empty, Finish::Done).into_response(),
        Reply::NullContent => good(Content::Null, Finish::Done).into_response(),
        Reply::Huge(bytes) => text("x".repeat(bytes)).into_response(),
        Reply::InvalidUtf8 => text("@@".to_owned()).with_invalid_utf8().into_response(),
        Reply::Endless => endless(request),
        Reply::Raw(status, body) => respond(status, JSON, Body::from(body)),
    }
}

/// A JSON body with this status.
pub(crate) fn json(status: u16, body: &Value) -> Response<Body> {
    respond(status, JSON, Body::from(body.to_string()))
}

/// A text in the pieces in which a stream sends it: of a few characters each.
pub(crate) fn deltas(text: &str) -> Vec<String> {
    // A huge answer must not become millions of events.
    let length = text.len().div_ceil(64).max(12);
    let characters: Vec<char> = text.chars().collect();
    characters
        .chunks(length)
        .map(|piece| piece.iter().collect())
        .collect()
}

const JSON: &str = "application/json";
const EVENT_STREAM: &str = "text/event-stream";
const UNFINISHED: &str =
    "an answer that will never arrive whole, whatever the reader does about it";

enum AfterHalf {
    Drop,
    End,
    Say(String),
}

/// An answer, cut where it may pause.
struct Pieces {
    content_type: &'static str,
    pieces: Vec<Vec<u8>>,
}

impl Pieces {
    fn new(
        dialect: &dyn Dialect,
        request: &SeenRequest,
        content: &Content,
        finish: Finish,
    ) -> Self {
        if request.is_streamed() {
            let events = dialect.events(request, content, finish);
            let pieces = events
                .iter()
                .map(|event| event.text().into_bytes())
                .collect();
            return Self {
                content_type: EVENT_STREAM,
                pieces,
            };
        }
        let body = dialect.plain(request, content, finish).to_string();
        Self {
            content_type: JSON,
            pieces: body.as_bytes().chunks(16).map(<[u8]>::to_vec).collect(),
        }
    }

    fn with_invalid_utf8(mut self) -> Self {
        for byte in self
            .pieces
            .iter_mut()
            .flatten()
            .filter(|byte| **byte == b'@')
        {
            *byte = 0xff;
        }
        self
    }

    fn into_response(self) -> Response<Body> {
        respond(200, self.content_type, Body::from(self.pieces.concat()))
    }

    fn slow(self, pause: Duration) -> Response<Body> {
        let stream = stream::unfold(self.pieces.into_iter(), move |mut pieces| async move {
            let piece = Bytes::from(pieces.next()?);
            tokio::time::sleep(pause).await;
            Some((Ok::<_, std::io::Error>(piece), pieces))
        });
        respond(200, self.content_type, Body::from_stream(stream))
    }

    fn half(self, then: AfterHalf) -> Response<Body> {
        let half = Bytes::from(self.pieces[..self.pieces.len() / 2].concat());
        let first = stream::once(async { Ok(half) });
        let last = stream::once(async move {
            // A moment in which the first half leaves the house: what is aborted at once is never sent.
            tokio::time::sleep(Duration::from_millis(50)).await;
            match then {
                AfterHalf::Drop => Err(std::io::Error::from(std::io::ErrorKind::ConnectionAborted)),
                AfterHalf::End => Ok(Bytes::new()),
                AfterHalf::Say(text) => Ok(Bytes::from(text)),
            }
        });
        respond(200, self.content_type, Body::from_stream(first.chain(last)))
    }
}

fn dialect(request: &SeenRequest) -> &'static dyn Dialect {
    match request.family {
        Family::OpenAi if request.route() == "/v1/responses" => &responses::Responses,
        Family::OpenAi => &openai::ChatCompletions,
        Family::Anthropic => &anthropic::Messages,
        Family::Gemini => &gemini::GenerateContent,
    }
}

fn refuse(
    dialect: &dyn Dialect,
    request: &SeenRequest,
    status: u16,
    retry_after: Option<&str>,
) -> Response<Body> {
    let mut response = json(
        status,
        &dialect.refusal(status, &quote(request), retry_after),
    );
    if let Some(value) = retry_after {
        let value = value
            .parse()
            .expect("a retry-after that fits into a header");
        response.headers_mut().insert("retry-after", value);
    }
    response
}

fn quote(request: &SeenRequest) -> String {
    format!("refused: {:?} {}", request.key(), request.conversation())
}

fn endless(request: &SeenRequest) -> Response<Body> {
    let (content_type, piece) = match request.is_streamed() {
        true => (EVENT_STREAM, ": nothing yet\n\n"),
        false => (JSON, "{\"a\":["),
    };
    let stream = stream::unfold((), move |()| async move {
        // Slow enough that a reader without a time limit would wait for ever under its byte limit.
        tokio::time::sleep(Duration::from_millis(10)).await;
        Some((
            Ok::<_, std::io::Error>(Bytes::from_static(piece.as_bytes())),
            (),
        ))
    });
    respond(200, content_type, Body::from_stream(stream))
}

fn respond(status: u16, content_type: &'static str, body: Body) -> Response<Body> {
    let status = StatusCode::from_u16(status).expect("a status between 100 and 999");
    Response::builder()
        .status(status)
        .header("content-type", content_type)
        .body(body)
        .expect("a valid response")
}
