//! `crucible patch`: the patch gate on its own, and the judged bytes in the work tree.

mod apply;
mod check;
mod input;

use clap::Subcommand;
use crucible_model::{ExitStatus, Failure};

use crate::app::App;

/// Check a patch, or apply one that passes
#[derive(Subcommand)]
pub(crate) enum Patch {
    Check(check::Check),
    Apply(apply::Apply),
}

impl Patch {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        match self {
            Self::Check(check) => check.run(app),
            Self::Apply(apply) => apply.run(app),
        }
    }
}
