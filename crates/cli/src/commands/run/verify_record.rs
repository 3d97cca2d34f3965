//! `crucible run verify-record`: everything that a run recorded, checked once more, offline.

use clap::Args;
use crucible_model::ExitStatus;

use crate::app::App;
use crate::error::CommandError;

/// Check everything that a run recorded, offline: events, digests, signatures, receipts, and the commit that landed
#[derive(Args)]
pub(crate) struct VerifyRecord {}

impl VerifyRecord {
    pub(crate) fn run(&self, _app: &App) -> Result<ExitStatus, CommandError> {
        let Self {} = self;
        Err(CommandError::usage("not there yet"))
    }
}
