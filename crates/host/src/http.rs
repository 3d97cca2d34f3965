//! HTTP requests, bounded in time and in bytes.
//!
//! One [`HttpClient`] holds the connections of a process, apart for each event loop: a connection is served by the loop in which
//! it was opened, and taken up by another one it would wait for that loop, which may itself be waiting. Those of the
//! sixteen loops that asked last are kept. A plain `http://` address, such as a model server on this machine, never pays for
//! reading the system's certificates; what speaks TLS is made for a loop when it asks its first `https://` address.
//!
//! What always holds: no redirect is followed (a key would travel with it), no proxy is taken from the
//! environment, a body that grows over its limit is cut off while it streams, the time limit covers the
//! whole exchange, and no error holds a header, a body or what stands behind the origin of an address.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crucible_model::{ByteLimit, Secret};
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Client, ClientBuilder, Url, redirect};
use tokio::runtime::{Handle, Id};
use tokio::sync::OnceCell;

/// Whose connections are kept: more loops than this that ask in turns reopen theirs. A loop that has ended keeps its place
/// until others need it, but no connection: each of them ends with the loop that serves it.
const MAX_LOOPS: usize = 16;

/// The connections of this process. Cheap to make, shared by reference.
pub struct HttpClient {
    /// Who asked last stands last.
    loops: Mutex<Vec<(Owner, Arc<Connections>)>>,
}

/// Whose connections they are.
#[derive(Clone, Copy, PartialEq)]
enum Owner {
    /// The first loop's that asks.
    Nobody,
    /// This loop's. When it has ended, a new loop may get its id and with it these connections. They ended with the loop, and one
    /// that is found closed is not used, so the new loop opens its own.
    Loop(Id),
}

/// The connections of one event loop.
struct Connections {
    plain: Client,
    tls: OnceCell<Client>,
}

/// What a request carries, and with it its method.
pub enum Payload {
    /// Nothing: a `GET`.
    Nothing,
    /// This JSON: a `POST`.
    Json(Vec<u8>),
    /// These bytes: a `POST`. The headers have their `content-type`.
    Bytes(Vec<u8>),
}

/// A `GET` or `POST` request over HTTP.
pub struct HttpRequest {
    /// Where to: `http` or `https`, without user or password.
    pub url: String,
    /// Header names and values; `content-type: application/json` is added to JSON when it is not among them.
    pub headers: Vec<(String, Secret)>,
    /// What is sent.
    pub payload: Payload,
    /// The time for everything: connecting, sending, and the last byte of the answer.
    pub timeout: Duration,
    /// The longest answer that is taken.
    pub max_body: ByteLimit,
}

/// What a server answered.
pub struct HttpResponse {
    /// The status code.
    pub status: u16,
    /// Headers by lowercase name. Of a repeated one, the last; values that are not ASCII are left out.
    pub headers: BTreeMap<String, String>,
    /// The whole body.
    pub body: Vec<u8>,
}

/// An answer whose body is read while it arrives.
pub struct HttpStream {
    /// The status code.
    pub status: u16,
    /// Headers by lowercase name, as in [`HttpResponse`].
    pub headers: BTreeMap<String, String>,
    response: reqwest::Response,
    origin: String,
    after: Duration,
    until: tokio::time::Instant,
    limit: u64,
    taken: u64,
}

/// Why there is no answer. No text here holds a key, a header's value, a body, or a path of an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// The address cannot be used.
    #[error("the address cannot be used: {why}")]
    BadUrl {
        /// What is wrong with it.
        why: &'static str,
    },
    /// A header cannot be sent.
    #[error("the header {name:?} contains invalid characters")]
    BadHeader {
        /// The header's name.
        name: String,
    },
    /// The HTTP client could not be set up.
    #[error("cannot set up the HTTP client: {detail}; check the TLS certificates of this system")]
    Setup {
        /// What failed.
        detail: String,
    },
    /// No connection came about.
    #[error("cannot connect to {origin}: {detail}")]
    Connect {
        /// Scheme, host and port.
        origin: String,
        /// What the system said.
        detail: String,
    },
    /// The time was over before the last byte of the answer.
    #[error("no complete answer from {origin} within {after:?}")]
    Timeout {
        /// Scheme, host and port.
        origin: String,
        /// The time that was given.
        after: Duration,
    },
    /// The answer is longer than the limit; the rest was not read.
    #[error("the answer from {origin} is longer than {limit} bytes")]
    TooLarge {
        /// Scheme, host and port.
        origin: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// The exchange broke off, or what came was not HTTP.
    #[error("the connection to {origin} was lost: {detail}")]
    Broken {
        /// Scheme, host and port.
        origin: String,
        /// What the system said.
        detail: String,
    },
}

