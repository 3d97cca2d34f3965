//! What a run gives back.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::layers::IsolationReceipt;

/// A process that has ended, with nothing left of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completed {
    /// How it ended.
    pub end: End,
    /// Its standard output.
    pub stdout: Captured,
    /// Its standard error.
    pub stderr: Captured,
    /// Wall-clock time from the request to the end.
    pub duration: Duration,
    /// Which walls stood around it.
    pub receipt: IsolationReceipt,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// By itself, with this code. Inside namespaces a program killed by signal `n` shows as `128 + n`.
    Exited(i32),
    /// By this signal, which somebody else sent.
    Signalled(i32),
    /// By us, because its time was over.
    TimedOut,
    /// By us, because it printed more than [`crate::Limits::runaway`] on one stream.
    OutputLimit,
    /// By us, because it wrote more than [`crate::Resources::disk`] into the writable directories.
    DiskLimit,
}

/// What was kept of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// The kept bytes, redacted where that was asked for; none where they were kept in a file.
    pub bytes: Vec<u8>,
    /// How many bytes the process printed.
    pub total: u64,
    /// Whether the kept bytes are all there were.
    pub extent: Extent,
}

/// Whether a stream was kept whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Extent {
    /// Every byte.
    #[default]
    Whole,
    /// One end of it.
    Cut,
}

impl Captured {
    /// The kept bytes as text; what is not UTF-8 becomes U+FFFD.
    #[must_use]
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}
