//! `crucible crawl inspect`: describes a repository, its build system and the evidence for that.

use clap::Args;
use crucible_crawl::LookupMode;
use crucible_model::{ExitStatus, Failure};

use super::flags::{OutputArgs, Trace, Which};
use super::host::CommandHost;
use super::show;
use super::wanted::selection;
use crate::app::App;

/// Describe a repository, its build system and the evidence
///
/// Fetches the archive of the latest release, or a shallow clone, into a temporary directory that is
/// deleted afterwards. No model is called, and nothing is executed. For example:
/// `crucible crawl inspect BurntSushi/ripgrep`, `crucible crawl inspect ./my-project`, or
/// `crucible crawl inspect owner/repo --ref v1.0:packages/core`
#[derive(Args, Default)]
pub(crate) struct Inspect {
    #[command(flatten)]
    pub(crate) which: Which,
    #[command(flatten)]
    pub(crate) output_args: OutputArgs,
    #[command(flatten)]
    pub(crate) trace: Trace,
}

impl Inspect {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let requested = selection(app, &self.which, &self.output_args)?;
        let config = app.config(app.env.working_directory(), &[])?;
        CommandHost::run(
            app,
            &config,
            &requested.intent(self.trace.dry_run),
            |context| {
                let (inspected, _) = context.inspect(&requested, LookupMode::No)?;
                if app.output.is_json() {
                    app.output.json_text(inspected.artifact.json());
                } else {
                    show::inspection(&app.output, &inspected);
                }
                Ok(ExitStatus::Success)
            },
        )
    }
}
