//! From what a caller asks to a command that can be started: everything is resolved, opened and checked
//! here, so that what can be refused is refused before a process exists.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::cgroup::{CgroupEntries, Group};
use crate::directory::Directory;
use crate::error::SandboxError;
use crate::hosts::Route;
use crate::masks::Placeholders;
use crate::program;
use crate::spawn::{Spawn, Stdin};
use crate::spawner::SignalTarget;
use crate::sys::{self, ChildSettings, prepare_child};

/// A command that is ready to start.
pub(crate) struct Plan {
    pub(crate) command: Command,
    pub(crate) reach: SignalTarget,
    pub(crate) placeholders: Placeholders,
    pub(crate) conversation: Option<StageChannel>,
    /// The program in the end, for messages.
    pub(crate) program: PathBuf,
}

/// Our end of the socket to the inner stage, and what is to be said on it.
pub(crate) struct StageChannel {
    pub(crate) socket: UnixStream,
    pub(crate) order: Vec<u8>,
    /// The order that is sent instead if the child could not enter its control group.
    pub(crate) order_without_group: Vec<u8>,
    /// Where the connections go that the program makes, one listener for each.
    pub(crate) routes: Vec<Route>,
}

/// A request whose program and directory have been found.
pub(crate) struct Target {
    pub(crate) program: PathBuf,
    pub(crate) called: OsString,
    pub(crate) cwd: Directory,
    /// Of the control groups that it enters.
    pub(crate) doors: CgroupEntries,
}

/// Finds the program, opens the working directory and the control group.
pub(crate) fn target(spawn: &Spawn, group: Option<&Group>) -> Result<Target, SandboxError> {
    check_words(spawn)?;
    let cwd = Directory::open(&spawn.cwd).map_err(|problem| SandboxError::WorkingDirectory {
        path: spawn.cwd.clone(),
        problem,
    })?;
    let program = program::resolve(&spawn.program, &cwd.path, &spawn.env)?;
    let doors = group.and_then(Group::entries).unwrap_or_default();
    Ok(Target {
        program,
        called: spawn.program.clone().into_os_string(),
        cwd,
        doors,
    })
}

/// The plan that starts the program itself, without isolation.
pub(crate) fn direct(spawn: &Spawn, target: Target) -> Result<Plan, SandboxError> {
    let mut command = sys::command(target.program.as_os_str());
    command
        .arg0(&target.called)
        .args(&spawn.args)
        .env_clear()
        .envs(spawn.env.iter().cloned());
    connect(&mut command, &spawn.stdin)?;
    // TERM lets git and its like remove their lock files when we are killed.
    prepare_child(
        &mut command,
        ChildSettings {
            cwd: target.cwd.handle,
            keep: Vec::new(),
            on_orphaned: Signal::TERM,
            doors: target.doors,
            terminal: spawn.stdin.terminal(),
        },
    );
    Ok(Plan {
        command,
        reach: SignalTarget::Group,
        placeholders: Placeholders::default(),
        conversation: None,
        program: target.program,
    })
}

/// Gives the command its three pipes, or its terminal.
pub(crate) fn connect(command: &mut Command, stdin: &Stdin) -> Result<(), SandboxError> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    match stdin {
        Stdin::Empty => command.stdin(Stdio::null()),
        Stdin::Bytes(_) | Stdin::Stream(_) => command.stdin(Stdio::piped()),
        Stdin::Terminal(terminal) => {
            let end = || {
                terminal
                    .descriptor()
                    .map_err(|source| SandboxError::Supervision {
                        action: "connecting the terminal",
                        source,
                    })
            };
            command.stdin(end()?).stdout(end()?).stderr(end()?)
        }
    };
    Ok(())
}

/// A socket pair: our end, not blocking, and the child's.
pub(crate) fn socket_pair() -> Result<(UnixStream, OwnedFd), SandboxError> {
    let failed = |source| SandboxError::Supervision {
        action: "making a socket for the inner stage",
        source,
    };
    let (ours, other_unix_stream) = UnixStream::pair().map_err(failed)?;
    ours.set_nonblocking(true).map_err(failed)?;
    Ok((ours, other_unix_stream.into()))
}

/// Refuses words that would be cut short or misread on their way into a process.
fn check_words(spawn: &Spawn) -> Result<(), SandboxError> {
    let refuse = |what: String, reason| Err(SandboxError::BadArgument { what, reason });
    let has = |text: &OsStr, byte: u8| text.as_bytes().contains(&byte);
    if spawn.program.as_os_str().is_empty() || has(spawn.program.as_os_str(), 0) {
        return refuse("the program".to_owned(), "it is empty or holds a NUL byte");
    }
    for (index, argument) in spawn.args.iter().enumerate() {
        if has(argument, 0) {
            return refuse(format!("argument {}", index + 1), "it holds a NUL byte");
        }
    }
    for (name, value) in &spawn.env {
        let bad_name = name.is_empty() || has(name, b'=') || has(name, 0);
        if bad_name || has(value, 0) {
            let reason = "its name is empty or holds `=`, or there is a NUL byte";
            return refuse(format!("variable {}", name.to_string_lossy()), reason);
        }
    }
    Ok(())
}
