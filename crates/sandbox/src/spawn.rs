//! A request to run a program: its input, its limits and its confinement.
//!
//! Everything is a value; nothing here has side effects. There is no field for a shell, and no field
//! that inherits the environment.

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use crucible_model::ByteLimit;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncRead;
use tokio::sync::Mutex;

use crate::hosts::AllowedHost;
use crate::identity::Identity;
use crate::mounts::Mount;
use crate::terminal_end::{ProgramTerminal, Terminal};

/// The command of the inner stage: this binary, and its arguments before the number of the socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    /// An absolute path to a program whose `main` calls [`crate::inner_main`].
    pub program: PathBuf,
    /// The arguments before the socket number, such as `__sandbox-exec`.
    pub args: Vec<OsString>,
}

/// One process to run.
#[derive(Debug, Clone)]
pub struct Spawn {
    /// A path with a `/`, relative to `cwd`, or a bare name that is looked up on the `PATH` in `env`.
    pub program: PathBuf,
    /// The arguments after the program's name, passed byte for byte.
    pub args: Vec<OsString>,
    /// The working directory. It is opened once, and a link as its last component is not followed. The
    /// child enters the opened directory.
    pub cwd: PathBuf,
    /// The child's complete environment.
    pub env: Vec<(OsString, OsString)>,
    /// The input of the child.
    pub stdin: Stdin,
    /// Where the standard output goes.
    pub stdout: Stdout,
    /// Time, output and resources.
    pub limits: Limits,
    /// The isolation.
    pub confinement: Confinement,
    /// Which end of a long output is kept.
    pub keep: Keep,
    /// Whether secrets in the output are replaced.
    pub redaction: Redaction,
}

impl Spawn {
    /// Creates a request for a trusted program without arguments, environment or input. Its output is redacted, and
    /// its beginning is kept. Change the fields that differ.
    pub fn new(program: impl Into<PathBuf>, cwd: impl Into<PathBuf>, limits: Limits) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            cwd: cwd.into(),
            env: Vec::new(),
            stdin: Stdin::Empty,
            stdout: Stdout::Memory,
            limits,
            confinement: Confinement::Trusted,
            keep: Keep::Head,
            redaction: Redaction::Redact,
        }
    }
}

/// A child's standard input.
#[derive(Clone)]
pub enum Stdin {
    /// No input.
    Empty,
    /// These bytes. It is not an error if the child stops reading early.
    Bytes(Vec<u8>),
    /// Bytes as they come.
    Stream(InputSource),
    /// A terminal of its own, which is its standard output and standard error too. Nothing of them is kept, limited or redacted.
    Terminal(ProgramTerminal),
}

/// A stream that a child reads. It belongs to one child.
#[derive(Clone)]
pub struct InputSource(pub(crate) Arc<Mutex<dyn AsyncRead + Send + Unpin>>);

impl InputSource {
    /// Lets a child read this stream.
    #[must_use]
    pub fn new(stream: impl AsyncRead + Send + Unpin + 'static) -> Self {
        Self(Arc::new(Mutex::new(stream)))
    }
}

impl Stdin {
    /// What this is to a child.
    pub(crate) fn terminal(&self) -> Terminal {
        match self {
            Self::Empty | Self::Bytes(_) | Self::Stream(_) => Terminal::None,
            Self::Terminal(_) => Terminal::Controlling,
        }
    }
}

impl std::fmt::Debug for Stdin {
    /// Prints the length only: a prompt is long and may contain secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
            Self::Stream(_) => f.write_str("Stream"),
            Self::Terminal(_) => f.write_str("Terminal"),
        }
    }
}

/// Where a child's standard output is kept, up to [`Limits::stdout`].
#[derive(Debug, Clone)]
pub enum Stdout {
    /// In [`crate::Completed::stdout`].
    Memory,
    /// In this open file, unredacted, the first bytes. The file also gets the output of a program that fails later.
    /// A write error ends the program and fails the run.
    File(Arc<File>),
}

/// The limits of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The time limit. Then the process gets SIGTERM, and after `grace` SIGKILL.
    pub wall: Duration,
    /// The most bytes of standard output that are kept; the rest is counted and dropped.
    pub stdout: ByteLimit,
    /// The most bytes of standard error that are kept.
    pub stderr: ByteLimit,
    /// A stream longer than this ends the process ([`crate::End::OutputLimit`]).
    pub runaway: ByteLimit,
    /// The time between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// Limits of confined programs.
    pub resources: Resources,
}

impl Limits {
    /// Creates limits with this time, 8 MiB kept of each stream, an end at 256 MiB, and 5 s of grace.
    #[must_use]
    pub const fn new(wall: Duration) -> Self {
        Self {
            wall,
            stdout: ByteLimit(8 << 20),
            stderr: ByteLimit(8 << 20),
            runaway: ByteLimit(256 << 20),
            grace: Duration::from_secs(5),
            resources: Resources::DEFAULT,
        }
    }
}

/// A limit that the kernel enforces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cap {
    /// The limit of the machine.
    Unlimited,
    /// This limit, or that of the machine if it is lower.
    At(u64),
}

impl Cap {
    /// Returns the lower of both.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        match (self, other) {
            (Self::At(one), Self::At(other)) => Self::At(one.min(other)),
            (Self::At(most), Self::Unlimited) | (Self::Unlimited, Self::At(most)) => Self::At(most),
            (Self::Unlimited, Self::Unlimited) => Self::Unlimited,
        }
    }
}

/// Limits that apply to every confined program in addition to its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// Bytes of memory, as [`Resources::memory`].
    pub memory: Cap,
    /// Processes and threads, as [`Resources::processes`].
    pub processes: Cap,
}

