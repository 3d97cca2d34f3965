//! What can go wrong in a task, with what the reader can do about it.
//!
//! One type for the whole tool: a task either passes or ends the program, nothing recovers from it.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

/// Why a task did not pass.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TaskError {
    /// A program could not be started at all.
    #[error("cannot start `{command}`: {source}")]
    Spawn {
        /// The command line as a person would type it.
        command: String,
        /// What the system said.
        source: io::Error,
    },
    /// A program ran and said no.
    #[error("`{command}` failed ({status})")]
    Failed {
        /// The command line as a person would type it.
        command: String,
        /// How it ended.
        status: ExitStatus,
    },
    /// Something the task needs is not here and cannot be installed from here.
    #[error("{what} is missing. {fix}")]
    Missing {
        /// What is missing.
        what: String,
        /// What the reader can do, as a sentence.
        fix: String,
    },
    /// A file or folder could not be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// cargo could not describe the workspace.
    #[error("cargo metadata failed: {0}")]
    Metadata(#[from] cargo_metadata::Error),
    /// The tidy rules found something.
    #[error("tidy found {problems} problem(s)")]
    Untidy {
        /// How many.
        problems: usize,
    },
    /// A step of `cargo xtask ci` did not pass.
    #[error("ci stopped at `{step}`: {source}")]
    Step {
        /// The step's name.
        step: &'static str,
        /// Why it did not pass.
        source: Box<TaskError>,
    },
    /// A live suite was asked for where no real model may be called.
    #[error("{variable} is set, so tests must not call a real model; unset it, or omit `--live`")]
    LiveForbidden {
        /// The variable that forbids it.
        variable: &'static str,
    },
    /// A variable that is a switch holds something else.
    #[error("{variable} is neither 1 nor 0 but `{value}`. Set it to one of them, or unset it")]
    NoSwitch {
        /// The variable.
        variable: &'static str,
        /// What it holds.
        value: String,
    },
    /// What was fetched is not what was expected.
    #[error("{} has the digest {found}, not {expected}: it was not used. Run the task again, which fetches it again", path.display())]
    Checksum {
        /// The file.
        path: PathBuf,
        /// The SHA-256 it should have.
        expected: &'static str,
        /// The SHA-256 it has.
        found: String,
    },
    /// The model server of the live tests does not answer.
    #[error("the model server {reason}. What it said is in {}", log.display())]
    NoServer {
        /// What it did instead, as the rest of a sentence.
        reason: String,
        /// Where its output is.
        log: PathBuf,
    },
    /// No bench has this name.
    #[cfg(feature = "bench")]
    #[error("no bench is named `{name}`. There are: {known}")]
    UnknownBench {
        /// What was asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// A bench could not be measured.
    #[cfg(feature = "bench")]
    #[error("bench `{bench}` could not be measured: {reason}")]
    Unmeasured {
        /// The bench.
        bench: &'static str,
        /// Why.
        reason: String,
    },
    /// A value could not be written as JSON.
    #[error("cannot write JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl TaskError {
    /// For `map_err` on file operations: keeps the action and the path beside the system's words.
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}
