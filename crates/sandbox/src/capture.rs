//! Reads a child's output: redacts it as it comes, keeps one end of it, in memory or in a file, and counts all of it.
//!
//! What always holds: memory stays within twice the limit however much a child prints, and a file within the limit; redaction
//! comes before truncation, so a cut can never leave half a secret that no rule recognises.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use crucible_model::ByteLimit;
use crucible_secrets::{Scanner, StreamRedactor};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::Notify;

use crate::completed::{Captured, Extent};
use crate::spawn::Keep;

/// How much is read at once.
const CHUNK: usize = 64 << 10;

/// One stream on its way from the child to the caller.
pub(crate) struct Capture {
    keeper: Keeper,
    redactor: Option<StreamRedactor<'static>>,
    total: u64,
}

enum Keeper {
    Memory(Ring),
    File(FileKeeper),
}

impl Capture {
    /// An empty capture in memory.
    pub(crate) fn new(keep: Keep, limit: ByteLimit, secrets: SecretHandling) -> Self {
        let redactor = match secrets {
            SecretHandling::Replaced => Some(Scanner::builtin().redactor()),
            SecretHandling::Kept => None,
        };
        Self {
            keeper: Keeper::Memory(Ring::new(keep, limit)),
            redactor,
            total: 0,
        }
    }

    /// A capture in a file: the first bytes as they come.
    pub(crate) fn in_file(file: Arc<File>, limit: ByteLimit) -> Self {
        let keeper = FileKeeper {
            file,
            room: limit.0,
            extent: Extent::Whole,
            failure: None,
        };
        Self {
            keeper: Keeper::File(keeper),
            redactor: None,
            total: 0,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        match &mut self.redactor {
            Some(redactor) => self.keeper.push(&redactor.push(bytes)),
            None => self.keeper.push(bytes),
        }
    }

    /// Whether there is no point in reading on.
    pub(crate) fn is_over(&self, limit: ByteLimit) -> bool {
        self.total > limit.0
            || matches!(
                &self.keeper,
                Keeper::File(FileKeeper {
                    failure: Some(_),
                    ..
                })
            )
    }

    /// What was kept; fails when the file did not take it.
    pub(crate) fn finish(mut self) -> io::Result<Captured> {
        if let Some(redactor) = self.redactor {
            self.keeper.push(&redactor.finish());
        }
        let (bytes, extent) = match self.keeper {
            Keeper::Memory(ring) => ring.finish(),
            Keeper::File(FileKeeper {
                failure: Some(failure),
                ..
            }) => return Err(failure),
            Keeper::File(file) => (Vec::new(), file.extent),
        };
        Ok(Captured {
            bytes,
            total: self.total,
            extent,
        })
    }
}

/// Whether secrets in a stream are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SecretHandling {
    Replaced,
    Kept,
}

impl Keeper {
    fn push(&mut self, bytes: &[u8]) {
        match self {
            Self::Memory(ring) => ring.push(bytes),
            Self::File(file) => file.push(bytes),
        }
    }
}

/// Reads `pipe` to its end into `capture`; tells `runaway` once more than `limit` has come or the capture takes no more.
pub(crate) async fn pump(
    pipe: Option<impl AsyncRead + Unpin>,
    capture: &mut Capture,
    limit: ByteLimit,
    runaway: &Notify,
) {
    let Some(mut pipe) = pipe else { return };
    let mut chunk = vec![0; CHUNK];
    // A broken pipe is the end of the stream, as the end of the file is.
    while let Ok(count @ 1..) = pipe.read(&mut chunk).await {
        capture.push(chunk.get(..count).unwrap_or_default());
        if capture.is_over(limit) {
            runaway.notify_one();
        }
    }
}

/// The first bytes of a stream, written to a file.
struct FileKeeper {
    file: Arc<File>,
    room: u64,
    extent: Extent,
    failure: Option<io::Error>,
}

impl FileKeeper {
    fn push(&mut self, bytes: &[u8]) {
        if self.failure.is_some() {
            return;
        }
        let fitting = usize::try_from(self.room)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        if fitting < bytes.len() {
            self.extent = Extent::Cut;
        }
        // A chunk goes to the page cache in less time than handing it to another thread takes.
        match (&*self.file).write_all(bytes.get(..fitting).unwrap_or_default()) {
            Ok(()) => self.room -= fitting as u64,
            Err(failure) => self.failure = Some(failure),
        }
    }
}

/// The kept end of a stream.
struct Ring {
    keep: Keep,
    limit: usize,
    buffer: Vec<u8>,
    extent: Extent,
}

impl Ring {
    fn new(keep: Keep, limit: ByteLimit) -> Self {
        let limit = usize::try_from(limit.0)
            .unwrap_or(usize::MAX / 4)
            .min(usize::MAX / 4);
        Self {
            keep,
            limit,
            buffer: Vec::new(),
            extent: Extent::Whole,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        match self.keep {
            Keep::Head => {
                let remaining = self
                    .limit
                    .saturating_sub(self.buffer.len())
                    .min(bytes.len());
                self.buffer
                    .extend_from_slice(bytes.get(..remaining).unwrap_or_default());
                if remaining < bytes.len() {
                    self.extent = Extent::Cut;
                }
            }
            Keep::Tail => {
                let from = bytes.len().saturating_sub(self.limit);
                self.buffer
                    .extend_from_slice(bytes.get(from..).unwrap_or_default());
                if from > 0 || self.buffer.len() > self.limit {
                    self.extent = Extent::Cut;
                }
                // Moving the kept bytes down only when the buffer is twice full costs one move a byte.
                if self.buffer.len() >= self.limit.saturating_mul(2) {
                    self.trim();
                }
            }
        }
    }

    fn trim(&mut self) {
        let excess = self.buffer.len().saturating_sub(self.limit);
        self.buffer.drain(..excess);
    }

    fn finish(mut self) -> (Vec<u8>, Extent) {
        self.trim();
        (self.buffer, self.extent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(keep: Keep, limit: u64, pushes: &[&str]) -> (String, Extent) {
        let mut ring = Ring::new(keep, ByteLimit(limit));
        for push in pushes {
            ring.push(push.as_bytes());
            assert!(ring.buffer.len() <= 2 * usize::try_from(limit).unwrap() + push.len());
        }
        let (bytes, extent) = ring.finish();
        (String::from_utf8(bytes).unwrap(), extent)
    }

    #[test]
    fn the_head_is_what_came_first() {
        assert_eq!(
            ring(Keep::Head, 5, &["abc", "def", "ghi"]),
            ("abcde".into(), Extent::Cut)
        );
        assert_eq!(
            ring(Keep::Head, 6, &["abc", "def"]),
            ("abcdef".into(), Extent::Whole)
        );
        assert_eq!(ring(Keep::Head, 0, &["a"]), (String::new(), Extent::Cut));
    }

    #[test]
    fn the_tail_is_what_came_last() {
        assert_eq!(
            ring(Keep::Tail, 5, &["abc", "def", "ghi"]),
            ("efghi".into(), Extent::Cut)
        );
        assert_eq!(
            ring(Keep::Tail, 2, &["abcdefgh"]),
            ("gh".into(), Extent::Cut)
        );
        assert_eq!(
            ring(Keep::Tail, 6, &["abc", "def"]),
            ("abcdef".into(), Extent::Whole)
        );
        assert_eq!(
            ring(Keep::Tail, 0, &["a", "b"]),
            (String::new(), Extent::Cut)
        );
    }
}
