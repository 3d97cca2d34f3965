//! Libraries and programs that verify what Crucible signs and judge the files for CI, pinned: Python's in
//! `.tools/verifiers`, those of npm in `.tools/verifiers-npm`.
//!
//! What always holds: what is installed has exactly these versions; an environment with another one is rebuilt.

use super::npm_packages::NpmPackages;
use super::python::{Dependencies, install};
use crate::error::TaskError;
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
    install(root, "verifiers", &PACKAGES, Dependencies::Installed)
}
