//! `crucible completions`: a script that completes commands in a shell.

use clap::{Args, CommandFactory};
use crucible_model::{ExitStatus, Failure};

use super::Arguments;
use crate::app::App;

/// Print a completion script for your shell
///
/// For example: `crucible completions bash > ~/.local/share/bash-completion/completions/crucible`
#[derive(Args)]
pub(crate) struct Completions {
    /// The shell
    shell: clap_complete::Shell,
}

impl Completions {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let mut all = Arguments::command();
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut all, "crucible", &mut script);
        app.output.bytes(&script);
        Ok(ExitStatus::Success)
    }
}
