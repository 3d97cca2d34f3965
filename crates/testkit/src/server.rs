//! A server that speaks the model providers' APIs, and misbehaves on request.
//!
//! Replies come from a script (in order, the last one again and again) or from a function of the request.
//! Only requests for an answer use the script up; the rest (lists of models, token counts, probes) is answered
//! well at once.
//!
//! What always holds: every request is recorded before it is answered, so a test can prove that none was made.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, Response, Uri};
use serde_json::json;

use crate::loopback::LoopbackServer;
use crate::reply::Reply;
use crate::seen::{Endpoint, Family, SeenRequest};
use crate::wire;

/// A server on loopback that plays every provider's API; ends when it is dropped.
pub struct FakeApi {
    server: LoopbackServer,
    seen: Arc<Mutex<Vec<SeenRequest>>>,
}

/// The server, as tests name it that speak only chat completions to it.
pub type FakeOpenAi = FakeApi;

type Answerer = Box<dyn FnMut(&SeenRequest) -> Reply + Send>;

#[derive(Clone)]
struct Shared {
    seen: Arc<Mutex<Vec<SeenRequest>>>,
    answerer: Arc<Mutex<Answerer>>,
}

impl FakeApi {
    /// Starts a server that gives these replies in order and repeats the last one for ever.
    #[must_use]
    pub fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let mut replies: VecDeque<Reply> = replies.into_iter().collect();
        assert!(
            !replies.is_empty(),
            "a scripted server needs at least one reply"
        );
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
        let shared = Shared {
            seen: Arc::clone(&seen),
            answerer: Arc::new(Mutex::new(Box::new(answerer))),
        };
        let router = Router::new()
            .fallback(serve)
            .layer(DefaultBodyLimit::disable())
            .with_state(shared);
        Self {
            server: LoopbackServer::start(router),
            seen,
        }
    }

    /// The address alone, for clients that know their API's paths: `claude` and `gemini`.
    #[must_use]
    pub fn origin(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// The address up to and including `/v1`, for a `base_url`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("{}/v1", self.origin())
    }

    /// Every request so far.
    #[must_use]
    pub fn requests(&self) -> Vec<SeenRequest> {
        lock(&self.seen).clone()
    }

    /// The requests so far that asked for an answer of a model.
    #[must_use]
    pub fn completions(&self) -> Vec<SeenRequest> {
        let asks = |request: &&SeenRequest| request.endpoint == Endpoint::Completion;
        lock(&self.seen).iter().filter(asks).cloned().collect()
    }
}

async fn serve(
    State(shared): State<Shared>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let headers = (headers.iter())
        .map(|(name, value)| {
            (
                name.to_string(),
                String::from_utf8_lossy(value.as_bytes()).into_owned(),
            )
        })
        .collect();
    let request = SeenRequest::new(method.as_str(), uri.to_string(), headers, &body);
    lock(&shared.seen).push(request.clone());
    match request.endpoint {
        Endpoint::Completion => {
            let reply = (lock(&shared.answerer))(&request);
            wire::answer(&request, reply).await
        }
        Endpoint::TokenCount => wire::json(200, &token_count(&request)),
        Endpoint::Models => wire::json(200, &models(&request)),
        Endpoint::Probe => wire::json(200, &json!({})),
        Endpoint::Unknown => wire::json(
            404,
            &json!({"error": {"message": "no such path", "code": 404}}),
        ),
    }
}

fn token_count(request: &SeenRequest) -> serde_json::Value {
    match request.family {
        Family::Gemini => json!({"totalTokens": request.prompt_tokens()}),
        Family::OpenAi | Family::Anthropic => json!({"input_tokens": request.prompt_tokens()}),
    }
}

fn models(request: &SeenRequest) -> serde_json::Value {
    match request.family {
        Family::OpenAi => {
            json!({"object": "list", "data": [{"id": "fake-model", "object": "model"}]})
        }
        Family::Anthropic => json!({
            "data": [{
                "type": "model", "id": "fake-model", "display_name": "Fake", "created_at": "2024-01-01T00:00:00Z",
            }],
            "has_more": false, "first_id": "fake-model", "last_id": "fake-model",
        }),
        Family::Gemini => json!({"models": [{"name": "models/fake-model"}]}),
    }
}

/// A test that panicked while it held the lock has failed already; what the lock guards is still whole.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