impl HttpClient {
    /// A client that connects directly.
    ///
    /// # Errors
    ///
    /// [`HttpError::Setup`] when the system does not let it be made.
    pub fn new() -> Result<Self, HttpError> {
        // A second call, or another part of the program that was first, changes nothing: ring stays.
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            let _already_there = rustls::crypto::ring::default_provider().install_default();
        }
        Ok(Self {
            loops: Mutex::new(vec![(Owner::Nobody, Arc::new(Connections::new()?))]),
        })
    }

    /// Sends one request and reads the whole answer, whatever its status.
    ///
    /// # Errors
    ///
    /// See [`HttpError`]; a status of 400 or more is an answer, not an error.
    pub async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let url = parse_url(&request.url)?;
        let origin = url.origin().ascii_serialization();
        let after = request.timeout;
        match tokio::time::timeout(after, self.exchange(url, &origin, request)).await {
            Ok(answer) => answer,
            Err(_) => Err(HttpError::Timeout { origin, after }),
        }
    }

    /// Sends one request and returns once the headers of the answer are there; the body is read piece by piece.
    ///
    /// # Errors
    ///
    /// As [`HttpClient::send`].
    pub async fn open(&self, request: HttpRequest) -> Result<HttpStream, HttpError> {
        let url = parse_url(&request.url)?;
        let origin = url.origin().ascii_serialization();
        let (after, limit) = (request.timeout, request.max_body.0);
        let until = tokio::time::Instant::now() + after;
        let opened = tokio::time::timeout_at(until, self.begin(url, &origin, request)).await;
        let Ok(response) = opened else {
            return Err(HttpError::Timeout { origin, after });
        };
        let response = response?;
        Ok(HttpStream {
            status: response.status().as_u16(),
            headers: headers_of(&response),
            response,
            origin,
            after,
            until,
            limit,
            taken: 0,
        })
    }

    async fn exchange(
        &self,
        url: Url,
        origin: &str,
        request: HttpRequest,
    ) -> Result<HttpResponse, HttpError> {
        let max_body = request.max_body;
        let mut response = self.begin(url, origin, request).await?;
        let too_large = || HttpError::TooLarge {
            origin: origin.to_owned(),
            limit: max_body.0,
        };
        if response
            .content_length()
            .is_some_and(|length| length > max_body.0)
        {
            return Err(too_large());
        }
        let status = response.status().as_u16();
        let headers = headers_of(&response);
        let mut body = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| translate(&error, origin))?
        {
            if (body.len() + chunk.len()) as u64 > max_body.0 {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(HttpResponse {
            status,
            headers,
            body,
        })
    }

    /// Sends a request, and waits for the headers of its answer.
    async fn begin(
        &self,
        url: Url,
        origin: &str,
        request: HttpRequest,
    ) -> Result<reqwest::Response, HttpError> {
        let connections = self.connections()?;
        let client = if url.scheme() == "https" {
            connections.tls().await?
        } else {
            &connections.plain
        };
        let (mut call, mut typed) = match request.payload {
            Payload::Nothing => (client.get(url), true),
            Payload::Json(body) => (client.post(url).body(body), false),
            Payload::Bytes(body) => (client.post(url).body(body), true),
        };
        for (name, value) in &request.headers {
            let bad = || HttpError::BadHeader { name: name.clone() };
            let header = HeaderName::try_from(name.as_str()).map_err(|_| bad())?;
            let mut value = HeaderValue::from_str(value.expose()).map_err(|_| bad())?;
            value.set_sensitive(true);
            typed |= header == reqwest::header::CONTENT_TYPE;
            call = call.header(header, value);
        }
        if !typed {
            call = call.header(reqwest::header::CONTENT_TYPE, "application/json");
        }
        call.send().await.map_err(|error| translate(&error, origin))
    }

    /// The connections of this event loop.
    fn connections(&self) -> Result<Arc<Connections>, HttpError> {
        let this = Owner::Loop(Handle::current().id());
        // Nothing is half done while it is locked, so a panic elsewhere spoils nothing. A client without certificates is made in
        // no time; nothing else is done here.
        let mut loops = self.loops.lock().unwrap_or_else(PoisonError::into_inner);
        let known = loops
            .iter()
            .position(|(owner, _)| [Owner::Nobody, this].contains(owner));
        let connections = match known {
            Some(at) => loops.remove(at).1,
            None => Arc::new(Connections::new()?),
        };
        if loops.len() == MAX_LOOPS {
            loops.remove(0);
        }
        loops.push((this, Arc::clone(&connections)));
        Ok(connections)
    }
}

