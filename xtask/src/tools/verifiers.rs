//! Libraries and programs that verify what Crucible signs and judge the files for CI, pinned: Python's in
//! `.tools/verifiers`, those of npm in `.tools/verifiers-npm`.
//!
//! What always holds: what is installed has exactly these versions; an environment that says another one is made anew.

use super::npm_packages::NpmPackages;
use super::python::Venv;
use crate::error::TaskError;
use crate::process::Call;
use crate::root::Root;

/// The packages with their versions.
const PACKAGES: [(&str, &str); 4] = [
    ("cryptography", "50.0.2"),
    ("in-toto-attestation", "0.9.3"),
    ("securesystemslib", "1.6.0"),
    ("zizmor", "1.32.0"),
];

pub(super) const NPM_PACKAGES: NpmPackages = NpmPackages {
    folder: "verifiers-npm",
    manifest: include_str!("../../verifiers/package.json"),
    lock: include_str!("../../verifiers/package-lock.json"),
    purpose: "what verifies statements and judges files for CI (20 MB)",
};

/// Installs them where they are not.
pub(crate) fn verifiers(root: &Root) -> Result<(), TaskError> {
    NPM_PACKAGES.ready(root)?;
    python(root)
}

fn python(root: &Root) -> Result<(), TaskError> {
    let venv = Venv::at(root.tools().join("verifiers"));
    if is_ready(root, &venv) {
        return Ok(());
    }
    let _alone = super::alone(root)?;
    // Another run may have installed them while this one waited.
    if is_ready(root, &venv) {
        return Ok(());
    }
    eprintln!("installing libraries that verify statements into .tools/verifiers");
    venv.make(root)?;
    let pinned = PACKAGES.map(|(package, version)| format!("{package}=={version}"));
    let words = ["install", "--quiet", "--only-binary", ":all:"].map(str::to_owned);
    venv.pip(root, words.into_iter().chain(pinned))?;
    if is_ready(root, &venv) {
        return Ok(());
    }
    Err(TaskError::Missing {
        what: "the packages in .tools/verifiers".to_owned(),
        fix: "Remove .tools/verifiers and run this again; pip's output above says what went wrong."
            .to_owned(),
    })
}

/// Whether the environment has each package in its version.
fn is_ready(root: &Root, venv: &Venv) -> bool {
    let script =
        "import sys; from importlib.metadata import version; print(*map(version, sys.argv[1:]))";
    let names = PACKAGES.map(|(package, _)| package);
    let said = Call::new(root, venv.python())
        .args(["-c", script])
        .args(names)
        .stdout();
    let versions = PACKAGES.map(|(_, version)| version);
    said.is_some_and(|said| said.split_whitespace().eq(versions))
}
