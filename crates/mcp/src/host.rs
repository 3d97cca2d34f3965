//! What the program provides that serves tools.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crucible_ledger::Ledger;
use crucible_model::Failure;
use crucible_run::RunContext;
use crucible_run::configured::RunHost;
use crucible_sandbox::{Runtime, Sandbox};
use crucible_settings::Settings;

/// The program that serves tools.
pub trait ToolHost: RunHost {
    /// Returns the outside world.
    fn runtime(&self) -> Runtime<'_>;

    /// Returns the settings of a project's directory, below these flags.
    ///
    /// # Errors
    ///
    /// Fails if a file of settings cannot be used.
    fn settings(&self, directory: &Path, flags: &[(&str, String)]) -> Result<Settings, Failure>;

    /// Returns the world of runs under these settings.
    ///
    /// # Errors
    ///
    /// Fails if there is no home of Crucible.
    fn world(&self, sandbox: &Arc<Sandbox>, settings: &Settings)
    -> Result<RunContext<'_>, Failure>;

    /// Returns Crucible's home.
    ///
    /// # Errors
    ///
    /// Fails if there is no such directory.
    fn home(&self) -> Result<PathBuf, Failure>;

    /// Returns the path of the ledger.
    ///
    /// # Errors
    ///
    /// Fails if there is no home of Crucible.
    fn ledger_file(&self) -> Result<PathBuf, Failure>;

    /// Returns the ledger, if there is one.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be opened.
    fn existing_ledger(&self) -> Result<Option<Ledger>, Failure>;

    /// Returns the top of the repository around a directory.
    fn repository_of(&self, directory: &Path) -> Option<PathBuf>;
}