impl Caps {
    /// 4 GiB and 8192 processes.
    pub const DEFAULT: Self = Self {
        memory: Cap::At(4 << 30),
        processes: Cap::At(8192),
    };
}

/// Resource limits of a confined program and its descendants. Core dumps are always off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resources {
    /// Bytes of memory of the program and its descendants, in a control group. Without a control group, of each process. At
    /// most what the sandbox allows ([`crate::Sandbox::with_caps`]).
    pub memory: Cap,
    /// Bytes of address space of one process.
    pub address_space: Cap,
    /// Bytes of one written file.
    pub file_size: Cap,
    /// Processes and threads, counted in a control group, and for the sandbox's own user with namespaces. Without both, not
    /// applied, because the kernel would count every process of the user. At most what the sandbox allows.
    pub processes: Cap,
    /// Open descriptors of one process.
    pub open_files: Cap,
    /// Bytes that the program and its descendants may add to the writable directories together.
    /// A program that uses more is ended like one that exceeds its time ([`crate::End::DiskLimit`]). The private
    /// directories of a namespaced sandbox, which are in memory, have the same limit, and at most 4 GiB.
    pub disk: Cap,
}

impl Resources {
    /// 8 GiB per file, 16 GiB in total, 65536 descriptors, memory and processes as the sandbox allows. Address space is unlimited, because
    /// runtimes reserve far more of it than they use. A build of a large workspace uses more than 10 GiB.
    pub const DEFAULT: Self = Self {
        memory: Cap::Unlimited,
        address_space: Cap::Unlimited,
        file_size: Cap::At(8 << 30),
        processes: Cap::Unlimited,
        open_files: Cap::At(65_536),
        disk: Cap::At(16 << 30),
    };
}

/// How far a program is trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confinement {
    /// git, gh and model clients: limits and their own session, no isolation.
    Trusted,
    /// A program that runs code from a repository or a model.
    Confined(Profile),
}

/// The isolation of a confined program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// What happens if a layer is missing.
    pub strength: Strength,
    /// The directories that may be written to; each must exist.
    pub writable: Vec<PathBuf>,
    /// Absolute paths that are neither readable nor creatable, besides the user's own secrets, which are
    /// always hidden. A path that does not exist is covered by an empty file, or by an empty directory
    /// when it is written with a final `/`.
    pub masked: Vec<PathBuf>,
    /// Absolute paths in the writable directories that are read-only: they cannot be changed, replaced or, if they do not
    /// exist, created. Needs namespaces; without them, the layer [`crate::Layer::Masks`] is reported as missing.
    pub read_only: Vec<PathBuf>,
    /// Directories that are mounted at another path; outer mounts first.
    pub mounts: Vec<Mount>,
    /// The network access.
    pub network: Network,
    /// The permitted system calls.
    pub calls: SyscallClass,
    /// Which user and machine it sees.
    pub identity: Identity,
}

/// How much of the isolation is required.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strength {
    /// Every layer, or no run.
    Required,
    /// Every layer that this machine offers; the receipt names the others.
    BestEffort,
    /// No layer: limits and supervision only, and the receipt says so.
    Off,
}

impl Strength {
    /// All strengths, the strongest first.
    pub const ALL: [Self; 3] = [Self::Required, Self::BestEffort, Self::Off];

    /// Returns the name in settings, flags and records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::BestEffort => "best-effort",
            Self::Off => "off",
        }
    }
}

impl FromStr for Strength {
    type Err = StrengthError;

    fn from_str(name: &str) -> Result<Self, StrengthError> {
        let found = Self::ALL
            .into_iter()
            .find(|strength| strength.as_str() == name);
        found.ok_or_else(|| StrengthError {
            name: name.to_owned(),
        })
    }
}

/// An unknown strength.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown sandbox strength {name:?}; use one of {}", Strength::ALL.map(Strength::as_str).join(", "))]
pub struct StrengthError {
    /// What was asked for.
    pub name: String,
}

/// The network access of a confined program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// Nothing but its own loopback.
    None,
    /// The network of the machine.
    Host,
    /// Its own loopback, and these hosts by TCP. Needs namespaces; without them no host is reachable.
    Hosts(Vec<AllowedHost>),
}

/// The class of system calls that a confined program may make. A call that is worse than an error ends the program
/// ([`crate::End::Forbidden`]), so that it cannot hide the attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SyscallClass {
    /// The calls that builds and tests need.
    Tools,
    /// Reading and computing: no writes, no sockets, no other processes.
    Compute,
    /// The same, plus read locks, for example on databases; other writers wait for them.
    Read,
    /// Reading and computing, plus writes where the profile permits them.
    Files,
    /// Reading, computing and internet sockets: no writes, no other processes.
    Connect,
}

/// Which end of an output that is longer than its limit is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The first bytes.
    Head,
    /// The last bytes.
    Tail,
}

/// What happens to secrets in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redaction {
    /// They are replaced by the name of their rule, before any truncation.
    Redact,
    /// They are replaced in standard error alone, for callers that parse standard output.
    OnlyStderr,
    /// They are kept, for callers that parse the bytes and redact later.
    Raw,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strength_is_called_the_same_everywhere() {
        for strength in Strength::ALL {
            assert_eq!(strength.as_str().parse(), Ok(strength));
            assert_eq!(serde_json::to_value(strength).unwrap(), strength.as_str());
        }
        let error = "Required".parse::<Strength>().unwrap_err().to_string();
        assert!(error.contains("required, best-effort, off"), "{error}");
    }
}
