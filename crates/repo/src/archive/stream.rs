//! The byte stream of an archive: read once, counted before and after decompression, and limited.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{ArchiveError, ArchiveLimits};
use crate::error::RepoError;

/// From here on the ratio counts; below it, a few headers of zeros would.
const RATIO_FROM: u64 = 64 << 20;

/// State shared by both readers and their owner.
#[derive(Debug, Default)]
pub(super) struct StreamState {
    compressed: Cell<u64>,
    unpacked: Cell<u64>,
    ended: Cell<bool>,
    fault: RefCell<Option<ArchiveError>>,
}

impl StreamState {
    /// Returns whether the decompressed stream has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.get()
    }

    /// Converts a reader's error: our own if we caused it, else a damaged archive.
    pub(super) fn explain(&self, error: &io::Error) -> ArchiveError {
        match self.fault.take() {
            Some(fault) => fault,
            None if error.kind() == io::ErrorKind::UnexpectedEof || self.has_ended() => {
                ArchiveError::Truncated {
                    what: "it ends in the middle",
                }
            }
            None => ArchiveError::Damaged {
                what: error.to_string(),
            },
        }
    }

    fn fail(&self, fault: ArchiveError) -> io::Error {
        let text = fault.to_string();
        *self.fault.borrow_mut() = Some(fault);
        io::Error::other(text)
    }
}

/// The archive's own bytes.
#[derive(Debug)]
pub(super) struct Compressed {
    file: File,
    path: PathBuf,
    limit: u64,
    flow: Rc<StreamState>,
}

impl Compressed {
    pub(super) fn new(
        file: File,
        path: &Path,
        limits: &ArchiveLimits,
        flow: &Rc<StreamState>,
    ) -> Self {
        Self {
            file,
            path: path.to_owned(),
            limit: limits.compressed.0,
            flow: Rc::clone(flow),
        }
    }
}

impl Read for Compressed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match self.file.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
            Err(source) => {
                return Err(self
                    .flow
                    .fail(RepoError::io("read", &self.path, source).into()));
            }
            Ok(count) => count,
        };
        let total = self.flow.compressed.get() + count as u64;
        self.flow.compressed.set(total);
        // The file may have grown since it was measured.
        if total > self.limit {
            let what = "bytes in the archive";
            return Err(self.flow.fail(ArchiveError::TooLarge {
                what,
                limit: self.limit,
            }));
        }
        Ok(count)
    }
}

/// What comes out of the decompression.
pub(super) struct Stream<'a, R> {
    pub(super) inner: R,
    limits: ArchiveLimits,
    stop: &'a AtomicBool,
    flow: Rc<StreamState>,
}

impl<'a, R> Stream<'a, R> {
    pub(super) fn new(
        inner: R,
        limits: &ArchiveLimits,
        stop: &'a AtomicBool,
        flow: &Rc<StreamState>,
    ) -> Self {
        Self {
            inner,
            limits: *limits,
            stop,
            flow: Rc::clone(flow),
        }
    }
}

impl<R: Read> Read for Stream<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(self.flow.fail(ArchiveError::Stopped));
        }
        let count = self.inner.read(buffer)?;
        if count == 0 && !buffer.is_empty() {
            self.flow.ended.set(true);
        }
        let total = self.flow.unpacked.get() + count as u64;
        self.flow.unpacked.set(total);
        let ArchiveLimits {
            unpacked, ratio, ..
        } = self.limits;
        if total > unpacked.0 {
            let what = "bytes when it is unpacked";
            return Err(self.flow.fail(ArchiveError::TooLarge {
                what,
                limit: unpacked.0,
            }));
        }
        if total > RATIO_FROM && total / ratio.max(1) > self.flow.compressed.get() {
            let what = "times its own size when it is unpacked";
            return Err(self
                .flow
                .fail(ArchiveError::TooLarge { what, limit: ratio }));
        }
        Ok(count)
    }
}