impl HttpStream {
    /// The next piece of the body as it arrived; `None` at its end.
    ///
    /// # Errors
    ///
    /// See [`HttpError`]: also when the time of the whole exchange is over, or the body grows over its limit.
    pub async fn chunk(&mut self) -> Result<Option<Vec<u8>>, HttpError> {
        let next = tokio::time::timeout_at(self.until, self.response.chunk()).await;
        let Ok(chunk) = next else {
            return Err(HttpError::Timeout {
                origin: self.origin.clone(),
                after: self.after,
            });
        };
        let Some(chunk) = chunk.map_err(|error| translate(&error, &self.origin))? else {
            return Ok(None);
        };
        self.taken = self.taken.saturating_add(chunk.len() as u64);
        if self.taken > self.limit {
            return Err(HttpError::TooLarge {
                origin: self.origin.clone(),
                limit: self.limit,
            });
        }
        Ok(Some(chunk.to_vec()))
    }
}

/// Header names in lowercase with their values; of a repeated one, the last.
fn headers_of(response: &reqwest::Response) -> BTreeMap<String, String> {
    let pairs = response.headers().iter().filter_map(|(name, value)| {
        Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
    });
    pairs.collect()
}

impl Connections {
    fn new() -> Result<Self, HttpError> {
        let plain = builder()
            .tls_certs_only([])
            .build()
            .map_err(|error| setup(&error))?;
        Ok(Self {
            plain,
            tls: OnceCell::new(),
        })
    }

    /// The client that speaks TLS. A caller that asks while it is made waits for it, and holds up neither its own loop nor another.
    async fn tls(&self) -> Result<&Client, HttpError> {
        let make = || async {
            let client = tokio::task::spawn_blocking(|| builder().https_only(true).build()).await;
            let shutdown_error = |_| HttpError::Setup {
                detail: "the program is about to end".to_owned(),
            };
            client
                .map_err(shutdown_error)?
                .map_err(|error| setup(&error))
        };
        self.tls.get_or_try_init(make).await
    }
}

impl Payload {
    fn bytes(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Json(body) | Self::Bytes(body) => body.len(),
        }
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpClient")
    }
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("HttpRequest")
            .field("headers", &names)
            .field("body_bytes", &self.payload.bytes())
            .field("timeout", &self.timeout)
            .field("max_body", &self.max_body)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for HttpResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpResponse")
            .field("status", &self.status)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// Checks an address the way a request would, for those who want to refuse a bad one before they need it.
///
/// # Errors
///
/// [`HttpError::BadUrl`].
pub fn check_url(url: &str) -> Result<(), HttpError> {
    parse_url(url).map(|_| ())
}

