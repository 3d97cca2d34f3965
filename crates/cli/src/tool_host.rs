//! The program as the host of tools.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crucible_ledger::Ledger;
use crucible_mcp::ToolHost;
use crucible_model::Failure;
use crucible_run::RunContext;
use crucible_sandbox::{Runtime, Sandbox};
use crucible_settings::Settings;

use crate::app::App;

impl ToolHost for App {
    fn runtime(&self) -> Runtime<'_> {
        App::runtime(self)
    }

    fn settings(&self, directory: &Path, flags: &[(&str, String)]) -> Result<Settings, Failure> {
        self.config(directory, flags)
    }

    fn world(
        &self,
        sandbox: &Arc<Sandbox>,
        settings: &Settings,
    ) -> Result<RunContext<'_>, Failure> {
        App::world(self, sandbox, settings)
    }

    fn home(&self) -> Result<PathBuf, Failure> {
        App::home(self)
    }

    fn ledger_file(&self) -> Result<PathBuf, Failure> {
        self.ledger_path()
    }

    fn existing_ledger(&self) -> Result<Option<Ledger>, Failure> {
        App::existing_ledger(self)
    }

    fn repository_of(&self, directory: &Path) -> Option<PathBuf> {
        App::repository_of(self, directory)
    }
}
