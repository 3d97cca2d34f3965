//! The one model server that an agent reaches: it forwards the requests of one wire, and bounds, records and answers them.
//!
//! A request is read whole, checked ([`request`]), scanned for secrets, reserved in the budget at its worst case, and sent
//! on with the user's key in place of the agent's token. The answer streams through while its usage is read ([`usage`]);
//! the reservation is settled and the exchange recorded before the last byte is passed on. A refusal has the form of the
//! wire, with a status that clients do not retry.
//!
//! What always holds: without the session's token nothing is forwarded; nothing is sent without a reservation; a request
//! whose usage did not arrive stays reserved in full; what was sent is recorded, also if the agent did not wait for its
//! answer. When the endpoint is closed, every request of it ends.

mod content;
mod exchanges;
mod in_flight;
mod refusal;
mod request;
mod usage;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response, Uri};
use crucible_host::http::{HttpClient, HttpError, HttpRequest, HttpStream, Payload};
use crucible_host::random;
use crucible_llm::{
    Amount, CallBudget, CallEnd, Limit, PlannedCall, Price, PriceTable, Reservation,
    ReservationError, Resource, Upstream, refuse_secrets,
};
use crucible_model::{ByteLimit, Digest, Secret};
use crucible_secrets::{ProvidedValues, Scanner};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

pub use exchanges::Exchanges;
use exchanges::{Exchange, ExchangeVersion};
use in_flight::InFlight;
use refusal::{Refusal, json_response, response};
use request::{BoundedRequest, Purpose, Route, bounded, deciding, forwarded_query};
use usage::{Usage, UsageReader};

use crate::error::AgentError;
use crate::profile::Wire;

/// The longest request.
const MAX_REQUEST: usize = 32 << 20;
/// The longest answer.
const MAX_ANSWER: ByteLimit = ByteLimit(64 << 20);
/// The longest answer that is kept in the record.
const MAX_KEPT: usize = 16 << 20;
/// Tokens that a provider may add to a request, for its tools.
const ADDED_TOKENS: u64 = 4096;
/// How often a token may be written to a cache that costs more than a plain one.
const CACHE_FACTOR: u64 = 2;
/// The status of a request that the budget refuses.
const UNPAID: u16 = 402;
/// Headers of an agent's request that are passed on.
const PASSED: [&str; 5] = [
    "accept",
    "anthropic-beta",
    "anthropic-version",
    "openai-beta",
    "user-agent",
];
/// The version that Anthropic's API requires, if the agent names none.
const ANTHROPIC_VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");

/// What an endpoint works with.
pub struct EndpointOptions {
    /// The API that the agent speaks.
    pub wire: Wire,
    /// Where requests are forwarded to.
    pub upstream: Upstream,
    /// The connections.
    pub http: Arc<HttpClient>,
    /// The budget that every request is reserved in.
    pub budget: Arc<CallBudget>,
    /// What models cost.
    pub prices: Arc<PriceTable>,
    /// The record of the session.
    pub exchanges: Exchanges,
    /// How long one request may take.
    pub timeout: Duration,
}

/// What a session has used so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndpointUse {
    /// The models that answered, as the agent named them.
    pub models: BTreeSet<String>,
    /// Requests for an answer.
    pub requests: u64,
    /// Requests that were answered from an interrupted session.
    pub reused: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Tokens that were sent.
    pub tokens_input: u64,
    /// Tokens that were received.
    pub tokens_output: u64,
    /// Millionths of a US dollar, as far as prices are known.
    pub micro_dollars: u64,
    /// Tools that the model asked for.
    pub tools: u64,
    /// The last of them.
    pub last_tool: Option<String>,
    /// Why the last refused request was refused.
    pub last_refusal: Option<String>,
    /// Requests that the budget refused since it last admitted one.
    pub unpaid: u64,
}

/// A running endpoint.
pub struct Endpoint {
    address: SocketAddr,
    token: Secret,
    used: watch::Receiver<EndpointUse>,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
    /// Ends when no request is in flight any more.
    in_flight: mpsc::Receiver<()>,
}

