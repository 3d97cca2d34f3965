//! A collector of traces on loopback, which misbehaves on request.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// What a collector does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CollectorManner {
    /// 200.
    Accepts,
    /// 500.
    Refuses,
    /// 307 to another address.
    Redirects,
    /// It reads the request and says nothing.
    NeverAnswers,
    /// 200 and a body that never ends.
    AnswersForEver,
    /// Something that is not HTTP.
    SpeaksNoHttp,
}

/// A request: its head in lower case, and its body.
type Request = (String, Vec<u8>);

/// A collector, and the requests that it got. It ends when it is dropped.
pub struct TraceCollector {
    origin: String,
    requests: Arc<Mutex<Vec<Request>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// How often the collector looks whether it is over.
const PAUSE: Duration = Duration::from_millis(20);

impl TraceCollector {
    /// Starts a collector.
    #[must_use]
    pub fn start(behavior: CollectorManner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free loopback port");
        listener
            .set_nonblocking(true)
            .expect("a non-blocking listener");
        let address = listener.local_addr().expect("the listener's address");
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let is_over = Arc::new(AtomicBool::new(false));
        let (seen, over) = (Arc::clone(&requests), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                let Ok((mut stream, _)) = listener.accept() else {
                    std::thread::sleep(PAUSE);
                    continue;
                };
                let is_blocking = stream.set_nonblocking(false);
                is_blocking.expect("a blocking stream");
                if let Some(request) = read_request(&mut stream) {
                    seen.lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(request);
                }
                answer(stream, behavior, &over);
            }
        });
        Self {
            origin: format!("http://{address}"),
            requests,
            is_over,
            thread: Some(thread),
        }
    }

    /// Its address without a path.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The requests so far: the head in lower case, and the body.
    #[must_use]
    pub fn requests(&self) -> Vec<(String, Vec<u8>)> {
        self.requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Drop for TraceCollector {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has failed the test already.
            let _joined = thread.join();
        }
    }
}

fn answer(mut stream: TcpStream, behavior: CollectorManner, is_over: &AtomicBool) {
    let head = match behavior {
        CollectorManner::Accepts => "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        CollectorManner::Refuses => "HTTP/1.1 500 X\r\ncontent-length: 0\r\n\r\n",
        CollectorManner::Redirects => {
            "HTTP/1.1 307 X\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n"
        }
        CollectorManner::NeverAnswers => {
            // It waits until the client is gone.
            let mut rest = Vec::new();
            let _read = stream.read_to_end(&mut rest);
            return;
        }
        CollectorManner::AnswersForEver => "HTTP/1.1 200 OK\r\n\r\n",
        CollectorManner::SpeaksNoHttp => "\u{1b}[2J hello\r\n\r\n",
    };
    let mut is_open = stream.write_all(head.as_bytes()).is_ok();
    while behavior == CollectorManner::AnswersForEver && is_open && !is_over.load(Ordering::Relaxed)
    {
        is_open = stream.write_all(&[b'x'; 4096]).is_ok();
    }
}

fn read_request(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let read = stream.read(&mut piece).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&piece[..read]);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let length = length.map_or(0, |length| length.parse().expect("a content length"));
        if bytes.len() >= end + 4 + length {
            return Some((head, bytes[end + 4..].to_vec()));
        }
    }
}
