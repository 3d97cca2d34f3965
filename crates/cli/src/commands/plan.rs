//! `crucible plan`: a plan judged on its own.

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args, Subcommand};
use crucible_host::fs::read_regular_up_to;
use crucible_model::{ByteLimit, Code, ExitStatus, Finding, Verdict};
use crucible_repo::Git;
use crucible_run::{
    PLAN, Plan, PlanDocuments, RunDir, RunError, RunPlan, check_executed, check_signature,
    check_status, executed_gates, find_evidence, listed_behaviors, run_of,
};

use crate::app::App;
use crate::commands::run::{find, shared_sandbox, world};
use crate::error::CommandError;

/// The largest document of a plan.
const MAX_FILE: ByteLimit = ByteLimit(4 * 1024 * 1024);

const NOT_TEXT: Code = Code::new("plan-text-invalid");

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
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let Self::Check(check) = self;
        let verdict = check.judge(app)?;
        app.output
            .verdict(&verdict.report("crucible-plan-check-v1"), "the plan holds")
    }
}

impl Check {
    fn judge(&self, app: &App) -> Result<Verdict, CommandError> {
        let run = self
            .run
            .as_deref()
            .map(|named| run_dir(app, named))
            .transpose()?;
        let texts = match &run {
            Some(dir) => match RunPlan::read(dir) {
                Err(RunError::Fs(error)) if error.is_not_found() => return Err(no_plan(dir)),
                texts => texts?,
            },
            None => beside(&app.absolute(&self.plan.clone().unwrap_or_default()))?,
        };
        let mut verdict = Verdict::default();
        // A plan that is named by its file is signed by the run that it lies in.
        if let Some(dir) = run
            .clone()
            .or_else(|| run_of(&app.absolute(self.plan.as_deref()?)))
        {
            verdict.merge(check_signature(&dir, &texts.plan)?);
        }
        let Ok(text) = std::str::from_utf8(&texts.plan) else {
            let hint = "The plan is not UTF-8, so its meaning is ambiguous; write it again.";
            verdict.push(Finding::error(NOT_TEXT, "the text", hint));
            return Ok(verdict);
        };
        let plan = match Plan::parse(text) {
            Ok(plan) => plan,
            Err(findings) => {
                verdict.merge(findings);
                return Ok(verdict);
            }
        };
        verdict.merge(check_status(&plan));
        let named = self
            .repo
            .as_deref()
            .map(|repo| app.absolute(repo))
            .or_else(|| texts.repo.clone());
        // Only what is asked for is looked at: a plan without behaviours can be judged where there is no repository.
        let is_needed = self.check_evidence || !plan.behaviors.is_empty() || self.repo.is_some();
        let top = is_needed
            .then(|| top(app, &named.unwrap_or_else(|| app.absolute(Path::new(".")))))
            .transpose()?;
        let behaviors = top.as_deref().map(listed_behaviors).unwrap_or_default();
        let documents = PlanDocuments {
            plan: &plan,
            reasons: texts.reasons.as_deref(),
            results: texts.results.as_deref(),
            behaviors: &behaviors,
        };
        verdict.merge(documents.check());
        if self.check_evidence {
            let places: Vec<&Path> = run.iter().map(RunDir::root).chain(top.as_deref()).collect();
            verdict.merge(documents.check_evidence(&find_evidence(&documents.evidence(), &places)));
        }
        match (&run, &self.executed_gates) {
            (Some(dir), _) if self.check_evidence => {
                let (executed, known) = executed_gates(dir, &texts.plan)?;
                if known.passes() {
                    verdict.merge(check_executed(&plan, &executed));
                }
                verdict.merge(known);
            }
            (None, Some(executed)) => verdict.merge(check_executed(&plan, executed)),
            (Some(_) | None, _) => {}
        }
        Ok(verdict)
    }
}

/// A run that has no signed plan yet has nothing to judge.
fn no_plan(dir: &RunDir) -> CommandError {
    let id = dir.root().file_name().unwrap_or_default().to_string_lossy();
    CommandError::usage(format!(
        "run {id} has no plan yet: {PLAN} is missing in {}",
        dir.root().display()
    ))
    .hint(format!(
        "Draft and sign it with `crucible run advance {id}`; see `crucible run status {id}` for what it waits for."
    ))
}

/// The run in a directory; if no directory has this name, the run with this id.
fn run_dir(app: &App, named: &Path) -> Result<RunDir, CommandError> {
    let directory = app.absolute(named);
    if directory.is_dir() {
        return Ok(RunDir::at(directory));
    }
    let config = app.config(&app.absolute(Path::new(".")), &[])?;
    let id = named
        .to_str()
        .ok_or_else(|| CommandError::usage("the name of the run is not UTF-8"))?;
    Ok(find(app, &world(app, &shared_sandbox(app), &config)?, Some(id))?.1)
}

/// A plan's file with what lies beside it.
fn beside(plan: &Path) -> Result<RunPlan, CommandError> {
    let text = |name: &str| match read_regular_up_to(&plan.with_file_name(name), MAX_FILE) {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| {
            CommandError::new(
                ExitStatus::Schema,
                format!("{name} beside the plan is not UTF-8"),
            )
            .hint("Write it as UTF-8.")
        }),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(CommandError::unreadable(error)),
    };
    Ok(RunPlan {
        plan: read_regular_up_to(plan, MAX_FILE).map_err(CommandError::unreadable)?,
        reasons: text("REASONS.md")?,
        results: text("EXPECTED_RESULTS.md")?,
        repo: None,
    })
}

/// The top of the repository that a directory lies in.
fn top(app: &App, directory: &Path) -> Result<PathBuf, CommandError> {
    let sandbox = shared_sandbox(app);
    app.block_on(async {
        Ok(Git::open(sandbox, &app.env, directory)
            .await?
            .top()
            .to_owned())
    })
}
