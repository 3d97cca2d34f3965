//! Programs of the distribution: used where they are, installed by apt where this runs as root.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::error::TaskError;
use crate::process::Call;
use crate::root::Root;

/// A package of the distribution, the command that succeeds where it is installed, and what it is.
struct Package {
    name: &'static str,
    probe: &'static [&'static str],
    what: &'static str,
}

/// What the tests need.
const FOR_TESTS: [Package; 6] = [
    // Without it the sandbox's tests would test nothing.
    Package {
        name: "bubblewrap",
        probe: &["bwrap", "--version"],
        what: "bubblewrap (the sandbox's outer layer)",
    },
    // The crawl reaches GitHub through it alone, and the tests run it against a GitHub of their own.
    Package {
        name: "gh",
        probe: &["gh", "--version"],
        what: "gh (GitHub's command line)",
    },
    // The authority, besides bash, on how a command splits into words.
    Package {
        name: "dash",
        probe: &["dash", "-c", ":"],
        what: "dash (a plain shell)",
    },
    // The tests of the TUI type on it and look at it.
    Package {
        name: "tmux",
        probe: &["tmux", "-V"],
        what: "tmux (a terminal that tests can look at)",
    },
    // A token with a signing key, without a device.
    Package {
        name: "softhsm2",
        probe: &["softhsm2-util", "--version"],
        what: "softhsm2 (a PKCS#11 token in software)",
    },
    // The program that runs GitLab's jobs copies files with it.
    Package {
        name: "rsync",
        probe: &["rsync", "--version"],
        what: "rsync (a part of running GitLab's jobs)",
    },
];

/// Installs the packages that the tests need and this machine lacks, all at once.
pub(crate) fn packages(root: &Root) -> Result<(), TaskError> {
    install(root, &FOR_TESTS)
}

/// Installs the browser that the tests of the local page look at it in.
pub(crate) fn chromium(root: &Root) -> Result<(), TaskError> {
    install(
        root,
        &[Package {
            name: "chromium",
            probe: &["chromium", "--version"],
            what: "chromium (the browser that judges pages)",
        }],
    )
}

/// The search tool that a bench of ours stands beside.
#[cfg(feature = "bench")]
pub(crate) fn ripgrep(root: &Root) -> Result<(), TaskError> {
    let what = "ripgrep (what searching a tree costs)";
    install(
        root,
        &[Package {
            name: "ripgrep",
            probe: &["rg", "--version"],
            what,
        }],
    )
}

/// The tool that counts what a program asks of the system.
#[cfg(feature = "bench")]
pub(crate) fn strace(root: &Root) -> Result<(), TaskError> {
    let what = "strace (which programs are started, and what is flushed)";
    install(
        root,
        &[Package {
            name: "strace",
            probe: &["strace", "--version"],
            what,
        }],
    )
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

/// Installs a package of the distribution without which a program cannot be built, or says how to.
pub(super) fn install_package(
    root: &Root,
    name: &'static str,
    what: &'static str,
) -> Result<(), TaskError> {
    install(
        root,
        &[Package {
            name,
            probe: &[],
            what,
        }],
    )
}

/// Installs those of the packages whose program does not answer, or says how to.
fn install(root: &Root, packages: &[Package]) -> Result<(), TaskError> {
    let is_missing = |package: &&Package| match package.probe {
        [program, args @ ..] => !Call::new(root, *program).args(args).succeeds(),
        [] => true,
    };
    let missing: Vec<&Package> = packages.iter().filter(is_missing).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names = || missing.iter().map(|package| package.name);
    let what = missing
        .iter()
        .map(|package| package.what)
        .collect::<Vec<_>>()
        .join(", ");
    let has_apt = Call::new(root, "apt-get").args(["--version"]).succeeds();
    match (is_root()?, has_apt) {
        (true, true) => {
            Call::new(root, "apt-get")
                .args(["update", "--quiet"])
                .run()?;
            Call::new(root, "apt-get")
                .args(["install", "--yes", "--quiet", "--no-install-recommends"])
                .args(names())
                .env("DEBIAN_FRONTEND", "noninteractive")
                .run()
        }
        (false, true) => {
            let names = names().collect::<Vec<_>>().join(" ");
            Err(TaskError::Missing {
                what,
                fix: format!("Run: sudo apt-get update && sudo apt-get install {names}"),
            })
        }
        (_, false) => {
            let names = names().collect::<Vec<_>>().join(", ");
            Err(TaskError::Missing {
                what,
                fix: format!("Install from your distribution: {names}."),
            })
        }
    }
}

/// Whether root runs this.
pub(crate) fn is_root() -> Result<bool, TaskError> {
    let own = fs::metadata("/proc/self").map_err(TaskError::io("read", "/proc/self"))?;
    Ok(own.uid() == 0)
}
