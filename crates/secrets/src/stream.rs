//! Redaction of bytes that arrive in pieces, such as the output of a running process.
//!
//! The newest bytes are held back until the scan has decided them; earlier bytes are released at once.
//! Possible lines of a private key wait until it is known whether an END line follows. The result does not
//! depend on where the pieces are cut: it equals [`Scanner::redact_bytes`] of the whole.
//!
//! Invariants: between two calls at most [`HELD_BACK`] bytes are kept, however long a secret is. Of a longer
//! secret only the position is kept: a token goes on until a byte that cannot belong to one, a private key
//! block until its END line; its marker is written then, or at the end of the stream. A block that is never
//! closed redacts everything that follows.

use std::fmt;
use std::mem;

use crate::key_lines::{KEY_MARGIN, KEY_REACH};
use crate::scanner::Scanner;
use crate::walk::{BEHIND, Input, REACH, Walk};

/// The most bytes that a [`StreamRedactor`] keeps between two calls.
pub const HELD_BACK: usize = 2 * REACH + 2 * BEHIND + KEY_REACH + 4 * KEY_MARGIN;

/// Takes bytes in pieces of any size and gives them back without their secrets.
pub struct StreamRedactor<'s> {
    scanner: &'s Scanner,
    walk: Walk<'s>,
    buffer: Vec<u8>,
    /// Number of buffer bytes that were released, or whose marker was.
    written: usize,
    /// The buffer is walked when it is this long: so that tiny pieces cost no more than big ones.
    walk_at: usize,
    count: u64,
}

impl<'s> StreamRedactor<'s> {
    pub(crate) fn new(scanner: &'s Scanner) -> Self {
        let walk = Walk::new(scanner);
        Self {
            scanner,
            walk,
            buffer: Vec::new(),
            written: 0,
            walk_at: 2 * REACH,
            count: 0,
        }
    }

    /// Adds the next piece and returns the decided bytes; often none for a small piece.
    #[must_use]
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.buffer.extend_from_slice(piece);
        if self.buffer.len() < self.walk_at {
            return Vec::new();
        }
        self.walk.advance(&self.buffer, Input::Unfinished);
        let out = self.write_until(self.walk.safe());
        let dropped = self.walk.needed_from().min(self.buffer.len());
        self.buffer.drain(..dropped);
        self.buffer.shrink_to(HELD_BACK);
        self.walk.rebase(dropped);
        self.written = self.written.saturating_sub(dropped);
        self.walk_at = self.buffer.len() + REACH;
        out
    }

    /// Returns the rest. A secret that is still open ends here.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.walk.advance(&self.buffer, Input::Whole);
        self.write_until(usize::MAX)
    }

    /// Returns the number of secrets replaced in the bytes returned so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Writes everything before `safe`: plain bytes up to a span that can still change, markers of those that cannot.
    fn write_until(&mut self, safe: usize) -> Vec<u8> {
        let end = safe.min(self.buffer.len());
        let mut out = Vec::new();
        let mut open = Vec::new();
        for span in mem::take(&mut self.walk.spans) {
            if span.start < safe && open.is_empty() {
                self.write_plain(span.start, &mut out);
                if span.end <= safe {
                    out.extend_from_slice(self.scanner.marker(span).as_bytes());
                    self.count += 1;
                    self.written = span.end;
                    continue;
                }
            }
            open.push(span);
        }
        let plain_end = open.first().map_or(end, |span| span.start.min(end));
        self.write_plain(plain_end, &mut out);
        self.walk.spans = open;
        out
    }

    fn write_plain(&mut self, until: usize, out: &mut Vec<u8>) {
        if self.written < until {
            out.extend_from_slice(&self.buffer[self.written..until]);
            self.written = until;
        }
    }
}

impl fmt::Debug for StreamRedactor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The buffer may hold a secret.
        f.debug_struct("StreamRedactor")
            .field("held_back", &self.buffer.len())
            .finish_non_exhaustive()
    }
}
