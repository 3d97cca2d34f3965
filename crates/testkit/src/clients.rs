//! Where the providers' real programs are, which `cargo xtask test` installs in the workspace.
//!
//! What always holds: a missing program fails the test that asked for it, and says what to run; none is skipped.

use std::path::PathBuf;

/// The directory of the installed programs, to be put on `PATH`: some of them start `node` by name.
#[must_use]
pub fn real_clients_dir() -> PathBuf {
    tools_dir().join("clients/node_modules/.bin")
}

/// The directory of the coding agents that are Python packages.
#[must_use]
pub fn python_agents_dir() -> PathBuf {
    tools_dir().join("agents/bin")
}

/// The directory of `CodeIPI`, a benchmark of instructions that are injected into coding tasks.
///
/// # Panics
/// When it is not installed.
#[must_use]
pub fn code_ipi_dir() -> PathBuf {
    let mut versions = std::fs::read_dir(tools_dir().join("code-ipi/lib"))
        .expect("CodeIPI is missing: run `cargo xtask test --slow`, which installs it");
    let python = versions.next().and_then(Result::ok);
    let python = python.expect("the environment's version of Python").path();
    python.join("site-packages/inspect_evals/ipi_coding_agent")
}

/// The directory of pytest and the interpreter that has it.
#[must_use]
pub fn python_tools_dir() -> PathBuf {
    tools_dir().join("python/bin")
}

fn tools_dir() -> PathBuf {
    let workspace = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let workspace = workspace
        .canonicalize()
        .expect("the workspace this was built from");
    workspace.join(".tools")
}

/// The real program of this name: `claude`, `gemini` or `codex`.
///
/// # Panics
/// When it is not installed.
#[must_use]
pub fn real_client(name: &str) -> PathBuf {
    let program = real_clients_dir().join(name);
    assert!(
        program.is_file(),
        "{} is missing: run `cargo xtask test`, which installs it",
        program.display()
    );
    program
}
