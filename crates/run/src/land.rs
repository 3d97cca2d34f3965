//! Landing: exactly the verified bytes become a commit on the branch where the run started.
//!
//! The parent, tree, message and dates of the commit are recorded before the first side effect. An
//! interrupted landing is therefore finished with the same commit and never repeated. The trailers link the
//! commit to the run: its id, the digests of plan and verify report, and the head of the ledger. The statements about
//! the commit are signed before it is made.

use std::path::Path;

use crucible_ledger::{EventRecord, Ledger};
use crucible_model::{ClockSource, Digest, Finding, Timestamp};
use crucible_repo::{
    Branch, BranchReach, Git, Identity, LandRequest, Oid, ProducedTree, RUN_TRAILER,
};
use crucible_verify::{GateId, GateLevel, VerifyReport};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::allow::Permissions;
use crate::analysis::Analysis;
use crate::attempt;
use crate::attestation::{LandingSigner, Signing, write_note};
use crate::commit_message::commit_message;
use crate::contract::{Plan, RunRecord};
use crate::document::versions;
use crate::error::RunError;
use crate::event_kind::{EventKind, full_gates_key, full_gates_runs};
use crate::gatekeeper::{self, PatchContext};
use crate::held_out_gates::pass_held_out;
use crate::journal::{Entry, Journal, RunObserver, is_pinned};
use crate::landing_evidence::record_evidence;
use crate::layout::{self, RunDir, full_gates_files};
use crate::progress::progress;
use crate::recorded::FILES;
use crate::recording::check_recording;
use crate::run_context::RunContext;
use crate::state::RunState;
use crate::status::status_of;
use crate::trial::{TrialResult, explain_base_error, keep_logs};
use crate::verify_again::verify_outcome;
use crate::verify_record::verify_before_landing;

/// The key of the trailer that ties a commit to the ledger's head.
pub(crate) const LEDGER_TRAILER: &str = "Crucible-Ledger";

/// The command that lands.
const LAND: &str = "crucible run land";

/// The key of the event with which a landing begins.
const BEGUN: &str = "landing";

/// `artifacts/landing.json`: the commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Landing {
    /// Which version of the document this is.
    pub schema_version: LandingVersion,
    /// The commit's id.
    pub commit: Oid,
    /// The tree it holds.
    pub tree: Oid,
    /// The digest of the patch that was applied.
    pub patch: Digest,
    /// The message, trailers included.
    pub message: String,
}

versions! {
    /// The schema id of `artifacts/landing.json`.
    pub Landing, LandingVersion = "crucible-landing-v1"
}

/// Commits a verified run, with `subject` if given, and with statements signed by `signing`. An interrupted landing continues with its original
/// message. If gates of level `full` are configured, all gates run first, on a copy.
///
/// # Errors
///
/// Fails without touching the repository when the run is not verified, when a gate refuses it, when its files
/// were edited since, when the branch has moved or tracked files have changed, or when anything of the run
/// was recorded under a pinned clock, or is now.
pub async fn land(
    world: &RunContext<'_>,
    dir: &RunDir,
    subject: Option<&str>,
    signing: &Signing,
    ledger: &mut Ledger,
    observer: &mut dyn RunObserver,
) -> Result<Landing, RunError> {
    let record = dir.record()?;
    world.require_run_outside(&record.repo, dir)?;
    let _lock = dir.acquire("landing the run")?;
    let mut journal = Journal::open(
        record.run_id.clone(),
        dir.clone(),
        ledger,
        world.clock,
        observer,
    )?;
    // As the steps of a run, these are too large for the stack of a small thread.
    let landed = Box::pin(land_recorded(
        world,
        dir,
        &record,
        subject,
        signing,
        &mut journal,
    ))
    .await
    .map_err(|error| match error {
        RunError::BaseDirty { count, first, .. } => RunError::BaseDirty {
            count,
            first,
            then: LAND,
        },
        RunError::RepositoryChanged { base, .. } => {
            RunError::RepositoryChanged { base, then: LAND }
        }
        other => other,
    });
    // Recorded events stay, whatever stopped the landing.
    let committed = journal.commit();
    let landed = landed.and_then(|landing| committed.map(|()| landing));
    if landed.is_err() && (journal.has(BEGUN) || journal.events().is_ok_and(has_gates_of_landing)) {
        // Report the error that stopped the landing, not that its trace could not be written.
        let _derived = journal.write_trace();
    }
    landed
}

