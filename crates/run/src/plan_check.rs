//! Judges a plan on its own: its keys, its documents, its behaviours, its evidence and the gates that ran.

use std::path::{Path, PathBuf};

use crucible_host::fs::read_regular_up_to;
use crucible_model::{ByteLimit, Code, ExitStatus, Failure, Finding, Verdict};
use crucible_repo::Git;
use crucible_sandbox::Runtime;

use crate::catalogue::listed_behaviors;
use crate::contract::{Plan, PlanDocuments, check_executed};
use crate::error::RunError;
use crate::gatekeeper::run_of;
use crate::layout::{PLAN, RunDir};
use crate::plan_evidence::{RunPlan, check_signature, check_status, executed_gates, find_evidence};

/// The largest document of a plan.
const MAX_FILE: ByteLimit = ByteLimit(4 * 1024 * 1024);

const NOT_TEXT: Code = Code::new("plan-text-invalid");

/// A plan, and what to check it against. All paths are absolute.
pub struct PlanCheck {
    /// The run whose plan is checked.
    pub run: Option<RunDir>,
    /// The plan's file, without a run.
    pub plan: PathBuf,
    /// The repository, if the command line names one.
    pub repo: Option<PathBuf>,
    /// The repository if neither the command line nor the run names one.
    pub default_repo: PathBuf,
    /// The gates that ran, without a run.
    pub executed: Option<Vec<String>>,
    /// Whether the evidence of each result must exist.
    pub evidence: EvidenceCheck,
}

/// Whether the evidence of a plan is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvidenceCheck {
    /// It must exist, and a run's gates must have run.
    Checked,
    /// It is not looked for.
    Ignored,
}

impl PlanCheck {
    /// Judges the plan.
    ///
    /// # Errors
    ///
    /// Fails if a document, the run or the repository cannot be read.
    pub async fn judge(&self, runtime: &Runtime<'_>) -> Result<Verdict, Failure> {
        let texts = match &self.run {
            Some(dir) => match RunPlan::read(dir) {
                Err(RunError::Fs(error)) if error.is_not_found() => return Err(no_plan(dir)),
                texts => texts?,
            },
            None => read_plan(&self.plan)?,
        };
        let mut verdict = Verdict::default();
        // The run directory of a plan's file has its signature.
        if let Some(dir) = self.run.clone().or_else(|| run_of(&self.plan)) {
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
        // A plan without behaviours can be judged without a repository.
        let is_checked = self.evidence == EvidenceCheck::Checked;
        let needs_repo = is_checked || !plan.behaviors.is_empty() || self.repo.is_some();
        let top = if needs_repo {
            let named = self.repo.as_ref().or(texts.repo.as_ref());
            Some(top(runtime, named.unwrap_or(&self.default_repo)).await?)
        } else {
            None
        };
        let behaviors = top.as_deref().map(listed_behaviors).unwrap_or_default();
        let documents = PlanDocuments {
            plan: &plan,
            reasons: texts.reasons.as_deref(),
            results: texts.results.as_deref(),
            behaviors: &behaviors,
        };
        verdict.merge(documents.check());
        if is_checked {
            let places: Vec<&Path> = self
                .run
                .iter()
                .map(RunDir::root)
                .chain(top.as_deref())
                .collect();
            verdict.merge(documents.check_evidence(&find_evidence(&documents.evidence(), &places)));
        }
        match (&self.run, &self.executed) {
            (Some(dir), _) if is_checked => {
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

/// Returns the error of a run without a plan.
fn no_plan(dir: &RunDir) -> Failure {
    let id = dir.root().file_name().unwrap_or_default().to_string_lossy();
    Failure::usage(format!(
        "run {id} has no plan yet: {PLAN} is missing in {}",
        dir.root().display()
    ))
    .hint(format!(
        "Draft and sign it with `crucible run advance {id}`; see `crucible run status {id}` for what it waits for."
    ))
}

/// Reads a plan's file and the documents beside it.
fn read_plan(plan: &Path) -> Result<RunPlan, Failure> {
    let text = |name: &str| match read_regular_up_to(&plan.with_file_name(name), MAX_FILE) {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| {
            let message = format!("{name} beside the plan is not UTF-8");
            Failure::new(ExitStatus::Schema, message).hint("Write it as UTF-8.")
        }),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.unreadable_input()),
    };
    Ok(RunPlan {
        plan: read_regular_up_to(plan, MAX_FILE).map_err(|error| error.unreadable_input())?,
        reasons: text("REASONS.md")?,
        results: text("EXPECTED_RESULTS.md")?,
        repo: None,
    })
}

/// Returns the top of the repository that contains a directory.
async fn top(runtime: &Runtime<'_>, directory: &Path) -> Result<PathBuf, RunError> {
    let sandbox = std::sync::Arc::clone(&runtime.sandbox);
    let git = Git::open(sandbox, runtime.env, directory).await?;
    Ok(git.top().to_owned())
}
