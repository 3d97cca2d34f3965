//! What the two stages of a confined start say to each other, over a socket that only they hold.
//!
//! The outer stage sends one [`Order`]; the inner stage answers with [`Report`] lines. The answer is written
//! before any untrusted code runs, and the inner end of the socket closes itself as that code starts.

use std::ffi::OsString;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::layers::{MissingLayer, ReachedLayer};
use crate::spawn::{Calls, Cap, Network, Resources, Strength};
use crate::terminal_end::Terminal;

/// A directory and what it must be when the inner stage comes to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) path: OsString,
    /// Device and inode.
    pub(crate) identity: (u64, u64),
}

/// Whether namespaces stand around the inner stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Surroundings {
    /// Bubblewrap built a private world.
    Namespaces,
    /// The machine itself.
    Machine,
}

/// Whether the private places, which are in memory, are bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PrivateBound {
    /// Each has a size.
    Sized,
    /// Bubblewrap is too old to give them one (before 0.8), or no such places exist.
    Unsized,
}

/// Whether a private layer can be laid over a directory of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overlays {
    /// It takes what is written.
    Available,
    /// The directory is shown read-only instead.
    Missing,
    /// One over a directory made for it is tried out, without use for the program.
    Tried,
}

/// What a machine gives every confined program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Means {
    pub(crate) surroundings: Surroundings,
    pub(crate) private: PrivateBound,
    pub(crate) overlays: Overlays,
}

/// What the stage before bubblewrap is to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OverlayOrder {
    /// An existing directory, over which the memory for the layers is mounted.
    pub(crate) place: OsString,
    /// Bytes that all layers hold in total; as much as the kernel allows without.
    pub(crate) size: Option<u64>,
    /// The directories. Without any, an overlay is tried out.
    pub(crate) lower: Vec<OsString>,
}

/// What the inner stage is to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) program: OsString,
    /// The program's name as the program sees it.
    pub(crate) called: OsString,
    /// Whether standard input becomes its controlling terminal.
    pub(crate) terminal: Terminal,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cwd: Place,
    pub(crate) writable: Vec<Place>,
    /// What of them stays as it is.
    pub(crate) read_only: Vec<OsString>,
    /// Whether a writable directory is to be seen at another path than its own.
    pub(crate) moved: bool,
    /// What may be read, each with all below it.
    pub(crate) readable: Vec<OsString>,
    /// The program's own home, where it lies in no other private place.
    pub(crate) home: Option<OsString>,
    pub(crate) surroundings: Surroundings,
    pub(crate) private: PrivateBound,
    pub(crate) network: Network,
    pub(crate) calls: Calls,
    /// Where the hosts that may be reached seem to be; a listener for each is handed out in this order.
    pub(crate) listen: Vec<SocketAddr>,
    pub(crate) resources: Resources,
    /// Bytes of memory of each process by itself: no control group counts all of them together.
    pub(crate) memory_each: Cap,
    pub(crate) strength: Strength,
}

/// What the inner stage has done; one JSON object a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    /// The walls stand; the program is about to start.
    Ready {
        reached: Vec<ReachedLayer>,
        missing: Vec<MissingLayer>,
    },
    /// A required wall could not be built; nothing was started.
    Refused { missing: Vec<MissingLayer> },
    /// Something is not what the order says; nothing was started.
    Failed { detail: String },
    /// The kernel did not start the program, for this reason.
    NotStarted { errno: i32 },
}

/// The lines of a report, in their order; a line that is not one of ours ends it.
pub(crate) fn read_report(bytes: &[u8]) -> Vec<Report> {
    bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map_while(|line| serde_json::from_slice(line).ok())
        .collect()
}
