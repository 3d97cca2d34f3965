//! `crucible crawl inspect`: what a repository is, how it builds and why we think so.

use clap::Args;
use crucible_model::ExitStatus;

use super::desk::{Desk, LookUp};
use super::flags::{Speech, Trace, Which};
use super::show;
use super::wanted::Wanted;
use crate::app::App;
use crate::error::CommandError;

/// Look at a repository: what it is, how it builds and why we think so
///
/// Fetches the latest release's archive, or a shallow clone, into a temporary directory that is gone afterwards; asks no
/// model and executes nothing. For example: `crucible crawl inspect BurntSushi/ripgrep`,
/// `crucible crawl inspect ./my-project`, or `crucible crawl inspect owner/repo --ref v1.0:packages/core`
#[derive(Args, Default)]
pub(crate) struct Inspect {
    #[command(flatten)]
    pub(crate) which: Which,
    #[command(flatten)]
    pub(crate) speech: Speech,
    #[command(flatten)]
    pub(crate) trace: Trace,
}

impl Inspect {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let wanted = Wanted::of(app, &self.which, &self.speech)?;
        let config = app.config(app.env.working_directory(), &[])?;
        Desk::open(app, &config, wanted.intent(&self.trace), |desk| {
            let (inspected, _) = desk.inspect(&wanted, LookUp::No)?;
            if app.output.is_json() {
                app.output.json_text(inspected.artifact.json());
            } else {
                show::inspection(&app.output, &inspected);
            }
            Ok(ExitStatus::Success)
        })
    }
}