async fn land_recorded(
    world: &RunContext<'_>,
    dir: &RunDir,
    record: &RunRecord,
    subject: Option<&str>,
    signing: &Signing,
    journal: &mut Journal<'_>,
) -> Result<Landing, RunError> {
    journal.check_files()?;
    attempt::check_copies(dir, journal.events()?)?;
    let state = progress(dir, journal.events()?)?.state();
    let booked = journal.recorded_usage()?;
    if state < RunState::Verified || state > RunState::Landed {
        let hint = status_of(dir, record.clone(), journal.events()?, &booked)?.next;
        return Err(RunError::NotVerified {
            id: record.run_id.to_string(),
            state: state.name(),
            hint,
        });
    }
    let pinned = [record.clock, world.clock.source()].contains(&ClockSource::Pinned);
    if pinned || journal.events()?.iter().any(is_pinned) {
        return Err(RunError::PinnedClock);
    }
    if let Some(fault) = booked.fault() {
        return Err(fault);
    }
    let git = world.git(&record.repo, &dir.fresh_scratch()?).await?;
    if state == RunState::Landed {
        journal.write_trace()?;
        journal.update_run_row()?;
        let landing: Landing = dir.read_document(layout::LANDING)?;
        let landing = still_there(&git, record, landing).await?;
        write_note(world, dir, record, &git, &landing.commit).await?;
        return Ok(landing);
    }
    if let Some(what) = git.operation_under_way() {
        return Err(RunError::UnderWay { what });
    }
    if let Some(broken) = journal.ledger()?.verify(&[])?.errors().next() {
        return Err(RunError::LedgerBroken {
            first: format!("{} {}", broken.code, broken.subject),
        });
    }
    // The model's answers are part of what the commit vouches for; the recording is not a recorded file,
    // because it grows.
    if !check_recording(dir, &record.run_id, journal.ledger()?)?.passes() {
        return Err(RunError::Edited {
            path: dir.path(layout::CASSETTE),
        });
    }
    if let Some(first) = verify_before_landing(dir, journal.ledger()?)?
        .errors()
        .next()
    {
        return Err(RunError::RecordBroken {
            id: record.run_id.to_string(),
            first: first.to_string(),
        });
    }
    // Landing records nothing about the patch: only what the ledger knows as verified gets here.
    let patch = dir.read(layout::PATCH)?;
    let beginning = if journal.has(BEGUN) {
        // The gates passed before the landing began, and who commits was settled.
        None
    } else {
        // Before gates that may take long: certain refusals come first.
        let parsed = crucible_patch::parse(&patch).map_err(|_| RunError::Edited {
            path: dir.path(layout::PATCH),
        })?;
        let touched: Vec<&Path> = parsed
            .paths()
            .into_iter()
            .map(|path| Path::new(path.as_str()))
            .collect();
        let (landable, identity) = tokio::join!(
            git.require_landable(&record.base_commit, &record.branch, &touched),
            git.identity()
        );
        landable?;
        let identity = identity?;
        let passed = Box::pin(pass_full_gates(world, dir, record, journal)).await?;
        Box::pin(pass_held_out(world, dir, record, journal)).await?;
        // They may have taken long: check again what the commit vouches for.
        journal.check_files()?;
        attempt::check_copies(dir, journal.events()?)?;
        Some((identity, passed))
    };
    // A refusal here comes before anything is recorded or shown of a landing.
    let produced = Box::pin(verified_tree(dir, &git, record, &patch)).await?;
    let tree = produced.tree.clone();
    journal.working("crucible", "committing the verified change")?;
    if let Some((identity, full)) = beginning {
        let subject = subject.or(record.settings.message.as_deref());
        let text = commit_message(subject, &record.goal);
        begin(dir, record, &text, &patch, &full, &identity, journal)?;
    }
    let begun = begun(dir, journal)?;
    let mut request = LandRequest {
        run: &record.run_id,
        base: &record.base_commit,
        branch: &record.branch,
        patch: &patch,
        tree: &tree,
        message: &begun.message,
        identity: &begun.identity,
        at: begun.date,
        signature: None,
    };
    // The commit's contents are in the ledger before anything is created.
    journal.commit()?;
    // The signature is a part of the commit, so whatever names the commit comes after it.
    let signer = LandingSigner {
        world,
        signing,
        dir,
        record,
        git: &git,
    };
    let signature = Box::pin(signer.sign_commit(&request, journal)).await?;
    request.signature = signature.as_deref();
    journal.commit()?;
    Box::pin(record_evidence(
        dir, record, &git, &request, &produced, journal,
    ))
    .await?;
    Box::pin(signer.sign_statements(&request, journal)).await?;
    journal.commit()?;
    let commit = git.land(&request).await?;
    let landing = Landing {
        schema_version: LandingVersion::V1,
        commit: commit.oid,
        tree,
        patch: Digest::compute(&patch),
        message: begun.message,
    };
    dir.write_json_recorded(layout::LANDING, &landing)?;
    journal.record_file("crucible", EventKind::Landed, "landed", layout::LANDING)?;
    journal.write_trace()?;
    write_note(world, dir, record, &git, &landing.commit).await?;
    Ok(landing)
}

