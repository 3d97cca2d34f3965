//! Standard input and output as asynchronous streams, for commands that talk with another program.
//!
//! A thread of its own reads, so that a signal ends the program while nothing comes; a thread that still waits ends with the
//! process. Writes are watched as all others are. What always holds: at most [`AHEAD`] chunks are read ahead.

use std::io::{self, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;

use crate::blocked_write::watched;

/// Bytes that are read at once.
const CHUNK: usize = 16 << 10;
/// Chunks that are read before they are wanted.
const AHEAD: usize = 4;

/// Standard input.
#[derive(Debug)]
pub struct InputStream {
    chunks: mpsc::Receiver<io::Result<Vec<u8>>>,
    rest: Vec<u8>,
    /// How much of the rest was passed on.
    passed: usize,
}

/// Standard output.
#[derive(Debug)]
pub struct OutputStream(io::Stdout);

impl InputStream {
    /// Starts to read standard input.
    #[must_use]
    pub fn open() -> Self {
        let (sender, chunks) = mpsc::channel(AHEAD);
        std::thread::spawn(move || read_all(&sender));
        Self {
            chunks,
            rest: Vec::new(),
            passed: 0,
        }
    }
}

/// Passes on what is read, until the input ends or nobody wants it.
fn read_all(sender: &mpsc::Sender<io::Result<Vec<u8>>>) {
    let mut input = io::stdin().lock();
    loop {
        let mut chunk = vec![0; CHUNK];
        let read = match input.read(&mut chunk) {
            Ok(0) => return,
            Ok(length) => {
                chunk.truncate(length);
                Ok(chunk)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let is_last = read.is_err();
        if sender.blocking_send(read).is_err() || is_last {
            return;
        }
    }
}

impl AsyncRead for InputStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.passed == self.rest.len() {
            match ready!(self.chunks.poll_recv(context)) {
                None => return Poll::Ready(Ok(())),
                Some(chunk) => {
                    self.rest = chunk?;
                    self.passed = 0;
                }
            }
        }
        let rest = self.rest.get(self.passed..).unwrap_or_default();
        let part = rest.get(..buffer.remaining()).unwrap_or(rest);
        buffer.put_slice(part);
        let length = part.len();
        self.passed += length;
        Poll::Ready(Ok(()))
    }
}

impl OutputStream {
    /// Returns standard output. It is written to while nothing else waits, as every result is.
    #[must_use]
    pub fn open() -> Self {
        Self(io::stdout())
    }
}

impl AsyncWrite for OutputStream {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(watched(|| (&self.0).write(bytes)))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(watched(|| (&self.0).flush()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(context)
    }
}