/// The host of an address that can be sent to, and its port: the one that it names, or that of its scheme.
///
/// # Errors
///
/// [`HttpError::BadUrl`] as [`check_url`].
pub fn host_and_port(url: &str) -> Result<(String, u16), HttpError> {
    let url = parse_url(url)?;
    let no_host = HttpError::BadUrl {
        why: "it names no host",
    };
    let port = url.port_or_known_default();
    // An IPv6 address stands between brackets there.
    let host = url.host_str().map(|host| {
        host.trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned()
    });
    host.zip(port).ok_or(no_host)
}

/// An address without the name and the password in it, to be shown: behind its scheme, everything up to the
/// last `@` is left out. A password may hold any character, so one that stands behind `/`, `?` or `#` ends a login, too.
#[must_use]
pub fn without_login(url: &str) -> String {
    let is_scheme = |name: &str| {
        name.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
    };
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) if is_scheme(scheme) => (Some(scheme), rest),
        Some(_) | None => (None, url),
    };
    let bare = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    scheme.map_or_else(|| bare.to_owned(), |scheme| format!("{scheme}://{bare}"))
}

fn parse_url(text: &str) -> Result<Url, HttpError> {
    let bad = |why| HttpError::BadUrl { why };
    let url = Url::parse(text)
        .map_err(|_| bad("it is not an absolute URL such as http://localhost:8000/v1"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad("only http and https are spoken"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad(
            "it holds a user name or a password; put the key into a variable and name that",
        ));
    }
    Ok(url)
}

fn builder() -> ClientBuilder {
    Client::builder()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .referer(false)
}

fn setup(error: &reqwest::Error) -> HttpError {
    HttpError::Setup {
        detail: root_cause(error),
    }
}

fn translate(error: &reqwest::Error, origin: &str) -> HttpError {
    let origin = origin.to_owned();
    let detail = root_cause(error);
    if error.is_connect() {
        HttpError::Connect { origin, detail }
    } else {
        HttpError::Broken { origin, detail }
    }
}

/// Says what happened without the text of any layer that may quote the request: the operating system's words
/// where there are some, otherwise the class of the fault.
fn root_cause(error: &reqwest::Error) -> String {
    let mut next = error.source();
    while let Some(cause) = next {
        if let Some(cause) = cause
            .downcast_ref::<io::Error>()
            .filter(|io| io.get_ref().is_none())
        {
            return cause.to_string();
        }
        next = cause.source();
    }
    let class = if error.is_dns() {
        "the host's name is not known"
    } else if error.is_connect() {
        "no connection (refused, unreachable, or TLS not trusted)"
    } else if error.is_builder() {
        "the settings do not fit together"
    } else {
        "the connection was closed or what came was not valid HTTP"
    };
    class.to_owned()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::runtime::{Builder, Runtime};

    use super::*;

    /// Serves one connection with these bytes, then holds it open for as long as the client does.
    fn serve(answer: &'static [u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut request = vec![0; 64 * 1024];
                let _ = stream.read(&mut request);
                if stream.write_all(answer).is_ok() && !answer.is_empty() {
                    let _ = stream.read(&mut request);
                }
            }
        });
        url
    }

    async fn post(url: &str, limit: u64) -> Result<HttpResponse, HttpError> {
        post_within(Duration::from_secs(2), url, limit).await
    }

    async fn post_within(
        timeout: Duration,
        url: &str,
        limit: u64,
    ) -> Result<HttpResponse, HttpError> {
        let request = HttpRequest {
            url: url.to_owned(),
            headers: vec![(
                "authorization".to_owned(),
                Secret::new("Bearer k-123456".to_owned()),
            )],
            payload: Payload::Json(b"{\"prompt\":\"b-123456\"}".to_vec()),
            timeout,
            max_body: ByteLimit(limit),
        };
        assert!(!format!("{request:?}").contains("123456"));
        HttpClient::new().unwrap().send(request).await
    }

    #[tokio::test]
    async fn reads_status_headers_and_body() {
        let url = serve(b"HTTP/1.1 429 Too Many\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\nno");
        let answer = post(&url, 2).await.unwrap();
        assert_eq!((answer.status, answer.body.as_slice()), (429, &b"no"[..]));
        assert_eq!(answer.headers["retry-after"], "7");
    }

    /// Answers every request, however many come over one connection, and counts the connections. All of them stay open, so that
    /// each is one that could be used again.
    fn serve_all() -> (String, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let opened = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&opened);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                counter.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || {
                    while stream.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {
                        stream
                            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                            .unwrap();
                    }
                });
            }
        });
        (url, opened)
    }

    fn event_loop() -> Runtime {
        Builder::new_current_thread().enable_all().build().unwrap()
    }

    /// Asks once, in this loop, and lets the connection be given back.
    fn get_in(event_loop: &Runtime, client: &HttpClient, url: &str) {
        let request = HttpRequest {
            url: url.to_owned(),
            headers: Vec::new(),
            payload: Payload::Nothing,
            timeout: Duration::from_secs(20),
            max_body: ByteLimit(2),
        };
        event_loop.block_on(async {
            assert_eq!(client.send(request).await.unwrap().body, b"ok");
            tokio::time::sleep(Duration::from_millis(20)).await;
        });
    }

    #[test]
    fn connection_of_stalled_event_loop_is_not_awaited() {
        let (url, _) = serve_all();
        let client = HttpClient::new().unwrap();
        let (first, second) = (event_loop(), event_loop());
        get_in(&first, &client, &url);
        // The connection is idle now and lives in the first loop, which does not turn.
        get_in(&second, &client, &url);
    }

    #[test]
    fn alternating_event_loops_keep_one_connection_each() {
        const TURNS: usize = 20;
        let (url, opened) = serve_all();
        let client = HttpClient::new().unwrap();
        let (first, second) = (event_loop(), event_loop());
        for _ in 0..TURNS {
            get_in(&first, &client, &url);
            get_in(&second, &client, &url);
        }
        // One each is the rule; a connection that is given back a moment too late costs another.
        let opened = opened.load(Ordering::SeqCst);
        assert!(
            (2..TURNS / 2).contains(&opened),
            "{opened} connections for two loops"
        );
    }

    #[test]
    fn only_connections_of_recent_loops_are_kept() {
        let (url, _) = serve_all();
        let client = HttpClient::new().unwrap();
        let often = event_loop();
        get_in(&often, &client, &url);
        let kept = |of: &Runtime| {
            let loops = client.loops.lock().unwrap();
            let of = Owner::Loop(of.handle().id());
            loops
                .iter()
                .find(|(owner, _)| *owner == of)
                .map(|(_, connections)| Arc::clone(connections))
        };
        let own = kept(&often).unwrap();
        let once: Vec<Runtime> = (0..MAX_LOOPS + 3).map(|_| event_loop()).collect();
        for other in &once {
            get_in(other, &client, &url);
            get_in(&often, &client, &url);
        }
        assert_eq!(client.loops.lock().unwrap().len(), MAX_LOOPS);
        assert!(Arc::ptr_eq(&own, &kept(&often).unwrap()));
        assert!(kept(&once[0]).is_none() && kept(&once[MAX_LOOPS + 2]).is_some());
    }

    #[test]
    fn loop_with_reused_id_opens_own_connection() {
        let (url, opened) = serve_all();
        let client = HttpClient::new().unwrap();
        let ended = event_loop();
        get_in(&ended, &client, &url);
        drop(ended);
        let next = event_loop();
        // Ids are given out again when the system pleases, so it is done here.
        client.loops.lock().unwrap()[0].0 = Owner::Loop(next.handle().id());
        get_in(&next, &client, &url);
        assert_eq!(client.loops.lock().unwrap().len(), 1);
        assert_eq!(opened.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn tls_client_is_created_once_on_demand() {
        let client = HttpClient::new().unwrap();
        let connections = client.connections().unwrap();
        assert!(connections.tls.get().is_none());
        let (one, other) = tokio::join!(connections.tls(), connections.tls());
        assert!(std::ptr::eq(one.unwrap(), other.unwrap()));
        assert!(client.connections().unwrap().tls.get().is_some());
    }

    #[tokio::test]
    async fn declared_and_chunked_bodies_stop_at_limit() {
        let announced = serve(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\nabc");
        let chunked = serve(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n5\r\nabcde\r\n",
        );
        for url in [announced, chunked] {
            let error = post(&url, 8).await.unwrap_err();
            assert!(
                matches!(error, HttpError::TooLarge { limit: 8, .. }),
                "{error}"
            );
        }
    }

    #[tokio::test]
    async fn stalled_body_reaches_the_time_limit() {
        let url = serve(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
        let error = post(&url, 100).await.unwrap_err();
        assert!(matches!(error, HttpError::Timeout { .. }), "{error}");
    }

    #[tokio::test]
    async fn redirect_is_returned_and_not_followed() {
        let url =
            serve(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/stolen\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(post(&url, 100).await.unwrap().status, 302);
    }

    #[tokio::test]
    async fn errors_are_classified_without_secrets() {
        let closed = TcpListener::bind("127.0.0.1:0").unwrap();
        let refused = format!("http://{}/secret-path", closed.local_addr().unwrap());
        drop(closed);
        let error = post(&refused, 100).await.unwrap_err();
        assert!(matches!(error, HttpError::Connect { .. }), "{error}");
        assert!(!format!("{error} {error:?}").contains("secret-path"));

        let dropped = serve(b"");
        let error = post(&dropped, 100).await.unwrap_err();
        assert!(matches!(error, HttpError::Broken { .. }), "{error}");
        assert!(!format!("{error} {error:?}").contains("123456"));
    }

    #[tokio::test]
    async fn https_to_a_plain_server_is_refused() {
        let plain = serve(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        // Reading the machine's certificates takes its time.
        let time = Duration::from_secs(60);
        let error = post_within(time, &plain.replace("http://", "https://"), 100)
            .await
            .unwrap_err();
        assert!(matches!(error, HttpError::Connect { .. }), "{error}");
    }

    #[tokio::test]
    async fn unusable_address_is_refused_and_hidden() {
        for bad in [
            "",
            "localhost",
            "ftp://host/",
            "http://user:k-123456@host/",
            "file:///etc/passwd",
            "http://",
        ] {
            let error = post(bad, 1).await.unwrap_err();
            assert!(matches!(error, HttpError::BadUrl { .. }), "{bad}: {error}");
            assert!(!error.to_string().contains("123456"));
        }
    }

    #[test]
    fn login_is_hidden_for_any_password_character() {
        for (url, text) in [
            ("http://me:pass@host:80/v1", "http://host:80/v1"),
            ("http://me:pa@ss@host/v1", "http://host/v1"),
            ("http://me:pa#ss@host/v1", "http://host/v1"),
            ("http://me:pa/ss@host/v1", "http://host/v1"),
            ("http://me:pa?ss@host/v1", "http://host/v1"),
            ("http://me:pa://ss@host/v1", "http://host/v1"),
            ("http://me:1/pass@host/v1", "http://host/v1"),
            ("me:pass@host/v1", "host/v1"),
            ("me:pa://ss@host/v1", "host/v1"),
            ("http:/me:pass@host", "host"),
            (
                "http://localhost:8000/v1?a=b#c",
                "http://localhost:8000/v1?a=b#c",
            ),
            ("https://host", "https://host"),
            ("://@", "://"),
            ("@", ""),
            ("", ""),
        ] {
            assert_eq!(without_login(url), text, "{url}");
        }
    }

    #[tokio::test]
    async fn key_with_line_break_is_refused_and_hidden() {
        let request = HttpRequest {
            url: "http://127.0.0.1:1/".to_owned(),
            headers: vec![(
                "x-api-key".to_owned(),
                Secret::new("k-123456\r\nx-other: 1".to_owned()),
            )],
            payload: Payload::Json(Vec::new()),
            timeout: Duration::from_secs(1),
            max_body: ByteLimit(1),
        };
        let error = HttpClient::new().unwrap().send(request).await.unwrap_err();
        assert_eq!(
            error,
            HttpError::BadHeader {
                name: "x-api-key".to_owned()
            }
        );
    }
}
