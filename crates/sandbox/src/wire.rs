//! The messages between the two stages of a confined start, over a private socket.
//!
//! The outer stage sends one [`StageRequest`]; the inner stage answers with [`Report`] lines. It does so
//! before any untrusted code runs, and its end of the socket is closed when that code starts.

use std::ffi::OsString;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::layers::{ActiveLayer, MissingLayer};
use crate::spawn::{Cap, Network, Resources, Strength, SyscallClass};
use crate::terminal_end::Terminal;

/// A directory with the identity that the inner stage must find.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IdentifiedDir {
    pub(crate) path: OsString,
    /// Device and inode.
    pub(crate) identity: (u64, u64),
}

/// Whether the inner stage runs in namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StageIsolation {
    /// It runs in namespaces that bubblewrap created.
    Namespaces,
    /// It runs directly on the machine.
    Machine,
}

/// Whether the private directories, which are in memory, have a size limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PrivateSize {
    /// Each has one.
    Sized,
    /// None has: bubblewrap is older than 0.8, or there are no private directories.
    Unsized,
}

/// Whether a private overlay can be mounted over a host directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overlays {
    /// Writes go to the overlay.
    Available,
    /// The directory is read-only instead.
    Missing,
    /// An overlay is only tested, on a directory created for the test.
    Tried,
}

/// The features of a machine that confined programs use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StageFeatures {
    pub(crate) isolation: StageIsolation,
    pub(crate) private: PrivateSize,
    pub(crate) overlays: Overlays,
}

/// The request to the stage before bubblewrap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OverlayRequest {
    /// An existing directory, over which the memory of the overlays is mounted.
    pub(crate) place: OsString,
    /// The most bytes of all overlays together; `None` for the kernel's default.
    pub(crate) size: Option<u64>,
    /// The lower directories; if empty, an overlay is only tested.
    pub(crate) lower: Vec<OsString>,
}

/// The request to the inner stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StageRequest {
    pub(crate) program: OsString,
    /// The value of `argv[0]`.
    pub(crate) arg0: OsString,
    /// Whether standard input becomes its controlling terminal.
    pub(crate) terminal: Terminal,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cwd: IdentifiedDir,
    pub(crate) writable: Vec<IdentifiedDir>,
    /// The read-only paths in them.
    pub(crate) read_only: Vec<OsString>,
    /// Whether a writable directory is mounted at another path.
    pub(crate) has_moved_mount: bool,
    /// The readable paths, each with everything below it.
    pub(crate) readable: Vec<OsString>,
    /// The program's own home, unless another private place contains it.
    pub(crate) home: Option<OsString>,
    pub(crate) surroundings: StageIsolation,
    pub(crate) private: PrivateSize,
    pub(crate) network: Network,
    pub(crate) calls: SyscallClass,
    /// The local addresses of the reachable hosts; the stage passes back a listener for each, in this order.
    pub(crate) listen: Vec<SocketAddr>,
    pub(crate) resources: Resources,
    /// The memory limit of each process in bytes, if no control group limits their sum.
    pub(crate) memory_each: Cap,
    pub(crate) strength: Strength,
}

/// A message of the inner stage: one JSON object per line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    /// All layers are in force; the program is about to start.
    Ready {
        reached: Vec<ActiveLayer>,
        missing: Vec<MissingLayer>,
    },
    /// A required layer is missing; nothing was started.
    Refused { missing: Vec<MissingLayer> },
    /// The request cannot be met; nothing was started.
    Failed { detail: String },
    /// The kernel refused to start the program.
    NotStarted { errno: i32 },
}

/// Parses the lines of a report, up to the first invalid one.
pub(crate) fn read_report(bytes: &[u8]) -> Vec<Report> {
    bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map_while(|line| serde_json::from_slice(line).ok())
        .collect()
}
