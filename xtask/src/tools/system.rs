//! Programs of the distribution: used where they are, installed by apt where this runs as root.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::error::TaskError;
use crate::process::Call;
use crate::root::Root;

/// What the sandbox's tests need: without bubblewrap they would test nothing.
pub(crate) fn bubblewrap(root: &Root) -> Result<(), TaskError> {
    if Call::new(root, "bwrap").args(["--version"]).succeeds() {
        return Ok(());
    }
    install(root, "bubblewrap", "bubblewrap (the sandbox's outer layer)")
}

/// GitHub's command line: the crawl reaches GitHub through it alone, and the tests run it against a GitHub of their own.
pub(crate) fn gh(root: &Root) -> Result<(), TaskError> {
    if Call::new(root, "gh").args(["--version"]).succeeds() {
        return Ok(());
    }
    install(root, "gh", "gh (GitHub's command line)")
}

/// A plain POSIX shell: the authority, besides bash, on how a command splits into words.
pub(crate) fn dash(root: &Root) -> Result<(), TaskError> {
    if Call::new(root, "dash").args(["-c", ":"]).succeeds() {
        return Ok(());
    }
    install(root, "dash", "dash (a plain shell)")
}

/// A terminal without a screen: the tests of the TUI type on it and look at it.
pub(crate) fn tmux(root: &Root) -> Result<(), TaskError> {
    if Call::new(root, "tmux").args(["-V"]).succeeds() {
        return Ok(());
    }
    install(root, "tmux", "tmux (a terminal that tests can look at)")
}

/// The search tool that a bench of ours stands beside.
#[cfg(feature = "bench")]
pub(crate) fn ripgrep(root: &Root) -> Result<(), TaskError> {
    if Call::new(root, "rg").args(["--version"]).succeeds() {
        return Ok(());
    }
    install(root, "ripgrep", "ripgrep (what searching a tree costs)")
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

/// Installs a package of the distribution, or says how to.
pub(super) fn install(root: &Root, package: &'static str, what: &str) -> Result<(), TaskError> {
    let has_apt = Call::new(root, "apt-get").args(["--version"]).succeeds();
    match (is_root()?, has_apt) {
        (true, true) => {
            Call::new(root, "apt-get").args(["update", "--quiet"]).run()?;
            Call::new(root, "apt-get")
                .args(["install", "--yes", "--quiet", "--no-install-recommends", package])
                .env("DEBIAN_FRONTEND", "noninteractive")
                .run()
        }
        (false, true) => Err(TaskError::Missing {
            what: what.to_owned(),
            fix: format!("Run: sudo apt-get update && sudo apt-get install {package}"),
        }),
        (_, false) => Err(TaskError::Missing {
            what: what.to_owned(),
            fix: format!("Install the package `{package}` of your distribution."),
        }),
    }
}

fn is_root() -> Result<bool, TaskError> {
    let own = fs::metadata("/proc/self").map_err(TaskError::io("read", "/proc/self"))?;
    Ok(own.uid() == 0)
}
