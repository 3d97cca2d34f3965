//! Starting other programs: shown before they run, in the workspace's folder, with a clean view of cargo.
//!
//! `cargo run` leaves variables about this package in the environment. Build scripts that watch those
//! would build again under every task, so they are taken out before another cargo is started.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::error::TaskError;
use crate::root::Root;

/// One program with its arguments, not yet started.
#[derive(Debug)]
pub(crate) struct Call {
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    folder: PathBuf,
}

impl Call {
    /// A call of `program` in the workspace's folder.
    pub(crate) fn new(root: &Root, program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            folder: root.path().to_owned(),
        }
    }

    /// A call of the cargo that runs this task.
    pub(crate) fn cargo(root: &Root) -> Self {
        Self::new(root, env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
    }

    /// Adds arguments.
    pub(crate) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args
            .extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets one variable of the environment.
    pub(crate) fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Runs in this folder instead of the workspace's.
    pub(crate) fn folder(mut self, folder: &Path) -> Self {
        folder.clone_into(&mut self.folder);
        self
    }

    /// Puts a folder in front of the `PATH`.
    pub(crate) fn env_path_first(self, folder: &Path) -> Self {
        let mut path = folder.as_os_str().to_owned();
        if let Some(rest) = env::var_os("PATH") {
            path.push(":");
            path.push(rest);
        }
        self.env("PATH", path)
    }

    /// Shows the command, runs it with this program's streams, and fails when it does.
    pub(crate) fn run(&self) -> Result<(), TaskError> {
        eprintln!("$ {}", self.display());
        let status = self.command().status().map_err(|source| TaskError::Spawn {
            command: self.display(),
            source,
        })?;
        if status.success() {
            Ok(())
        } else {
            Err(TaskError::Failed {
                command: self.display(),
                status,
            })
        }
    }

    /// Runs the command without a word and tells whether it succeeded; a program that is not there did not.
    pub(crate) fn succeeds(&self) -> bool {
        let outcome = self
            .command()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        outcome.is_ok_and(|status| status.success())
    }

    /// Runs the command without a word and gives what it printed, if it succeeded.
    pub(crate) fn stdout(&self) -> Option<String> {
        let output = self
            .command()
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .ok()?;
        output
            .status
            .success()
            .then(|| String::from_utf8(output.stdout).ok())
            .flatten()
    }

    /// Shows the command and starts it at the head of a process group of its own, writing into `log`. It does not
    /// outlive the thread that started it, however that ends; so call this from the main one.
    pub(crate) fn start_group(&self, log: &File) -> Result<Child, TaskError> {
        eprintln!("$ {} &", self.display());
        let tied = Self {
            program: "setpriv".into(),
            args: ["--pdeathsig", "KILL", "--"].map(OsString::from).to_vec(),
            env: self.env.clone(),
            folder: self.folder.clone(),
        };
        let tied = tied.args([&self.program]).args(&self.args);
        let output = || log.try_clone().map(Stdio::from);
        let started = || {
            let mut command = tied.command();
            command
                .stdin(Stdio::null())
                .stdout(output()?)
                .stderr(output()?)
                .process_group(0)
                .spawn()
        };
        started().map_err(|source| TaskError::Spawn {
            command: tied.display(),
            source,
        })
    }

    /// The command line as a person would type it.
    pub(crate) fn display(&self) -> String {
        let program = PathBuf::from(&self.program);
        let program = program.file_name().unwrap_or(&self.program);
        let words = std::iter::once(program).chain(self.args.iter().map(OsString::as_os_str));
        words
            .map(|word| word.to_string_lossy().into_owned())
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args).current_dir(&self.folder);
        for (name, _) in env::vars_os() {
            if describes_this_package(&name) {
                command.env_remove(name);
            }
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }
}

fn describes_this_package(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("CARGO_PKG_")
        || name.starts_with("CARGO_MANIFEST_")
        || name.starts_with("CARGO_BIN_")
        || matches!(name.as_ref(), "CARGO_CRATE_NAME" | "CARGO_PRIMARY_PACKAGE")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_variables_are_distinguished_from_settings() {
        assert!(describes_this_package(OsStr::new("CARGO_PKG_NAME")));
        assert!(describes_this_package(OsStr::new("CARGO_MANIFEST_DIR")));
        assert!(!describes_this_package(OsStr::new("CARGO_TARGET_DIR")));
        assert!(!describes_this_package(OsStr::new("CARGO_HOME")));
    }
}
