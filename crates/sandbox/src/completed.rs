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
    /// Which isolation layers were in force.
    pub receipt: IsolationReceipt,
    /// How it was stopped, where its own end was not waited for.
    pub stopped: Option<Stopped>,
    /// Whether the kernel ended a process of it because the memory it may use was used up. Known in a control group only.
    pub ran_out_of_memory: bool,
    /// What it did with the hosts that it could reach ([`crate::Network::Hosts`]): those that it connected to, or tried to.
    pub contacts: Vec<HostConnections>,
}

/// How a program ended after it was asked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stopped {
    /// How many milliseconds it had between TERM and KILL.
    pub grace_ms: u64,
    /// How many milliseconds after TERM it had ended.
    pub ended_after_ms: u64,
    /// Whether it ignored TERM and was killed.
    pub was_killed: bool,
}

/// What became of a program's connections to one port of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostConnections {
    /// The host, as it was allowed.
    pub host: String,
    /// The port.
    pub port: u16,
    /// How many connections were made.
    pub opened: u64,
    /// How many could not be made, or were refused because of where the name leads.
    pub failed: u64,
    /// Why the last of these was not; empty where there was none.
    pub last_failure: String,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// By itself, with this code. Inside namespaces a program killed by signal `n` shows as `128 + n`.
    Exited(i32),
    /// By this signal, from outside.
    Signalled(i32),
    /// By us, because its time was over or the caller asked for it ([`crate::Sandbox::run_until`]).
    TimedOut,
    /// By us, because it printed more than [`crate::Limits::runaway`] on one stream.
    OutputLimit,
    /// By us, because it wrote more than [`crate::Resources::disk`] into the writable directories.
    DiskLimit,
    /// By the kernel, because it made a system call that [`crate::Profile::calls`] does not allow.
    Forbidden,
}

/// The signal by which the kernel ends a program for [`End::Forbidden`], for callers that know signals only.
pub const FORBIDDEN_SIGNAL: i32 = libc::SIGSYS;

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
