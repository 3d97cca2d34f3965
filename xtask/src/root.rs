//! Where the workspace is, and where cargo builds it.
//!
//! `cargo run` tells its program the folder of the package; the workspace is one above. Started by
//! hand, the tool searches upward from the working directory.

use std::env;
use std::path::{Path, PathBuf};

use crate::error::TaskError;

/// The workspace this run of the tool is about.
#[derive(Debug, Clone)]
pub(crate) struct Root {
    path: PathBuf,
}

impl Root {
    /// Finds the workspace.
    pub(crate) fn find() -> Result<Self, TaskError> {
        if let Some(package) = env::var_os("CARGO_MANIFEST_DIR")
            && let Some(parent) = Path::new(&package).parent()
            && is_workspace(parent)
        {
            return Ok(Self {
                path: parent.to_owned(),
            });
        }
        let start = env::current_dir().map_err(TaskError::io("read the working directory", "."))?;
        start
            .ancestors()
            .find(|folder| is_workspace(folder))
            .map_or_else(
                || {
                    Err(TaskError::Missing {
                        what: "the workspace".to_owned(),
                        fix: "Run this from inside a checkout.".to_owned(),
                    })
                },
                |folder| {
                    Ok(Self {
                        path: folder.to_owned(),
                    })
                },
            )
    }

    /// The folder that holds the root `Cargo.toml`.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where tools that only this checkout uses are installed.
    pub(crate) fn tools(&self) -> PathBuf {
        self.path.join(".tools")
    }

    /// Where cargo puts what it builds, also when the environment moves it.
    pub(crate) fn target(&self) -> PathBuf {
        match env::var_os("CARGO_TARGET_DIR") {
            Some(folder) => self.path.join(folder),
            None => self.path.join("target"),
        }
    }
}

fn is_workspace(folder: &Path) -> bool {
    folder.join("Cargo.toml").is_file() && folder.join("xtask/Cargo.toml").is_file()
}
