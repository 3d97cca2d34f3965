//! Why a process could not be run. [`crate::End`] says how a process that did run ended.

use std::io;
use std::path::PathBuf;

use crate::hosts::AllowedHostError;
use crate::layers::MissingLayer;

/// Nothing was run, or it was ended because its supervision broke.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// No such program.
    #[error("program {program:?} was not found; searched {}", list(searched))]
    NotFound {
        /// The requested program.
        program: PathBuf,
        /// The paths that were searched.
        searched: Vec<PathBuf>,
    },
    /// The path exists, but is not a program.
    #[error("{program:?} cannot be run: {problem}; name a program, or make the file executable")]
    NotExecutable {
        /// The file.
        program: PathBuf,
        /// What it is instead.
        problem: PathProblem,
    },
    /// The kernel refused to run the program, for example because its interpreter is missing or hidden by the
    /// sandbox.
    #[error(
        "{program:?} could not be started: {source}; check that it and its interpreter are visible in the sandbox"
    )]
    Exec {
        /// The program.
        program: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The working directory cannot be entered.
    #[error(
        "working directory {path:?}: {problem}; work in a directory below it, or in another one"
    )]
    WorkingDirectory {
        /// The directory.
        path: PathBuf,
        /// Why not.
        problem: PathProblem,
    },
    /// A directory cannot be made writable.
    #[error("writable directory {path:?}: {problem}")]
    Writable {
        /// The directory.
        path: PathBuf,
        /// Why not.
        problem: PathProblem,
    },
    /// A path cannot be hidden safely.
    #[error("masked path {path:?}: {problem}")]
    Masked {
        /// The path.
        path: PathBuf,
        /// Why not.
        problem: PathProblem,
    },
    /// A path cannot be made read-only safely.
    #[error("read-only path {path:?}: {problem}")]
    ReadOnly {
        /// The path.
        path: PathBuf,
        /// Why not.
        problem: PathProblem,
    },
    /// A directory cannot be mounted.
    #[error("mount at {path:?}: {problem}")]
    Mounted {
        /// The target.
        path: PathBuf,
        /// Why not.
        problem: PathProblem,
    },
    /// An argument or a variable cannot be passed to a process.
    #[error("{what} cannot be passed to a process: {reason}")]
    BadArgument {
        /// Which one, such as `argument 3` or `variable PATH`.
        what: String,
        /// Why not.
        reason: &'static str,
    },
    /// A host cannot be made reachable.
    #[error(transparent)]
    Host(#[from] AllowedHostError),
    /// The policy requires layers that this machine does not offer.
    #[error(
        "the sandbox is required but not complete here: {}; see `crucible sandbox status`",
        reasons(missing)
    )]
    LayersMissing {
        /// Each with its reason.
        missing: Vec<MissingLayer>,
    },
    /// The sandbox could not be set up; the program was not started.
    #[error(
        "the sandbox could not be set up: {detail}; run `crucible sandbox status` to see what works here"
    )]
    Setup {
        /// The message of the failing stage.
        detail: String,
    },
    /// The operating system refused a step of supervision.
    #[error(
        "{action} failed: {source}; try again, and check the limits on processes and open files"
    )]
    Supervision {
        /// The step.
        action: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// Processes that SIGKILL did not end in time, such as ones stuck in the kernel.
    #[error(
        "these processes were killed but are still there: {pids:?}; end them yourself, or restart the machine"
    )]
    Survivors {
        /// Their process ids.
        pids: Vec<i32>,
    },
}

/// What is wrong with a path.
#[derive(Debug, thiserror::Error)]
pub enum PathProblem {
    /// It is a directory where a file is needed.
    #[error("it is a directory")]
    IsDirectory,
    /// It is not a directory, or a link where a link is not followed.
    #[error("it is not a directory, or it is a symbolic link")]
    NotADirectory,
    /// It is a symbolic link, so what it names could be exchanged.
    #[error("it is a symbolic link inside a writable directory")]
    IsLink,
    /// It is a file without permission to run it.
    #[error("it is not executable")]
    NotExecutable,
    /// It is relative where only an absolute path has one meaning.
    #[error("it is not absolute")]
    Relative,
    /// It is a system directory, which is never writable.
    #[error("this part of the system is never writable")]
    System,
    /// The sandbox covers it with an empty directory.
    #[error("the sandbox covers it with an empty directory unless it is writable")]
    Hidden,
    /// It is requested as writable, and also as masked or read-only.
    #[error("it is also requested as writable")]
    Contradiction,
    /// The operating system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
}

fn list(paths: &[PathBuf]) -> String {
    if paths.is_empty() {
        return "nothing: PATH holds no absolute directory".to_owned();
    }
    let mut text = String::new();
    for (index, path) in paths.iter().enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        text.push_str(&path.to_string_lossy());
    }
    text
}

fn reasons(missing: &[MissingLayer]) -> String {
    missing
        .iter()
        .map(|layer| format!("{} ({})", layer.layer, layer.reason))
        .collect::<Vec<_>>()
        .join("; ")
}
