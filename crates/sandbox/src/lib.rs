//! The only place that starts a process.
//!
//! [`Sandbox::run`] takes a [`Spawn`] (a program, its arguments as a vector, its whole environment, its
//! limits) and gives back a [`Completed`]: how the process ended, what it printed, and which isolation was in force
//! around it. Trusted programs (git, gh, the model command lines) run under limits in a session of their
//! own; confined ones run inside namespaces, Landlock, seccomp and resource limits.
//!
//! How it works: the caller's [`Spawn`] becomes a plan (`plan`), the plan is started by one thread that
//! lives as long as this process (`spawner`), watched against its limits (`supervise`), its output is
//! kept in rings and redacted on the way in (`capture`), its connections to allowed hosts are carried
//! (`hosts`, `forward`), and whatever it left behind is found through `/proc` and ended (`tree`). Confined programs are reached through bubblewrap (`layout`, `bubblewrap`)
//! and an inner stage of this same binary (`inner`), to which a private socket carries the order (`wire`).
//!
//! If this process is killed, a guard process ends its programs (`guard`).
//!
//! [`Sandbox::start_in_background`] is for work that goes on after this process: it starts this very program again, and nothing else.
//!
//! What always holds: no shell; the child's environment is exactly what was given; no descriptor above 2
//! reaches it; when [`Sandbox::run`] returns or is dropped, nothing it started is left running, or the
//! error says what is.

mod background;
mod bubblewrap;
mod capture;
mod cgroup;
mod completed;
mod descriptors;
mod directory;
mod disk;
mod environment;
mod error;
mod exit_status;
mod forward;
mod guard;
mod hidden;
mod hosts;
mod identity;
mod inner;
mod layers;
mod layout;
mod masks;
mod mounts;
mod plan;
mod probe;
mod program;
mod runtime;
mod sandbox;
mod sockets;
mod spawn;
mod spawner;
mod supervise;
mod sys;
mod terminal;
mod terminal_end;
mod tools;
mod tree;
mod version;
mod wire;

pub use background::{BackgroundProcess, BackgroundStart};
pub use completed::{Captured, Completed, End, Extent, FORBIDDEN_SIGNAL, HostConnections, Stopped};
pub use environment::{base_env, toolchain_env};
pub use error::{PathProblem, SandboxError};
pub use hosts::{AllowedHost, AllowedHostError, HostProblem};
pub use identity::{CONFINED_HOME, Identity, InnerUser};
pub use inner::inner_main;
pub use layers::{
    ActiveLayer, IsolationLevel, IsolationReceipt, Layer, LayerState, LayerStatus, Layers,
    MissingLayer, RequestedConfinement, ResourceLevel,
};
pub use mounts::{Mount, MountContent};
pub use runtime::{Notices, Runtime};
pub use sandbox::Sandbox;
pub use spawn::{
    Cap, Caps, Confinement, InputSource, Keep, Launcher, Limits, Network, Profile, Redaction,
    Resources, Spawn, Stdin, Stdout, Strength, StrengthError, SyscallClass,
};
pub use terminal::TerminalMaster;
pub use terminal_end::{ProgramTerminal, TerminalSize};
pub use version::{NoVersion, VersionOutput};
