//! `crucible patch check`.

use clap::Args;
use crucible_model::{ExitStatus, Failure};

use super::input::{Measured, PatchInput};
use crate::app::App;

/// Check a patch against a plan or policy without applying it
///
/// The text of the patch and the tree it produces are checked. For example: `crucible patch check --repo .
/// --patch change.patch --policy policy.json`
#[derive(Args)]
pub(crate) struct Check {
    #[command(flatten)]
    input: PatchInput,
}

impl Check {
    pub(super) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let Measured { patch, measure } = self.input.read(app)?;
        let directory = self.input.repository(app);
        let runtime = app.runtime();
        let report = app.block_on(measure.judge(&runtime, &directory, &patch))?;
        app.output.verdict(&report, "the patch may be applied")
    }
}
