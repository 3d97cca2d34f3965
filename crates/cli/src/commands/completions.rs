//! `crucible completions`: a script that completes commands in a shell.

use clap::{Args, CommandFactory};
use crucible_model::ExitStatus;

use crate::commands::Arguments;
use crate::error::CommandError;

/// Print a completion script for your shell
///
/// For example: `crucible completions bash > ~/.local/share/bash-completion/completions/crucible`
#[derive(Args)]
pub(crate) struct Completions {
    /// The shell
    shell: clap_complete::Shell,
}

impl Completions {
    pub(crate) fn run(&self) -> Result<ExitStatus, CommandError> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Arguments::command(), "crucible", &mut script);
        let _closed_pipe_is_fine = std::io::Write::write_all(&mut std::io::stdout(), &script);
        Ok(ExitStatus::Success)
    }
}