/// Whether gates or held-out tests ran for a landing.
fn has_gates_of_landing(events: &[EventRecord]) -> bool {
    let kinds = [EventKind::FullGatesRun, EventKind::HeldOutRun].map(EventKind::name);
    events
        .iter()
        .any(|event| kinds.contains(&event.event.as_str()))
}

/// Returns the landed commit, if its branch still contains it.
async fn still_there(git: &Git, record: &RunRecord, landing: Landing) -> Result<Landing, RunError> {
    let reach = match &record.branch {
        Branch::Named(name) => git.branch_reach(&landing.commit, name).await?,
        // A commit that landed on no branch is on none.
        Branch::Detached if git.commit_object(&landing.commit).await?.is_some() => {
            BranchReach::Reached
        }
        Branch::Detached => BranchReach::NoCommit,
    };
    if reach == BranchReach::Reached {
        return Ok(landing);
    }
    let (commit, branch) = (landing.commit.to_string(), record.branch.to_string());
    Err(RunError::CommitGone {
        id: record.run_id.to_string(),
        commit,
        branch,
        reach,
    })
}

/// Runs every gate on a copy with the change if some have level `full`, and returns which ran. A change
/// verified by the others alone does not land without these.
async fn pass_full_gates(
    world: &RunContext<'_>,
    dir: &RunDir,
    record: &RunRecord,
    journal: &mut Journal<'_>,
) -> Result<Vec<GateId>, RunError> {
    if record
        .settings
        .gates
        .iter()
        .all(|gate| gate.level.is_lite())
    {
        return Ok(Vec::new());
    }
    // A verified run has an attempt that was.
    let Some(outcome) = attempt::recorded_outcomes(dir, journal.events()?)?.pop() else {
        return Ok(Vec::new());
    };
    let full = GateLevel::Full;
    let mut record = record.clone();
    Permissions::from_events(journal.events()?).extend_attempts(&mut record);
    let verified = verify_outcome(world, dir, &record, outcome, full, journal.observer()?).await;
    let (second_verdict, trial) = verified?;
    let failed_before = |finding: &Finding| {
        trial.as_ref().is_some_and(|trial| {
            trial
                .before
                .iter()
                .any(|gate| gate.id == finding.subject && !gate.passed)
        })
    };
    let id = record.run_id.to_string();
    let first = second_verdict
        .verdict
        .errors()
        .next()
        .map(|first| match failed_before(first) {
            true => format!("{first}; this gate also fails without the change"),
            false => first.to_string(),
        });
    let (Some(report), Some(trial)) = (second_verdict.report, trial) else {
        return Err(RunError::NoLongerAccepted {
            id,
            first: first.unwrap_or_default(),
        });
    };
    let report_path = keep_full_gates(dir, &report, &trial, journal)?;
    match first {
        Some(first) => Err(RunError::FullGates {
            id,
            first,
            report: report_path,
        }),
        None => Ok(report.executed_gates),
    }
}

