//! `crucible verify`: the gates of a run once more.

use clap::Args;
use crucible_model::ExitStatus;

use crate::app::App;
use crate::error::CommandError;

/// Run the gates of a run's change once more and judge what they say
#[derive(Args)]
pub(crate) struct Verify {}

impl Verify {
    pub(crate) fn run(&self, _app: &App) -> Result<ExitStatus, CommandError> {
        let Self {} = self;
        Err(CommandError::usage("not there yet"))
    }
}
