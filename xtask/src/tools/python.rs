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

    /// Makes it anew: a folder left half-made by an interrupted run is cleared, not trusted.
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
