//! Runs the gates of a run's current patch again on a copy, exactly like an attempt's verification.
//!
//! Invariants: nothing is written to the run directory or the ledger; the copy is in Crucible's temporary
//! directory and is removed afterwards.

use crucible_host::fs::{create_dir_all, temp_dir_in};
use crucible_ledger::Ledger;
use crucible_model::{Code, EditFormat, Finding, Outcome, Verdict};
use crucible_verify::{GateLevel, VerifyReport};
use serde::Serialize;

use crate::allow::Permissions;
use crate::analysis::Analysis;
use crate::attempt::{self, AttemptOutcome};
use crate::contract::{Plan, RunRecord};
use crate::error::RunError;
use crate::gate_workspace::SurveyCache;
use crate::gatekeeper::{self, PatchContext};
use crate::journal::{RunObserver, edited, edited_since};
use crate::layout::{self, RunDir, attempt_file};
use crate::run_context::RunContext;
use crate::status::status;
use crate::trial::{self, TrialResult, VerifyContext};
use crate::verification;

const REFUSED: Code = Code::new("verify-patch-refused");

/// What came of verifying once more.
#[derive(Debug, Clone)]
pub struct VerifiedAgain {
    /// Whether the change may land, and why not.
    pub verdict: Verdict,
    /// The gates' report; absent if the patch gate refuses the patch, so that no gate ran.
    pub report: Option<VerifyReport>,
}

/// The document of `verify`.
#[derive(Serialize)]
pub struct VerifiedAgainDocument<'a> {
    schema_version: &'static str,
    verdict: Outcome,
    findings: &'a [Finding],
    report: Option<&'a VerifyReport>,
}

impl VerifiedAgain {
    /// Returns the result as JSON.
    #[must_use]
    pub fn document(&self) -> VerifiedAgainDocument<'_> {
        VerifiedAgainDocument {
            schema_version: "crucible-verify-v1",
            verdict: self.verdict.outcome(),
            findings: self.verdict.findings(),
            report: self.report.as_ref(),
        }
    }
}

/// Judges the patch of a run again, and runs the gates of this set on a copy of the base with it.
///
/// # Errors
///
/// Fails when the run has no attempt that came to its gates, when its files were edited, when the repository
/// is not at the run's base, or when a process cannot be started as required.
pub async fn verify_again(
    world: &RunContext<'_>,
    dir: &RunDir,
    ledger: &Ledger,
    level: GateLevel,
    observer: &mut dyn RunObserver,
) -> Result<VerifiedAgain, RunError> {
    let mut record = dir.record()?;
    let events = ledger.events(Some(&record.run_id))?;
    Permissions::from_events(&events).extend_attempts(&mut record);
    if let Some(path) = edited(dir, &events)?.first() {
        return Err(edited_since(dir, &events, path));
    }
    let last = attempt::recorded_outcomes(dir, &events)?
        .pop()
        .filter(|last| last.patch.is_some());
    let Some(outcome) = last else {
        let status = status(dir, ledger)?;
        return Err(RunError::NotVerified {
            id: record.run_id.to_string(),
            state: status.state.name(),
            hint: status.next,
        });
    };
    if let Some(path) = attempt::edited_copies(dir, &events)?.first() {
        return Err(edited_since(dir, &events, path));
    }
    let has_ended = status(dir, ledger)?.state.is_end();
    match verify_outcome(world, dir, &record, outcome, level, observer)
        .await
        .map(|(second_verdict, _)| second_verdict)
    {
        Err(RunError::RepositoryChanged { base, .. }) if has_ended => {
            Err(RunError::EndedElsewhere {
                id: record.run_id.to_string(),
                base,
            })
        }
        Err(RunError::BaseDirty { count, first, .. }) => Err(RunError::BaseDirty {
            count,
            first,
            then: "crucible verify",
        }),
        verified => verified,
    }
}

/// The same for an attempt whose files were checked already; with the trial if gates ran.
pub(crate) async fn verify_outcome(
    world: &RunContext<'_>,
    dir: &RunDir,
    record: &RunRecord,
    mut outcome: AttemptOutcome,
    level: GateLevel,
    observer: &mut dyn RunObserver,
) -> Result<(VerifiedAgain, Option<TrialResult>), RunError> {
    create_dir_all(&world.tmp)?;
    let temp_dir = temp_dir_in(&world.tmp, "verify-")?;
    let git = world
        .git(&record.repo, &temp_dir.path().join("git"))
        .await?;
    trial::require_base(&git, record).await?;
    let plan = Plan::parse(&dir.read_text(layout::PLAN)?)
        .map_err(|_| dir.malformed(layout::PLAN, "it is not a valid plan"))?;
    let analysis: Analysis = dir.read_document(layout::ANALYSIS)?;
    let format = EditFormat::UnifiedDiff;
    let context = PatchContext {
        git: &git,
        record,
        format,
        plan: &plan,
        gate_files: &analysis.gate_files,
    };
    observer.working("patch gate", "judging the patch");
    let judged = gatekeeper::judge_again(&context, &dir.read(layout::PATCH)?).await?;
    let Some(change) = judged.change.filter(|_| judged.verdict.passes()) else {
        let mut verdict = judged.verdict;
        verdict.push(Finding::error(
            REFUSED,
            layout::PATCH,
            "The patch gate refused the patch, so no other gate ran.",
        ));
        return Ok((
            VerifiedAgain {
                verdict,
                report: None,
            },
            None,
        ));
    };
    outcome.findings = judged.verdict.findings().to_vec();
    let surveys = SurveyCache::default();
    let by = VerifyContext {
        git: &git,
        surveys: &surveys,
        record,
        dir,
        plan: &plan,
        analysis: &analysis,
        level,
    };
    observer.working("verifier", "running the gates on the patched copy");
    let (trial, mut report) =
        verification::verify(world, by, temp_dir.path(), &change, &mut outcome, observer).await?;
    // No model is asked again.
    let recorded = attempt_file(outcome.number, attempt::REPORT);
    if dir.has(&recorded) {
        let recorded: VerifyReport = dir.read_json(&recorded)?;
        report.candidates = recorded.candidates;
        if let Some(objections) = recorded.objections {
            report.add_objections(objections);
        }
    }
    Ok((
        VerifiedAgain {
            verdict: report_verdict(&report),
            report: Some(report),
        },
        Some(trial),
    ))
}

/// What a report says, as findings.
fn report_verdict(report: &VerifyReport) -> Verdict {
    let mut verdict = Verdict::default();
    for failure in &report.failures {
        let code = serde_json::from_value(failure.kind.clone().into()).unwrap_or(REFUSED);
        verdict.push(Finding::error(code, &failure.id, &failure.message));
    }
    report
        .warnings
        .iter()
        .for_each(|warning| verdict.push(warning.clone()));
    verdict
}
