//! The outside world of a use case, as one value.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crucible_host::env::Environment;
use crucible_model::Clock;

use crate::Sandbox;

/// What a use case gets from the program that calls it.
pub struct Runtime<'a> {
    /// The environment that the command began with.
    pub env: &'a Environment,
    /// The clock.
    pub clock: &'a dyn Clock,
    /// Starts processes.
    pub sandbox: Arc<Sandbox>,
    /// Shows notes and warnings to the user.
    pub notices: &'a dyn Notices,
}

/// Shows notes and warnings of a use case to the user, apart from its result.
pub trait Notices {
    /// Shows one text.
    fn notice(&self, text: &str);
}

impl Runtime<'_> {
    /// Makes a path of the command line or of a setting absolute.
    #[must_use]
    pub fn absolute(&self, path: &Path) -> PathBuf {
        self.env
            .working_directory()
            .join(path)
            .components()
            .collect()
    }

    /// Returns the directory for temporary files: inside Crucible's own directory if that can be used, else the system's.
    #[must_use]
    pub fn temporary_directory(&self) -> PathBuf {
        let is_usable = |home: &PathBuf| {
            home.to_str().is_some() && (home.symlink_metadata().is_err() || home.is_dir())
        };
        match self.env.crucible_home() {
            Ok(home) if is_usable(&home) => home.join("tmp"),
            Ok(_) | Err(_) => self.env.temporary_directory(),
        }
    }
}
