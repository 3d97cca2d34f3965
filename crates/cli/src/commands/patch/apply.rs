//! `crucible patch apply`.

use clap::Args;
use crucible_model::{ExitStatus, Failure};
use crucible_run::configured::PatchMeasure;
use crucible_run::{AppliedPatch, apply_patch_locked};

use super::input::{Measured, PatchInput};
use crate::app::App;

/// Check a patch as `patch check` does, and apply it
///
/// All files of the patch are changed or none. Nothing is staged or committed. If one file differs from the
/// last commit, no file is changed. For example: `crucible patch apply --repo . --patch change.patch --plan
/// PLAN.md`
#[derive(Args)]
pub(crate) struct Apply {
    #[command(flatten)]
    input: PatchInput,
}

impl Apply {
    pub(super) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let Measured { patch, measure } = self.input.read(app)?;
        let applied = match measure {
            PatchMeasure::Policy(policy) => app.block_on(async {
                let git = self.input.open(app).await?;
                Ok(apply_patch_locked(&git, &policy, &patch, &app.home()?).await?)
            })?,
            PatchMeasure::Refused(verdict) => AppliedPatch {
                verdict,
                files: Vec::new(),
            },
        };
        if app.output.is_json() {
            app.output.json(&applied.document())?;
        } else {
            for finding in applied.verdict.findings() {
                app.output.finding(finding);
            }
            for file in &applied.files {
                let word = AppliedPatch::change_word(file.status);
                app.output.line(&format!("{word} {}", file.path));
            }
            if !applied.verdict.passes() {
                app.output.line("nothing was applied");
            }
        }
        Ok(applied.verdict.outcome().exit_status())
    }
}
