//! `crucible approve`: a person signs the plan of a run.

use std::path::PathBuf;

use clap::Args;
use crucible_host::fs::read_regular_up_to;
use crucible_model::{ByteLimit, ExitStatus, Failure, IdError, RunId};
use crucible_repo::Oid;
use crucible_run::{ApprovalDocument, ApprovalSource, Signing, approve};

use crate::app::App;
use crate::arguments::{overrides, path_text};
use crate::progress::Progress;

/// The largest plan or approval.
const MAX_FILE: ByteLimit = ByteLimit(1 << 20);

/// Approve the plan of a run with your key
///
/// The approval is a signature over the run's id, the digest of its plan and the commit that the change is made on. It
/// becomes part of the statement about the commit. A policy can require several people (`[require] approvals`). Read the
/// plan first: `artifacts/PLAN.md` in the run directory. For example: `crucible approve`, then `crucible run land`. On
/// another machine: `crucible approve RUN --plan PLAN.md --base COMMIT > approval.json`, then here `crucible approve RUN
/// --from approval.json`. `crucible run status RUN --json` prints the commit (`base_commit`)
#[derive(Args)]
#[command(
    override_usage = "crucible approve [OPTIONS] [RUN]\n       crucible approve [OPTIONS] <RUN> --plan <PLAN.md> --base <COMMIT>"
)]
pub(crate) struct Approve {
    /// The run's id or a prefix of it [default: newest run of this repository]
    run: Option<String>,
    /// The SSH key [default: attest.key]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Approve this plan of a run on another machine, and print the approval; RUN is the complete id
    #[arg(
        long,
        value_name = "PLAN.md",
        requires_all = ["run", "base"],
        conflicts_with = "from"
    )]
    plan: Option<PathBuf>,
    /// With `--plan`: the complete name of the commit that the change is made on
    #[arg(long, value_name = "COMMIT", requires = "plan")]
    base: Option<Oid>,
    /// Add an approval that was printed on another machine
    #[arg(long, value_name = "FILE", conflicts_with = "key")]
    from: Option<PathBuf>,
}

impl Approve {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let flags = overrides([("attest.key", path_text(&self.key))]);
        let settings = app.config(app.env.working_directory(), &flags)?;
        let home = app.home()?;
        let signing = || Signing::configured(&settings, app.runtime().sandbox, &app.env, &home);
        if let (Some(plan), Some(run), Some(base)) = (&self.plan, &self.run, &self.base) {
            let run: RunId = run.parse().map_err(|error: IdError| {
                Failure::usage(error.to_string()).hint("Give the complete id of the run.")
            })?;
            let plan = read_regular_up_to(&app.absolute(plan), MAX_FILE)?;
            let signing = signing()?;
            let signer = signing.signer(&home)?;
            let document = app.drive(ApprovalDocument::sign_text(signer, &run, &plan, base))?;
            app.output.json(&document)?;
            return Ok(ExitStatus::Success);
        }
        let world = app.world_here()?;
        let (mut ledger, dir) = app.find_run(&world, self.run.as_deref())?;
        let mut progress = Progress::new(&app.output);
        let document = match &self.from {
            Some(file) => {
                let bytes = read_regular_up_to(&app.absolute(file), MAX_FILE)?;
                let given_approval_source = ApprovalSource::Given(ApprovalDocument::parse(&bytes)?);
                app.drive(approve(
                    &world,
                    &dir,
                    given_approval_source,
                    &mut ledger,
                    &mut progress,
                ))
            }
            None => {
                let signing = signing()?;
                let source = ApprovalSource::Signer(signing.signer(&home)?);
                app.drive(approve(&world, &dir, source, &mut ledger, &mut progress))
            }
        };
        progress.finish();
        let document = document?;
        app.output.show(
            || &document,
            || {
                app.output.line(&format!(
                    "approved the plan {} of run {}",
                    document.plan, document.run
                ));
                app.output.line(&format!("  key {}", document.keyid));
            },
        )
    }
}
