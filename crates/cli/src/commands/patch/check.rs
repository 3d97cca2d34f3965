//! `crucible patch check`.

use clap::Args;
use crucible_model::{ExitStatus, Failure};
use crucible_run::check_patch;

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
        let verdict = match self.input.read(app)? {
            Measured::By { patch, policy } => app.block_on(async {
                let git = self.input.open(app).await?;
                Ok(check_patch(&git, &policy, &patch).await?)
            })?,
            Measured::Refused(verdict) => verdict,
        };
        app.output.verdict(
            &verdict.report("crucible-patch-check-v1"),
            "the patch may be applied",
        )
    }
}