struct Shared {
    wire: Wire,
    upstream: Upstream,
    http: Arc<HttpClient>,
    budget: Arc<CallBudget>,
    prices: Arc<PriceTable>,
    exchanges: Exchanges,
    timeout: Duration,
    token: Secret,
    /// The user's key, which no answer may hold.
    keys: ProvidedValues,
    used: watch::Sender<EndpointUse>,
    /// The answers that are being passed on; `None` when the endpoint is over.
    passing: Mutex<Option<JoinSet<()>>>,
    /// What each request in flight holds a copy of; `None` when the endpoint is over.
    in_flight: Mutex<Option<mpsc::Sender<()>>>,
    /// The reservations that are being replaced by the actual usage.
    settling: watch::Sender<u64>,
    /// Whether the endpoint is over.
    is_over: watch::Sender<bool>,
}

impl Endpoint {
    /// Opens the endpoint on a free port of the loopback, with a token of its own.
    ///
    /// # Errors
    ///
    /// Fails if no port can be opened.
    pub async fn open(options: EndpointOptions) -> Result<Self, AgentError> {
        let EndpointOptions {
            wire,
            upstream,
            http,
            budget,
            prices,
            exchanges,
            timeout,
        } = options;
        let token = Secret::new(format!("crucible-{}", random::token()?));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let (sender, used) = watch::channel(EndpointUse::default());
        let (flying, in_flight) = mpsc::channel(1);
        let shared = Arc::new(Shared {
            wire,
            keys: ProvidedValues::new(&upstream.key),
            upstream,
            http,
            budget,
            prices,
            exchanges,
            timeout,
            token: token.clone(),
            used: sender,
            passing: Mutex::new(Some(JoinSet::new())),
            in_flight: Mutex::new(Some(flying)),
            settling: watch::Sender::new(0),
            is_over: watch::Sender::new(false),
        });
        let router = Router::new()
            .fallback(serve)
            .with_state(Arc::clone(&shared));
        let server = tokio::spawn(async move {
            let _never = axum::serve(listener, router).await;
        });
        Ok(Self {
            address,
            token,
            used,
            shared,
            server,
            in_flight,
        })
    }

    /// Its address, without a final `/`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The token of this session.
    #[must_use]
    pub fn token(&self) -> &Secret {
        &self.token
    }

    /// What the session has used, as it changes.
    #[must_use]
    pub fn used(&self) -> watch::Receiver<EndpointUse> {
        self.used.clone()
    }

    /// Ends every request, waits until all are recorded, and returns what the session has used.
    pub async fn close(mut self) -> EndpointUse {
        self.end();
        let _all_recorded = self.in_flight.recv().await;
        self.used.borrow().clone()
    }

