//! What the fake GitHub does instead of answering well.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::Response;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

/// An answer that a test asked for.
#[derive(Debug, Clone)]
pub enum Misbehaviour {
    /// Exactly this: a status, headers and a body.
    Raw {
        /// The HTTP status code.
        status: u16,
        /// Header names with their values.
        headers: Vec<(String, String)>,
        /// The body, byte for byte.
        body: Vec<u8>,
    },
    /// The good answer with these headers besides.
    WithHeaders(Vec<(String, String)>),
    /// The good answer, a byte at a time with this pause between.
    SlowBody(Duration),
    /// The good answer, after this pause.
    Late(Duration),
    /// Accepts the request and never says a word.
    Hang,
    /// Closes the connection without an answer.
    Drop,
    /// Half of the good answer, then the connection is closed.
    CutHalfway,
    /// Half of the good answer with a length that says it is whole: a truncated archive, or broken JSON.
    EndHalfway,
    /// 200 with text that is not JSON.
    BadJson,
    /// 200 with this many bytes of JSON.
    Huge(usize),
    /// 200 and a body that never ends.
    Endless,
}

/// How often a misbehaviour happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    /// One request.
    Once,
    /// This many requests.
    Exactly(usize),
    /// Every request.
    Always,
}

impl Misbehaviour {
    /// GitHub's refusal with this status.
    #[must_use]
    pub fn status(status: u16) -> Self {
        let message = match status {
            401 => "Bad credentials",
            403 => "Resource not accessible by personal access token",
            404 => "Not Found",
            409 => "Git Repository is empty.",
            422 => "Validation Failed",
            500 => "Server Error",
            503 => "Service unavailable",
            _ => "Refused",
        };
        Self::refusal(status, message, &[])
    }

    /// The hourly limit is used up until this second since 1970: 403, as GitHub sends it.
    #[must_use]
    pub fn primary_limit(reset: i64) -> Self {
        let reset = reset.to_string();
        let headers = [
            ("x-ratelimit-limit", "60"),
            ("x-ratelimit-remaining", "0"),
            ("x-ratelimit-used", "60"),
            ("x-ratelimit-reset", &reset),
        ];
        Self::refusal(403, "API rate limit exceeded for user ID 1.", &headers)
    }

    /// Too many requests in a short time: 429, to be tried again after so many seconds.
    #[must_use]
    pub fn secondary_limit(retry_after: u64) -> Self {
        let seconds = retry_after.to_string();
        let headers = [
            ("retry-after", seconds.as_str()),
            ("x-ratelimit-remaining", "42"),
        ];
        Self::refusal(
            429,
            "You have exceeded a secondary rate limit. Please wait a few minutes.",
            &headers,
        )
    }

    /// The same as 403, without a word about when.
    #[must_use]
    pub fn silent_secondary_limit() -> Self {
        let headers = [("x-ratelimit-remaining", "42")];
        Self::refusal(
            403,
            "You have exceeded a secondary rate limit. Please wait a few minutes.",
            &headers,
        )
    }

    /// A refusal with this message and these headers.
    #[must_use]
    pub fn refusal(status: u16, message: &str, headers: &[(&str, &str)]) -> Self {
        let body = json!({"message": message, "documentation_url": "https://docs.github.com/rest"});
        Self::response(status, &body, headers)
    }

    /// 200 with this JSON.
    #[must_use]
    pub fn answer(body: &Value) -> Self {
        Self::response(200, body, &[])
    }

    fn response(status: u16, body: &Value, headers: &[(&str, &str)]) -> Self {
        let mut headers: Vec<(String, String)> = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        headers.push((
            "content-type".to_owned(),
            "application/json; charset=utf-8".to_owned(),
        ));
        Self::Raw {
            status,
            headers,
            body: body.to_string().into_bytes(),
        }
    }
}

/// An answer before it is sent.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn json(status: u16, body: &Value) -> Self {
        let content_type = (
            "content-type".to_owned(),
            "application/json; charset=utf-8".to_owned(),
        );
        Self {
            status,
            headers: vec![content_type],
            body: body.to_string().into_bytes(),
        }
    }

    /// Sends it well.
    pub(super) fn well(self) -> Response<Body> {
        let body = Body::from(self.body.clone());
        self.with(body)
    }

    /// Sends it as a test asked.
    pub(super) async fn but(mut self, how: Misbehaviour) -> Response<Body> {
        match how {
            Misbehaviour::Raw {
                status,
                headers,
                body,
            } => Self {
                status,
                headers,
                body,
            }
            .well(),
            Misbehaviour::WithHeaders(more) => {
                self.headers.extend(more);
                self.well()
            }
            Misbehaviour::SlowBody(pause) => {
                let stream =
                    stream::unfold(self.body.clone().into_iter(), move |mut bytes| async move {
                        let byte = Bytes::from(vec![bytes.next()?]);
                        tokio::time::sleep(pause).await;
                        Some((Ok::<_, std::io::Error>(byte), bytes))
                    });
                self.with(Body::from_stream(stream))
            }
            Misbehaviour::Late(pause) => {
                tokio::time::sleep(pause).await;
                self.well()
            }
            Misbehaviour::Hang => std::future::pending().await,
            // Unwinding ends this connection's task, which closes the socket; `resume_unwind` prints nothing.
            Misbehaviour::Drop => {
                std::panic::resume_unwind(Box::new("connection dropped on request"))
            }
            Misbehaviour::CutHalfway => {
                let half = Bytes::copy_from_slice(self.half());
                let first = stream::once(async { Ok(half) });
                let last = stream::once(async move {
                    // A moment in which the first half leaves the house: what is aborted at once is never sent.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    Err(std::io::Error::from(std::io::ErrorKind::ConnectionAborted))
                });
                self.with(Body::from_stream(first.chain(last)))
            }
            Misbehaviour::EndHalfway => {
                self.body = self.half().to_vec();
                self.well()
            }
            Misbehaviour::BadJson => Self {
                body: b"{\"items\": [".to_vec(),
                ..self
            }
            .well(),
            Misbehaviour::Huge(bytes) => Self {
                body: format!("{{\"a\":\"{}\"}}", "x".repeat(bytes)).into_bytes(),
                ..self
            }
            .well(),
            Misbehaviour::Endless => {
                let stream = stream::unfold((), |()| async {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    Some((
                        Ok::<_, std::io::Error>(Bytes::from_static(&[b' '; 4096])),
                        (),
                    ))
                });
                self.with(Body::from_stream(stream))
            }
        }
    }

    fn half(&self) -> &[u8] {
        self.body.get(..self.body.len() / 2).unwrap_or_default()
    }

    fn with(&self, body: Body) -> Response<Body> {
        let mut response = Response::builder().status(self.status);
        for (name, value) in &self.headers {
            response = response.header(name, value);
        }
        response.body(body).expect("headers that HTTP allows")
    }
}