/// Saves verdict and output of a landing's gates, whether they accept the change or not, in one event like an
/// attempt's end. Returns the path of the report.
fn keep_full_gates(
    dir: &RunDir,
    report: &VerifyReport,
    trial: &TrialResult,
    journal: &mut Journal<'_>,
) -> Result<String, RunError> {
    let number = full_gates_runs(journal.events()?) + 1;
    let [path, stdout, stderr] = full_gates_files(number);
    let logs = keep_logs(dir, [(&stdout, &trial.stdout), (&stderr, &trial.stderr)])?;
    dir.write_json_recorded(&path, report)?;
    let before: Vec<Value> = trial
        .before
        .iter()
        .map(|gate| serde_json::json!({ "id": gate.id, "passed": gate.passed, "end": gate.end, "tally": gate.tally }))
        .collect();
    let body = serde_json::json!({ "result": report.result, "before": before, FILES: logs });
    let entry = Entry {
        role: "verifier",
        event: EventKind::FullGatesRun,
        key: full_gates_key(number),
        path: &path,
        body,
    };
    journal.record_file_with(entry)?;
    Ok(path)
}

struct CommitDraft {
    message: String,
    identity: Identity,
    date: Timestamp,
}

/// Determines the commit's message, identity and date once; a later try uses what the first recorded.
fn begin(
    dir: &RunDir,
    record: &RunRecord,
    text: &str,
    patch: &[u8],
    full: &[GateId],
    identity: &Identity,
    journal: &mut Journal<'_>,
) -> Result<(), RunError> {
    let head = journal.ledger()?.head()?;
    let plan = Digest::compute(&dir.read(layout::PLAN)?);
    let report = Digest::compute(&dir.read(layout::VERIFY_REPORT)?);
    let message = format!(
        "{text}\n\n{RUN_TRAILER}: {}\nCrucible-Plan: {plan}\nCrucible-Verify: {report}\n{LEDGER_TRAILER}: {}:{}\n",
        record.run_id, head.seq, head.hash
    );
    let mut body = serde_json::json!({
        "message": message, "patch": Digest::compute(patch), "name": identity.name, "email": identity.email
    });
    if let (false, Value::Object(fields)) = (full.is_empty(), &mut body) {
        fields.insert("full_gates".to_owned(), serde_json::json!(full));
    }
    let key = BEGUN.to_owned();
    journal.record(Entry {
        role: "crucible",
        event: EventKind::LandingStarted,
        key,
        path: layout::PATCH,
        body,
    })
}

/// Returns the recorded start of the landing.
fn begun(dir: &RunDir, journal: &Journal<'_>) -> Result<CommitDraft, RunError> {
    let torn = || {
        dir.malformed(
            layout::EVENTS,
            "the start of the landing is not recorded completely",
        )
    };
    let (body, date) = journal
        .body_of(BEGUN)
        .zip(journal.instant_of(BEGUN))
        .ok_or_else(torn)?;
    let text = |field: &str| {
        body.get(field)
            .and_then(Value::as_str)
            .map(str::to_owned)
            .ok_or_else(torn)
    };
    let identity = Identity {
        name: text("name")?,
        email: text("email")?,
    };
    Ok(CommitDraft {
        message: text("message")?,
        identity,
        date,
    })
}

/// Judges the verified patch again on the current repository, and returns what it produces.
async fn verified_tree(
    dir: &RunDir,
    git: &Git,
    record: &RunRecord,
    patch: &[u8],
) -> Result<ProducedTree, RunError> {
    let plan = Plan::parse(&dir.read_text(layout::PLAN)?)
        .map_err(|_| dir.malformed(layout::PLAN, "it is not a valid plan"))?;
    let analysis: Analysis = dir.read_document(layout::ANALYSIS)?;
    let format = crucible_model::EditFormat::UnifiedDiff;
    let context = PatchContext {
        git,
        record,
        format,
        plan: &plan,
        gate_files: &analysis.gate_files,
    };
    let judged = match gatekeeper::judge_again(&context, patch).await {
        Ok(judged) => judged,
        Err(error) => return Err(explain_base_error(git, record, error).await),
    };
    if let Some(first) = judged.verdict.errors().next() {
        return Err(RunError::NoLongerAccepted {
            id: record.run_id.to_string(),
            first: first.to_string(),
        });
    }
    let produced = judged.change.map(|change| change.tree);
    let report: VerifyReport = dir.read_json(layout::VERIFY_REPORT)?;
    produced
        .filter(|produced| report.tree.as_deref() == Some(produced.tree.as_str()))
        .ok_or_else(|| RunError::Edited {
            path: dir.path(layout::PATCH),
        })
}
