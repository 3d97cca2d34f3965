//! `crucible plan`: a plan judged on its own.

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args, Subcommand};
use crucible_model::{ExitStatus, Failure, Verdict};
use crucible_run::{EvidenceCheck, PlanCheck, RunDir};

use crate::app::App;

/// Check a plan
#[derive(Subcommand)]
pub(crate) enum PlanCommand {
    Check(Check),
}

/// Check a plan: its keys, scope, ids, evidence and gates
///
/// REASONS.md and EXPECTED_RESULTS.md are read beside the plan. For example: `crucible plan check --plan
/// PLAN.md --repo . --executed-gates lite,plan_check,patch_check,behavior_catalog_check --check-evidence`
#[derive(Args)]
#[command(group = ArgGroup::new("judged").required(true).args(["run", "plan"]))]
pub(crate) struct Check {
    /// A run directory or run id; its signature and executed gates are checked too
    #[arg(long, value_name = "DIR", conflicts_with = "executed_gates")]
    run: Option<PathBuf>,
    /// The plan's file; in a run directory its signature is checked too
    #[arg(long, value_name = "PLAN.md")]
    plan: Option<PathBuf>,
    /// A directory in the repository, used for its behaviours and evidence [default: the run's, or `.`]
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// The gates that ran, separated by commas; they must include every gate of the plan
    #[arg(long, value_name = "GATES", value_delimiter = ',')]
    executed_gates: Option<Vec<String>>,
    /// Also check that the evidence of each result exists, and that a run's gates ran
    #[arg(long)]
    check_evidence: bool,
}

impl PlanCommand {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let Self::Check(check) = self;
        let verdict = check.judge(app)?;
        app.output
            .verdict(&verdict.report("crucible-plan-check-v1"), "the plan holds")
    }
}

impl Check {
    fn judge(&self, app: &App) -> Result<Verdict, Failure> {
        let run = self
            .run
            .as_deref()
            .map(|named| run_dir(app, named))
            .transpose()?;
        let check = PlanCheck {
            run,
            plan: app.absolute(&self.plan.clone().unwrap_or_default()),
            repo: self.repo.as_deref().map(|repo| app.absolute(repo)),
            default_repo: app.absolute(Path::new(".")),
            executed: self.executed_gates.clone(),
            evidence: if self.check_evidence {
                EvidenceCheck::Checked
            } else {
                EvidenceCheck::Ignored
            },
        };
        let runtime = app.runtime();
        app.block_on(check.judge(&runtime))
    }
}

/// The run in a directory; if no directory has this name, the run with this id.
fn run_dir(app: &App, named: &Path) -> Result<RunDir, Failure> {
    let directory = app.absolute(named);
    if directory.is_dir() {
        return Ok(RunDir::from_path(directory));
    }
    let config = app.config(&app.absolute(Path::new(".")), &[])?;
    let id = named
        .to_str()
        .ok_or_else(|| Failure::usage("the name of the run is not UTF-8"))?;
    let sandbox = app.runtime().sandbox;
    Ok(app.find_run(&app.world(&sandbox, &config)?, Some(id))?.1)
}
