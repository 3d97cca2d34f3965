//! The programs the tests and checks need, and how each is installed.
//!
//! A program on the machine is used as it is. What is missing is put into `.tools/` (never into the
//! user's own folders), or installed by apt where this runs as root. A tool that cannot be had is an
//! error with the command to type; no check passes because its tool was absent.
//!
//! What always holds: a folder that an interrupted run left half-made is cleared, not trusted; what is
//! complete costs next to nothing to find again; two runs at once do not install over each other.

mod browser;
mod cargo;
mod clients;
mod folder;
mod llama;
mod node;
mod npm_packages;
mod python;
mod python_tools;
#[cfg(feature = "bench")]
mod repomix;
mod runners;
mod system;
mod verifiers;
mod weights;

use self::python::Dependencies;

pub(crate) use cargo::{deny, nextest};
pub(crate) use llama::llama;
#[cfg(feature = "bench")]
pub(crate) use repomix::{Repomix, repomix};
pub(crate) use system::{is_root, packages};
#[cfg(feature = "bench")]
pub(crate) use system::{ripgrep, strace};
pub(crate) use weights::weights;

use crate::error::TaskError;
use crate::root::Root;

/// Installs what the tests need and this machine lacks. What is there costs a few short processes.
pub(crate) fn for_tests(root: &Root) -> Result<(), TaskError> {
    system::git(root)?;
    packages(root)?;
    clients::clients(root)?;
    python_tools::python_tools(root)?;
    verifiers::verifiers(root)
}

/// Installs what only the slow suite needs: Chromium and packages of 180 MB, which judge the local page, and the data of
/// `CodeIPI`, a benchmark of injected instructions.
pub(crate) fn for_slow_suite(root: &Root) -> Result<(), TaskError> {
    system::chromium(root)?;
    browser::browser(root)?;
    python::install(
        root,
        "code-ipi",
        &[("inspect-evals", "0.28.0")],
        Dependencies::Absent,
    )
}

/// Runs `work` while [`for_tests`] and [`for_slow_suite`] install: the one waits for the processor, the other for the network.
pub(crate) fn beside_installation<T>(
    root: &Root,
    work: impl FnOnce() -> Result<T, TaskError>,
) -> Result<T, TaskError> {
    std::thread::scope(|scope| {
        let installing = scope.spawn(|| for_tests(root).and_then(|()| for_slow_suite(root)));
        let done = work();
        installing.join().map_err(|_| TaskError::Missing {
            what: "the programs that tests need".to_owned(),
            fix: "Their installation panicked; run the task again.".to_owned(),
        })??;
        done
    })
}

/// Installs what only the full slow suite runs: Phoenix, which shows traces, the coding agent that is a Python
/// package, and test runners of JavaScript. They take 1.7 GB.
pub(crate) fn for_full_suite(root: &Root) -> Result<(), TaskError> {
    python::install(
        root,
        "phoenix",
        &[("arize-phoenix", "20.26.1")],
        Dependencies::Installed,
    )?;
    python::install(
        root,
        "agents",
        &[("mini-swe-agent", "2.4.0")],
        Dependencies::Installed,
    )?;
    runners::runners(root)
}
