//! Python packages, each set of them in a virtual environment of its own under `.tools/`.

use std::path::{Path, PathBuf};

use super::system;
use crate::error::TaskError;
use crate::process::Call;
use crate::root::Root;

/// A virtual environment.
#[derive(Debug)]
pub(super) struct Venv {
    folder: PathBuf,
}

impl Venv {
    /// The environment in this folder, which may not exist yet.
    pub(super) fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Its interpreter.
    pub(super) fn python(&self) -> PathBuf {
        self.folder.join("bin/python")
    }

    /// A program that one of its packages brought.
    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.folder.join("bin").join(name)
    }

    /// Rebuilds it: a folder left half-made by an interrupted run is cleared, not trusted.
    pub(super) fn make(&self, root: &Root) -> Result<(), TaskError> {
        let make = Call::new(root, "python3")
            .args(["-m", "venv", "--clear"])
            .args([&self.folder]);
        make.run().or_else(|error| {
            eprintln!("no virtual environment could be made: {error}");
            system::install_package(root, "python3-venv", "Python's `venv` module")?;
            make.run()
        })
    }

    /// Calls pip with these words.
    pub(super) fn pip<S: AsRef<std::ffi::OsStr>>(
        &self,
        root: &Root,
        words: impl IntoIterator<Item = S>,
    ) -> Result<(), TaskError> {
        Call::new(root, self.python())
            .args(["-m", "pip", "--disable-pip-version-check"])
            .args(words)
            .run()
    }

    /// Where the package of this name lies, if it is installed and can be imported.
    pub(super) fn package(&self, root: &Root, name: &str) -> Option<PathBuf> {
        let script = format!("import {name}; print({name}.__path__[0])");
        let stdout = Call::new(root, self.python())
            .args(["-c", script.as_str()])
            .stdout()?;
        let path = Path::new(stdout.trim());
        path.is_absolute().then(|| path.to_owned())
    }
}

/// What is installed beside the packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dependencies {
    Installed,
    /// Nothing: the packages are only read.
    Absent,
}

/// Installs these packages with their versions into `.tools/NAME`, unless they are there. An environment with other
/// versions is created again.
pub(super) fn install(
    root: &Root,
    name: &str,
    packages: &[(&str, &str)],
    dependencies: Dependencies,
) -> Result<(), TaskError> {
    let venv = Venv::at(root.tools().join(name));
    if is_ready(root, &venv, packages) {
        return Ok(());
    }
    let _alone = super::folder::alone(root)?;
    // Another run may have installed them while this one waited.
    if is_ready(root, &venv, packages) {
        return Ok(());
    }
    eprintln!("installing Python packages into .tools/{name}");
    venv.make(root)?;
    let pinned = packages
        .iter()
        .map(|(package, version)| format!("{package}=={version}"));
    let alone = (dependencies == Dependencies::Absent).then_some("--no-deps");
    let words = ["install", "--quiet", "--only-binary", ":all:"];
    let words = words.into_iter().chain(alone).map(str::to_owned);
    venv.pip(root, words.chain(pinned))?;
    if is_ready(root, &venv, packages) {
        return Ok(());
    }
    Err(TaskError::Missing {
        what: format!("the packages in .tools/{name}"),
        fix: format!(
            "Remove .tools/{name} and run this again; pip's output above says what went wrong."
        ),
    })
}

/// Whether the environment has each package in its version.
fn is_ready(root: &Root, venv: &Venv, packages: &[(&str, &str)]) -> bool {
    let script =
        "import sys; from importlib.metadata import version; print(*map(version, sys.argv[1:]))";
    let message = Call::new(root, venv.python())
        .args(["-c", script])
        .args(packages.iter().map(|(package, _)| *package))
        .stdout();
    let versions = packages.iter().map(|(_, version)| *version);
    message.is_some_and(|text| text.split_whitespace().eq(versions))
}
