//! What a caller asks for: the program, its input, its limits and the walls around it.
//!
//! Everything is a value; nothing here touches the machine. There is no field for a shell, and no field
//! that means "inherit the environment".

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

/// How to reach the inner stage: this binary, and the words before the number of the order's socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    /// An absolute path to a program whose `main` calls [`crate::inner_main`].
    pub program: PathBuf,
    /// What precedes the inner stage's own argument, such as `__sandbox-exec`.
    pub args: Vec<OsString>,
}

/// One process to run.
#[derive(Debug, Clone)]
pub struct Spawn {
    /// A path with a `/`, relative to `cwd`, or a bare name that is looked up on the `PATH` in `env`.
    pub program: PathBuf,
    /// The arguments after the program's name, passed byte for byte.
    pub args: Vec<OsString>,
    /// The working directory. It is opened once, its last component is not followed when it is a link, and
    /// the child enters what was opened.
    pub cwd: PathBuf,
    /// The child's whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// What the child reads on its standard input.
    pub stdin: Stdin,
    /// Where its standard output is kept.
    pub stdout: Stdout,
    /// Time, output and resources.
    pub limits: Limits,
    /// The walls.
    pub confinement: Confinement,
    /// Which end of a long output is kept.
    pub keep: Keep,
    /// Whether secrets in the output are replaced before anybody sees it.
    pub redaction: Redaction,
}

impl Spawn {
    /// A trusted program with no arguments, no environment and no input, whose output is redacted and
    /// kept from its beginning. Change the fields that differ.
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
    /// The end of the file at once.
    Empty,
    /// These bytes, then the end of the file. A child that stops reading early is no error.
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
    /// Tells the length only: a prompt is long, and may hold what must not be logged.
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
    /// In this open file, as the bytes come: never redacted, always the first bytes. What is kept of a program that failed is
    /// there too. A file that does not take it ends the program, and the run is an error.
    File(Arc<File>),
}

/// What a process may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Time from the start; at its end the process gets TERM, and after `grace` KILL.
    pub wall: Duration,
    /// How much of standard output is kept; the rest is read, counted and dropped.
    pub stdout: ByteLimit,
    /// How much of standard error is kept.
    pub stderr: ByteLimit,
    /// A stream longer than this ends the process ([`crate::End::OutputLimit`]).
    pub runaway: ByteLimit,
    /// Time between TERM and KILL.
    pub grace: Duration,
    /// Limits of confined programs.
    pub resources: Resources,
}

impl Limits {
    /// This much time; 8 MiB kept of each stream, ended at 256 MiB, 5 s between TERM and KILL.
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

/// A number the kernel holds a process to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cap {
    /// Whatever the machine allows.
    Unlimited,
    /// No more than this, and no more than the machine allows.
    At(u64),
}

impl Cap {
    /// The lower of both.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        match (self, other) {
            (Self::At(one), Self::At(other)) => Self::At(one.min(other)),
            (Self::At(most), Self::Unlimited) | (Self::Unlimited, Self::At(most)) => Self::At(most),
            (Self::Unlimited, Self::Unlimited) => Self::Unlimited,
        }
    }
}

/// The most that any confined program may use, whatever its own limits say.
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

/// Resource limits of a confined program and of everything it starts. Core dumps are always off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resources {
    /// Bytes of memory of the program and all it starts, in a control group; without a control group, of each process by itself. No
    /// more than the sandbox allows ([`crate::Sandbox::with_caps`]).
    pub memory: Cap,
    /// Bytes of address space of one process.
    pub address_space: Cap,
    /// Bytes of one written file.
    pub file_size: Cap,
    /// Processes and threads, counted in a control group, and for the sandbox's own user where namespaces stand. Without both not
    /// applied: the kernel would count every process of the user. No more than the sandbox allows.
    pub processes: Cap,
    /// Open descriptors of one process.
    pub open_files: Cap,
    /// Bytes on the disk: what the program and all it starts may add to the writable directories together.
    /// One that takes more is ended as one is whose time is over ([`crate::End::DiskLimit`]). The private
    /// places of a namespaced sandbox, which are in memory, hold as much again, and at most 4 GiB.
    pub disk: Cap,
}

impl Resources {
    /// 8 GiB a file, 16 GiB in all (a build of a large workspace takes more than ten), 65536 descriptors, memory and processes as the sandbox allows; address space is free because
    /// runtimes reserve far more of it than they use.
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
    /// git, gh and the model command lines: limits and a session of their own, no walls.
    Trusted,
    /// Anything that runs code from a repository or a model.
    Confined(Profile),
}

/// The walls around a confined program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// What happens where a wall is missing.
    pub strength: Strength,
    /// The directories that may be written to; each must exist.
    pub writable: Vec<PathBuf>,
    /// Absolute paths that are neither readable nor creatable, besides the user's own secrets, which are
    /// always hidden. A path that does not exist is covered by an empty file, or by an empty directory
    /// when it is written with a final `/`.
    pub masked: Vec<PathBuf>,
    /// Absolute paths in the writable directories that stay as they are: readable, and neither changed, replaced nor,
    /// where they do not exist, made. Needs namespaces; where they are missing the layer [`crate::Layer::Masks`] says so.
    pub read_only: Vec<PathBuf>,
    /// What stands at another path than on the machine; outer mounts first.
    pub mounts: Vec<Mount>,
    /// What the program can reach.
    pub network: Network,
    /// Which system calls it may make.
    pub calls: Calls,
    /// Which user and machine it sees.
    pub identity: Identity,
}

/// How much of the isolation must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strength {
    /// Every layer, or no run.
    Required,
    /// Every layer this machine offers; the receipt names the others.
    BestEffort,
    /// No layer: limits and supervision only, and the receipt says so.
    Off,
}

impl Strength {
    /// Every strength, the strongest first.
    pub const ALL: [Self; 3] = [Self::Required, Self::BestEffort, Self::Off];

    /// Its name, as settings, flags and records write it.
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

/// There is no strength of this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is no strength of the sandbox; it takes {}", Strength::ALL.map(Strength::as_str).join(", "))]
pub struct StrengthError {
    /// What was asked for.
    pub name: String,
}

/// What a confined program can reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// Nothing but its own loopback.
    None,
    /// The network of the machine.
    Host,
    /// Its own loopback, and these hosts by TCP. Needs namespaces; where they are missing nothing is reached.
    Hosts(Vec<AllowedHost>),
}

/// Which system calls a confined program may make. What is worse than an error ends the program
/// ([`crate::End::Forbidden`]), so that it cannot hide that it tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Calls {
    /// What builds and tests do.
    Tools,
    /// Reading and computing: nothing is opened for writing or made, no socket, no other process.
    Compute,
    /// The same, and locks on what it reads, such as databases: other writers wait for it.
    Read,
    /// Reading and computing, and writing where the profile lets it.
    Files,
    /// Reading, computing and internet sockets: nothing is written, no other process.
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
    /// They stay: for callers that parse the bytes and redact later themselves.
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
