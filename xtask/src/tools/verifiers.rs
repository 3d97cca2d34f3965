//! Libraries and programs that verify what Crucible signs and judge the files for CI, pinned, in `.tools/verifiers`.
//!
//! What always holds: what is installed has exactly these versions; an environment that says another one is made anew.

use super::python::install;
use crate::error::TaskError;
use crate::root::Root;

/// The packages with their versions.
const PACKAGES: [(&str, &str); 4] = [
    ("cryptography", "50.0.2"),
    ("in-toto-attestation", "0.9.3"),
    ("securesystemslib", "1.6.0"),
    ("zizmor", "1.32.0"),
];

/// Installs them where they are not.
pub(crate) fn verifiers(root: &Root) -> Result<(), TaskError> {
    install(root, "verifiers", &PACKAGES)
}