    fn end(&self) {
        self.server.abort();
        self.shared.is_over.send_replace(true);
        drop(lock(&self.shared.in_flight).take());
        // Dropping the set ends what is in it.
        drop(lock(&self.shared.passing).take());
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.end();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let mut is_over = shared.is_over.subscribe();
    let handled = tokio::select! {
        handled = shared.handle(&method, &uri, &headers, body) => handled,
        _ = is_over.wait_for(|is_over| *is_over) => Err(session_is_over()),
    };
    match handled {
        Ok(response) => response,
        Err(refusal) => {
            shared.used.send_modify(|used| {
                used.refused += 1;
                used.unpaid += u64::from(refusal.status == UNPAID);
                used.last_refusal = Some(refusal.message.clone());
            });
            refusal.response(shared.wire)
        }
    }
}

impl Shared {
    async fn handle(
        self: &Arc<Self>,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<Response<Body>, Refusal> {
        let path = uri.path();
        let Some(route) = Route::parse(self.wire, method.as_str(), path) else {
            return Err(Refusal::new(
                404,
                format!("{method} {path} is not forwarded"),
            ));
        };
        if route == Route::Probe {
            return Ok(json_response(200, b"{}".to_vec()));
        }
        if !self.has_token(uri, headers) {
            return Err(Refusal::new(401, "the token is not that of this session"));
        }
        let target = self.target(uri);
        let passed = self.headers(headers);
        let outgoing: Vec<&str> = passed
            .iter()
            .map(|(_, value)| value.expose())
            .chain([target.as_str()])
            .collect();
        refuse_secrets(Scanner::builtin(), &json!(outgoing))
            .map_err(|secret| Refusal::new(400, secret.to_string()))?;
        let passed = self.with_key(passed);
        if route == Route::Models {
            let stream = self
                .send(target, passed, Payload::Nothing)
                .await
                .map_err(|error| broken(&error))?;
            return self
                .read_body(stream)
                .await
                .map(|(status, body)| json_response(status, body));
        }
        let bytes = axum::body::to_bytes(body, MAX_REQUEST).await;
        let bytes = bytes.map_err(|_| {
            Refusal::new(
                413,
                format!("the request is longer than {MAX_REQUEST} bytes, or broke off"),
            )
        })?;
        // An agent that looks at its own variables tells the model its token, which is nobody's secret but leaves for nowhere.
        let bytes = ProvidedValues::new([&self.token]).out_of(&bytes);
        let request: Value = serde_json::from_slice(&bytes)
            .map_err(|error| Refusal::new(400, format!("the request is not JSON: {error}")))?;
        let (api, purpose) = match route {
            Route::Answer(api) => (api, Purpose::Answer),
            Route::Count(api) => (api, Purpose::Count),
            Route::Probe | Route::Models => {
                return Err(Refusal::new(405, "the path takes no request"));
            }
        };
        let token_field = if self.upstream.provider == "openai" {
            "max_completion_tokens"
        } else {
            "max_tokens"
        };
        let bounded_request = bounded(
            (api, purpose),
            path,
            request,
            self.upstream.max_tokens,
            token_field,
        );
        let mut bounded_request = bounded_request.map_err(|why| Refusal::new(400, why))?;
        let text = bounded_request.body.to_string().into_bytes();
        let request = std::mem::take(&mut bounded_request.body);
        // A long conversation takes a while to scan; other requests go on meanwhile.
        let scanned = tokio::task::spawn_blocking(move || {
            refuse_secrets(Scanner::builtin(), &request).map(|()| request)
        });
        let request = scanned.await.map_err(|_| session_is_over())?;
        let request = request.map_err(|secret| Refusal::new(400, secret.to_string()));
        if purpose == Purpose::Count {
            request?;
            let stream = self
                .send(target, passed, Payload::Json(text))
                .await
                .map_err(|error| broken(&error))?;
            return self
                .read_body(stream)
                .await
                .map(|(status, body)| json_response(status, body));
        }
        self.used.send_modify(|used| used.requests += 1);
        let key = json!({"path": path, "request": request.as_ref().ok().map(deciding)});
        let key =
            Digest::of_canonical(&key).map_err(|error| Refusal::new(400, error.to_string()))?;
        let mut exchange = Exchange {
            schema_version: ExchangeVersion::V1,
            key,
            path: path.to_owned(),
            model: bounded_request.model.clone(),
            request: String::new(),
            status: 0,
            content_type: String::new(),
            answer: String::new(),
            is_whole: false,
            tokens: None,
            micro_dollars: None,
            refused: None,
            dropped: bounded_request.dropped.clone(),
        };
        if let Some(known) = self.exchanges.take(&key) {
            self.used.send_modify(|used| {
                used.reused += 1;
                used.models.insert(known.model.clone());
            });
            let (status, content_type, answer) = (
                known.status,
                known.content_type.clone(),
                known.answer.clone(),
            );
            self.append(known).await?;
            return Ok(response(status, &content_type, Body::from(answer)));
        }
        let reservation = match request {
            Ok(_) => self.reserve(&bounded_request, text.len(), key).await,
            Err(refusal) => Err(refusal),
        };
        let reservation = match reservation {
            Ok(reservation) => reservation,
            Err(refusal) => {
                (exchange.status, exchange.refused) =
                    (refusal.status, Some(refusal.message.clone()));
                self.append(exchange).await?;
                return Err(refusal);
            }
        };
        self.used.send_modify(|used| used.unpaid = 0);
        exchange.request = String::from_utf8_lossy(&text).into_owned();
        let mut exchange = InFlight::new(self, exchange).ok_or_else(session_is_over)?;
        let stream = match self.send(target, passed, Payload::Json(text)).await {
            Ok(stream) => stream,
            Err(error) => {
                if matches!(
                    error,
                    HttpError::Connect { .. } | HttpError::BadHeader { .. }
                ) {
                    let _stays = reservation.settle(NO_WORK).await;
                }
                exchange.refused = Some(error.to_string());
                exchange.record().await?;
                return Err(broken(&error));
            }
        };
        exchange.status = stream.status;
        let content_type = stream
            .headers
            .get("content-type")
            .cloned()
            .unwrap_or_default();
        exchange.content_type.clone_from(&content_type);
        if stream.status >= 300 {
            let status = stream.status;
            let retry_after = stream.headers.get("retry-after").cloned();
            let (_, body) = self.read_body(stream).await?;
            if (400..500).contains(&status) {
                let _stays = reservation.settle(NO_WORK).await;
            }
            exchange.answer = String::from_utf8_lossy(&body).into_owned();
            exchange.record().await?;
            let mut answer = response(status, &content_type, Body::from(body));
            if let Some(value) = retry_after.and_then(|value| value.parse().ok()) {
                answer.headers_mut().insert("retry-after", value);
            }
            return Ok(answer);
        }
        let is_stream = content_type.starts_with("text/event-stream");
        let pass = ForwardedAnswer {
            shared: Arc::clone(self),
            reader: UsageReader::new(api, is_stream),
            price: self
                .prices
                .price(self.upstream.provider, &bounded_request.model),
            exchange,
            answer_bytes: Vec::new(),
            reservation: Some(reservation),
        };
        let (sender, receiver) = mpsc::channel(16);
        match lock(&self.passing).as_mut() {
            Some(passing) => {
                while passing.try_join_next().is_some() {}
                passing.spawn(pass.run(stream, sender));
            }
            None => return Err(session_is_over()),
        }
        let pieces = stream::unfold(receiver, |mut receiver| async move {
            let piece: Result<Bytes, std::io::Error> = receiver.recv().await?;
            Some((piece, receiver))
        });
        Ok(response(200, &content_type, Body::from_stream(pieces)))
    }

    /// Whether a request holds the token, wherever its wire puts a key.
    fn has_token(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let bearer = header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        let query = uri
            .query()
            .unwrap_or_default()
            .split('&')
            .find_map(|pair| pair.strip_prefix("key="));
        [header("x-api-key"), header("x-goog-api-key"), bearer, query]
            .into_iter()
            .flatten()
            .any(|token| token == self.token.expose())
    }

    /// The address that a request is sent on to: never with the token.
    fn target(&self, uri: &Uri) -> String {
        let query = forwarded_query(uri.query().unwrap_or_default());
        let mark = if query.is_empty() { "" } else { "?" };
        format!("{}{}{mark}{query}", self.upstream.origin, uri.path())
    }

    /// The headers that are sent on, without the user's key.
    fn headers(&self, headers: &HeaderMap) -> Vec<(String, Secret)> {
        let mut passed: Vec<(String, Secret)> = PASSED
            .iter()
            .filter_map(|name| {
                let value = headers.get(*name)?.to_str().ok()?;
                Some(((*name).to_owned(), Secret::new(value.to_owned())))
            })
            .collect();
        let has = |passed: &[(String, Secret)], expected: &str| {
            passed.iter().any(|(name, _)| name == expected)
        };
        if self.wire == Wire::Anthropic && !has(&passed, ANTHROPIC_VERSION.0) {
            passed.push((
                ANTHROPIC_VERSION.0.to_owned(),
                Secret::new(ANTHROPIC_VERSION.1.to_owned()),
            ));
        }
        passed
    }

    fn with_key(&self, mut passed: Vec<(String, Secret)>) -> Vec<(String, Secret)> {
        if let Some(key) = &self.upstream.key {
            let bearer = || Secret::new(format!("Bearer {}", key.expose()));
            passed.push(match self.wire {
                Wire::Anthropic => ("x-api-key".to_owned(), key.clone()),
                Wire::OpenAi => ("authorization".to_owned(), bearer()),
                Wire::Gemini => ("x-goog-api-key".to_owned(), key.clone()),
            });
        }
        passed
    }

    async fn send(
        &self,
        url: String,
        headers: Vec<(String, Secret)>,
        payload: Payload,
    ) -> Result<HttpStream, HttpError> {
        let request = HttpRequest {
            url,
            headers,
            payload,
            timeout: self.timeout,
            max_body: MAX_ANSWER,
        };
        self.http.open(request).await
    }

    /// Reads a short answer whole, without the user's key.
    async fn read_body(&self, mut stream: HttpStream) -> Result<(u16, Vec<u8>), Refusal> {
        let mut body = Vec::new();
        while let Some(piece) = stream.chunk().await.map_err(|error| broken(&error))? {
            body.extend_from_slice(&piece);
        }
        Ok((stream.status, self.keys.out_of(&body)))
    }

    /// Reserves the worst case of a request.
    async fn reserve(
        &self,
        bounded_request: &BoundedRequest,
        bytes: usize,
        request: Digest,
    ) -> Result<Reservation, Refusal> {
        let Upstream { provider, .. } = self.upstream;
        let price = self.prices.price(provider, &bounded_request.model);
        let limits = self.budget.limits();
        if limits.micro_dollars != Limit::Unlimited && price == Price::Unknown {
            return Err(Refusal::new(
                UNPAID,
                format!(
                    "a cost limit is set, but no price is configured for the model; add a table llm.prices.\"{provider}/{}\"",
                    bounded_request.model
                ),
            ));
        }
        if self.exchanges.has_failed() {
            return Err(Refusal::new(503, "an earlier exchange was not recorded"));
        }
        if !self.exchanges.has_room(bytes) {
            return Err(Refusal::new(UNPAID, "the record of this session is full"));
        }
        let input = (bytes as u64)
            .saturating_add(bounded_request.added_input)
            .saturating_add(ADDED_TOKENS);
        let worst = Amount {
            calls: 1,
            tokens: input.saturating_add(bounded_request.output),
            micro_dollars: price
                .cost(input.saturating_mul(CACHE_FACTOR), bounded_request.output)
                .unwrap_or_default(),
        };
        let planned = PlannedCall {
            provider,
            model: bounded_request.model.clone(),
            request,
            worst,
        };
        self.reserve_call(planned)
            .await
            .map_err(|error| match error {
                ReservationError::Exhausted {
                    resource,
                    limit,
                    attempted,
                } => {
                    let money = |amount: u64| match resource {
                        Resource::MicroDollars => format!("{:.4} US dollars", amount as f64 / 1e6),
                        Resource::Calls | Resource::Tokens => format!("{amount} {resource}"),
                    };
                    Refusal::new(
                        UNPAID,
                        format!(
                            "this request could raise usage to {}; the limit is {}",
                            money(attempted),
                            money(limit)
                        ),
                    )
                }
                ReservationError::Unavailable { detail } => Refusal::new(UNPAID, detail),
            })
    }

    /// Reserves a call. If the budget has no room, what earlier answers reserved and did not use is returned first.
    async fn reserve_call(&self, call: PlannedCall) -> Result<Reservation, ReservationError> {
        let mut settling = self.settling.subscribe();
        let may_settle = *settling.borrow() > 0;
        match self.budget.reserve_call(call.clone()).await {
            Err(ReservationError::Exhausted { .. }) if may_settle => {
                drop(settling.wait_for(|count| *count == 0).await);
                self.budget.reserve_call(call).await
            }
            reserved => reserved,
        }
    }

    /// Records an exchange that was not sent on.
    async fn append(self: &Arc<Self>, exchange: Exchange) -> Result<(), Refusal> {
        let shared = Arc::clone(self);
        on_blocking_thread(move || shared.exchanges.append(exchange, Scanner::builtin())).await
    }
}

/// Writes a record on a blocking thread.
async fn on_blocking_thread(
    write: impl FnOnce() -> Result<(), AgentError> + Send + 'static,
) -> Result<(), Refusal> {
    let written = tokio::task::spawn_blocking(write).await;
    written
        .map_err(|_| session_is_over())?
        .map_err(|error| Refusal::new(503, format!("the exchange cannot be recorded: {error}")))
}

/// A request that the provider refused.
const NO_WORK: CallEnd = CallEnd {
    outcome: "refused",
    tokens: Some((0, 0)),
    micro_dollars: Some(0),
};

fn session_is_over() -> Refusal {
    Refusal::new(503, "the session is over")
}

fn broken(error: &HttpError) -> Refusal {
    Refusal::new(502, error.to_string())
}

/// An answer that is forwarded while it arrives.
struct ForwardedAnswer {
    shared: Arc<Shared>,
    reader: UsageReader,
    price: Price,
    exchange: InFlight,
    answer_bytes: Vec<u8>,
    /// The reservation, until it is settled. Dropped unsettled, it stays.
    reservation: Option<Reservation>,
}

impl ForwardedAnswer {
    async fn run(
        mut self,
        mut stream: HttpStream,
        sender: mpsc::Sender<Result<Bytes, std::io::Error>>,
    ) {
        let mut last = Vec::new();
        let mut reported_tools = 0;
        let cut = loop {
            match stream.chunk().await {
                Ok(Some(piece)) => {
                    self.reader.push(&piece);
                    if self.answer_bytes.len() < MAX_KEPT {
                        self.answer_bytes.extend_from_slice(&piece);
                    }
                    reported_tools = self.tell_tools(reported_tools);
                    if self.reader.usage().is_some() {
                        self.settle();
                    }
                    last.extend_from_slice(&piece);
                    if self.shared.keys.are_in(&last) {
                        break Some("the answer holds the user's key".to_owned());
                    }
                    // As much as may hold the beginning of a key.
                    last.drain(..last.len().saturating_sub(512));
                    if sender.send(Ok(Bytes::from(piece))).await.is_err() {
                        break Some("the agent closed the connection".to_owned());
                    }
                }
                Ok(None) => break None,
                Err(error) => break Some(error.to_string()),
            }
        };
        self.reader.finish();
        self.tell_tools(reported_tools);
        if cut.is_none() {
            self.settle();
        }
        let text = String::from_utf8(std::mem::take(&mut self.answer_bytes));
        self.exchange.is_whole =
            cut.is_none() && text.as_ref().is_ok_and(|text| text.len() < MAX_KEPT);
        let text =
            text.unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        self.exchange.answer = self.shared.keys.out_of_text(&text);
        self.exchange.refused.clone_from(&cut);
        if let Some(why) = cut {
            let _gone = sender.send(Err(std::io::Error::other(why))).await;
        }
        // The agent need not wait for the disk. If this fails, the next request is refused.
        drop(sender);
        let _reported_later = self.exchange.record().await;
    }

