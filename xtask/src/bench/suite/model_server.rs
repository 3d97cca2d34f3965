//! A server on loopback that answers every chat completion after the same time: with the same words, or with what a bench
//! makes of the request.
//!
//! One plain thread serves one connection, so what it costs is small and the same for every client. It counts the
//! connections it was asked on and keeps the last request's body, so that the side a bench compares with can send
//! the very same bytes.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

/// How long the answer's text is: a finding or two.
const ANSWER_BYTES: usize = 2000;

/// The server. Its threads end with their connections, the one that accepts with the process.
pub(super) struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// What the server says to a request with this body.
type Answerer = Box<dyn Fn(&[u8]) -> Arc<[u8]> + Send + Sync>;

struct Shared {
    latency: Duration,
    answerer: Answerer,
    connections: AtomicUsize,
    last_body: Mutex<Vec<u8>>,
}

impl ModelServer {
    /// Starts one that waits for `latency` between the last byte of a request and the first of its answer.
    pub(super) fn start(latency: Duration) -> io::Result<Self> {
        let always = response(&"It reads as it should. ".repeat(ANSWER_BYTES / 23));
        Self::serving(latency, Box::new(move |_| Arc::clone(&always)))
    }

    /// Starts one whose model says what `say` makes of a request's body. The time that it takes to make it is a part of
    /// `latency`.
    pub(super) fn saying(
        latency: Duration,
        say: impl Fn(&[u8]) -> String + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Self::serving(latency, Box::new(move |body| response(&say(body))))
    }

    fn serving(latency: Duration, answerer: Answerer) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            latency,
            answerer,
            connections: AtomicUsize::new(0),
            last_body: Mutex::default(),
        });
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&serving);
                // Who hangs up in the middle is gone; nobody waits for the answer.
                thread::spawn(move || serve(stream, &shared));
            }
        });
        Ok(Self { address, shared })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// On how many connections it got a request.
    pub(super) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// The body of the request that came last.
    pub(super) fn last_body(&self) -> Vec<u8> {
        self.shared
            .last_body
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// The response with which a model says this.
fn response(content: &str) -> Arc<[u8]> {
    let body = json!({
        "id": "bench",
        "object": "chat.completion",
        "model": "bench-model",
        "choices": [{
            "index": 0,
            "message": {"role": "assistant", "content": content},
            "finish_reason": "stop",
        }],
        "usage": {"prompt_tokens": 25_000, "completion_tokens": 500, "total_tokens": 25_500},
    })
    .to_string();
    let length = body.len();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json";
    format!("{head}\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
        .into()
}

fn serve(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut requests = BufReader::with_capacity(64 * 1024, stream.try_clone()?);
    let mut body = Vec::new();
    let mut served = 0;
    while read_request(&mut requests, &mut body)? == Next::Request {
        if served == 0 {
            shared.connections.fetch_add(1, Ordering::SeqCst);
        }
        served += 1;
        let started_at = Instant::now();
        let answer = (shared.answerer)(&body);
        std::mem::swap(
            &mut body,
            &mut *shared
                .last_body
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        if !shared.latency.is_zero() {
            thread::sleep(shared.latency.saturating_sub(started_at.elapsed()));
        }
        stream.write_all(&answer)?;
    }
    Ok(())
}

#[derive(Debug, PartialEq)]
enum Next {
    Request,
    End,
}

/// Reads one request with a stated length into `body`.
fn read_request(stream: &mut impl BufRead, body: &mut Vec<u8>) -> io::Result<Next> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(Next::End);
        }
        if line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    body.resize(length, 0);
    stream.read_exact(body)?;
    Ok(Next::Request)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn ask(stream: &mut TcpStream, body: &str, answer_bytes: usize) -> Vec<u8> {
        let length = body.len();
        let request =
            format!("POST / HTTP/1.1\r\nhost: x\r\nContent-Length: {length}\r\n\r\n{body}");
        stream.write_all(request.as_bytes()).unwrap();
        let mut seen = vec![0; answer_bytes];
        stream.read_exact(&mut seen).unwrap();
        seen
    }

    #[test]
    fn connections_are_counted_and_last_body_kept() {
        let server = ModelServer::start(Duration::ZERO).unwrap();
        let always = response(&"It reads as it should. ".repeat(ANSWER_BYTES / 23));
        let mut stream = TcpStream::connect(server.address()).unwrap();
        for body in ["one", "three"] {
            let seen = ask(&mut stream, body, always.len());
            assert_eq!(
                (&seen[..], server.last_body()),
                (&always[..], body.as_bytes().to_vec())
            );
        }
        assert_eq!(server.connections(), 1);
    }

    #[test]
    fn an_answer_can_depend_on_the_request() {
        let server = ModelServer::saying(Duration::ZERO, |body| {
            String::from_utf8_lossy(body).repeat(2)
        })
        .unwrap();
        let mut stream = TcpStream::connect(server.address()).unwrap();
        for body in ["one", "three"] {
            let expected = response(&body.repeat(2));
            assert_eq!(&ask(&mut stream, body, expected.len())[..], &expected[..]);
        }
    }
}
