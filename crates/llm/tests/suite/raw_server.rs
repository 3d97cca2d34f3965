//! A byte-level server, for behaviour that no well-behaved HTTP library allows, and for counting
//! connections.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The handler of each connection.
type Serve = dyn Fn(TcpStream) + Send + Sync;

/// A server on loopback. Its threads end with the test process.
pub(crate) struct RawServer {
    address: SocketAddr,
    accepted: Arc<AtomicUsize>,
}

impl RawServer {
    /// Hands each connection to `serve`, on a thread of its own.
    pub(crate) fn start(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let serve: Arc<Serve> = Arc::new(serve);
        let counter = Arc::clone(&accepted);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counter.fetch_add(1, Ordering::SeqCst);
                let serve = Arc::clone(&serve);
                std::thread::spawn(move || serve(stream));
            }
        });
        Self { address, accepted }
    }

    /// Answers every request with this response.
    pub(crate) fn json(status: u16, body: &str) -> Self {
        let answer = response(status, body);
        Self::start(
            move |mut stream| {
                while read_request(&mut stream) && stream.write_all(&answer).is_ok() {}
            },
        )
    }

    /// Accepts every request and sends nothing.
    pub(crate) fn mute() -> Self {
        Self::start(|mut stream| while read_request(&mut stream) {})
    }

    /// The address up to and including `/v1`.
    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The number of connections.
    pub(crate) fn connections(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

/// A whole response with a JSON body.
pub(crate) fn response(status: u16, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
}

/// Reads one request to its last byte; false when there is none.
pub(crate) fn read_request(stream: &mut TcpStream) -> bool {
    let mut seen = Vec::new();
    let mut piece = [0; 16 * 1024];
    loop {
        let Ok(count @ 1..) = stream.read(&mut piece) else {
            return false;
        };
        seen.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&seen).to_ascii_lowercase();
        if let Some(end) = text.find("\r\n\r\n") {
            let length = text
                .lines()
                .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            if seen.len() >= end + 4 + length.unwrap_or(0) {
                return true;
            }
        }
    }
}