    fn tell_tools(&self, reported: usize) -> usize {
        let tools = &self.reader.tools;
        if let (Some(last), true) = (tools.last(), tools.len() > reported) {
            let more = (tools.len() - reported) as u64;
            self.shared.used.send_modify(|used| {
                used.tools += more;
                used.last_tool = Some(last.clone());
            });
        }
        tools.len()
    }

    /// Replaces the reservation by what the answer took, once. It does not wait for the ledger, so that the agent does not,
    /// and is not cancelled with the answer.
    fn settle(&mut self) {
        let Some(reservation) = self.reservation.take() else {
            return;
        };
        let usage = self.reader.usage();
        let cost =
            usage.and_then(|usage: Usage| self.price.cost(usage.priced_input(), usage.output));
        self.exchange.tokens = usage.map(|usage| (usage.sent(), usage.output));
        self.exchange.micro_dollars = cost;
        let end = CallEnd {
            outcome: "ok",
            tokens: self.exchange.tokens,
            micro_dollars: cost,
        };
        self.shared.used.send_modify(|used| {
            let (input, output) = self.exchange.tokens.unwrap_or_default();
            used.models.insert(self.exchange.model.clone());
            used.tokens_input += input;
            used.tokens_output += output;
            used.micro_dollars += cost.unwrap_or_default();
        });
        self.shared.settling.send_modify(|count| *count += 1);
        let (shared, open) = (Arc::clone(&self.shared), self.exchange.keep_open());
        tokio::spawn(async move {
            let _stays_reserved = reservation.settle(end).await;
            shared.settling.send_modify(|count| *count -= 1);
            drop(open);
        });
    }
}
