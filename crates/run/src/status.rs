//! Where a run stands, for people and programs: the state, the artifacts with their digests, what to do next.

use std::collections::BTreeMap;

use crucible_model::{Digest, Finding};
use serde::Serialize;

use crate::attempt::{self, AttemptEnd, AttemptOutcome};
use crate::contract::{Review, ReviewVerdict, RunRecord, Signature};
use crate::error::RunError;
use crate::layout::{self, RunDir};
use crate::state::{Progress, RunState};

/// The artifacts that a status lists, in the order in which they come to be.
pub(crate) const LISTED: [&str; 16] = [
    layout::GUARDRAILS,
    layout::DISPATCH,
    layout::ANALYSIS,
    layout::FILE_REQUEST,
    layout::CONTEXT_PACK,
    layout::PLAN_DRAFT,
    layout::REASONS,
    layout::EXPECTED_RESULTS,
    layout::REVIEW_CONTRACT,
    layout::REVIEW_COST,
    layout::PLAN,
    layout::SIGNATURE,
    layout::PATCH,
    layout::REVIEW_PATCH,
    layout::VERIFY_REPORT,
    layout::LANDING,
];

/// One artifact of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArtifactStatus {
    /// Its path in the run directory.
    pub path: &'static str,
    /// Its digest; absent while it is not there.
    pub digest: Option<Digest>,
}

/// Where a run stands.
#[derive(Debug, Clone, Serialize)]
pub struct RunStatus {
    /// `crucible-run-status-v1`.
    pub schema_version: &'static str,
    /// What the run was started with.
    pub run: RunRecord,
    /// Its directory.
    pub directory: std::path::PathBuf,
    /// Its state.
    pub state: RunState,
    /// Its artifacts.
    pub artifacts: Vec<ArtifactStatus>,
    /// Its attempts so far.
    pub attempts: Vec<AttemptOutcome>,
    /// Why it failed, if it did.
    pub failure: Option<Finding>,
    /// What to do next, one sentence.
    pub next: String,
}

/// Reads where a run stands.
///
/// # Errors
///
/// Fails when a file of the run cannot be read or understood.
pub fn status(dir: &RunDir) -> Result<RunStatus, RunError> {
    let run: RunRecord = dir.read_json(layout::RUN)?;
    let state = progress(dir)?.state();
    let mut artifacts = Vec::new();
    for path in LISTED {
        artifacts
            .push(ArtifactStatus { path, digest: dir.read_if_there(path)?.map(|bytes| Digest::of(&bytes)) });
    }
    let failure = if dir.has(layout::FAILURE) { Some(dir.read_json(layout::FAILURE)?) } else { None };
    let next = next(&run, state);
    Ok(RunStatus {
        schema_version: "crucible-run-status-v1",
        directory: dir.root().to_owned(),
        state,
        artifacts,
        attempts: attempt::ended(dir)?,
        failure,
        next,
        run,
    })
}

/// How often a run asked its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ModelUsage {
    /// Questions that were put, whether or not an answer came.
    pub asked: u64,
    /// Answers that were used up: their attempt has ended. An answer that was recorded later than these is used again
    /// when a run goes on, instead of asking for it once more.
    pub answered: u64,
}

/// Counts the questions and answers of a run from its files.
///
/// # Errors
///
/// Fails when the events cannot be read.
pub fn usage(dir: &RunDir) -> Result<ModelUsage, RunError> {
    let events = dir.read_if_there(layout::EVENTS)?.unwrap_or_default();
    let events = String::from_utf8_lossy(&events);
    let count = |names: &[&str]| {
        let named = |line: &str| names.iter().any(|name| line.contains(&format!("\"event\":\"{name}\"")));
        events.lines().filter(|line| named(line)).count() as u64
    };
    let (asked, answered) = (count(&["MODEL_ASKED"]), count(&["PATCH_REJECTED", "ATTEMPT_ENDED"]));
    Ok(ModelUsage { asked, answered })
}

/// What a run's files say of its progress.
pub(crate) fn progress(dir: &RunDir) -> Result<Progress, RunError> {
    let digest = |path: &str| Ok::<_, RunError>(dir.read_if_there(path)?.map(|bytes| Digest::of(&bytes)));
    let review = |path: &str| -> Result<Option<(ReviewVerdict, Digest)>, RunError> {
        let Some(bytes) = dir.read_if_there(path)? else {
            return Ok(None);
        };
        Ok(Review::parse_verdict(&String::from_utf8_lossy(&bytes)).ok())
    };
    let draft = digest(layout::PLAN_DRAFT)?;
    let reviews = [review(layout::REVIEW_CONTRACT)?, review(layout::REVIEW_COST)?];
    let of_draft = |verdict: ReviewVerdict| move |review: &Option<(ReviewVerdict, Digest)>| matches!((review, draft), (Some((said, subject)), Some(draft)) if *said == verdict && *subject == draft);
    let blocked = reviews.iter().any(of_draft(ReviewVerdict::Block));
    let approved = reviews.iter().all(of_draft(ReviewVerdict::Approve));
    let plan = digest(layout::PLAN)?;
    let signed = match plan {
        Some(plan) if dir.has(layout::SIGNATURE) => signature_holds(dir, plan)?,
        _ => false,
    };
    let patch = digest(layout::PATCH)?;
    let patched = match (review(layout::REVIEW_PATCH)?, patch) {
        (Some((ReviewVerdict::Approve, subject)), Some(patch)) => subject == patch,
        _ => false,
    };
    let verified = attempt::ended(dir)?
        .last()
        .is_some_and(|last| last.end == AttemptEnd::Verified && last.patch.is_some() && last.patch == patch);
    Ok(Progress {
        analysed: dir.has(layout::ANALYSIS),
        context: dir.has(layout::CONTEXT_PACK),
        planned: draft.is_some(),
        reviewed: approved || blocked,
        blocked,
        signed,
        patched,
        verified,
        landed: dir.has(layout::LANDING),
        failed: dir.has(layout::FAILURE),
    })
}

/// Whether the signature covers the plan and the reviews as they are.
fn signature_holds(dir: &RunDir, plan: Digest) -> Result<bool, RunError> {
    let signature: Signature = dir.read_json(layout::SIGNATURE)?;
    let mut now = BTreeMap::new();
    for path in signature.reviews.keys() {
        // A signature names files of this run only.
        if ![layout::REVIEW_CONTRACT, layout::REVIEW_COST].contains(&path.as_str()) {
            return Ok(false);
        }
        if let Some(bytes) = dir.read_if_there(path)? {
            now.insert(path.clone(), Digest::of(&bytes));
        }
    }
    Ok(signature.plan == plan && signature.reviews == now && now.len() == 2)
}

fn next(run: &RunRecord, state: RunState) -> String {
    let id = &run.run_id;
    match state {
        RunState::New
        | RunState::Analysed
        | RunState::Context
        | RunState::Planned
        | RunState::Reviewed
        | RunState::Signed
        | RunState::Patched => format!("Continue with `crucible run advance {id}`."),
        RunState::Verified => format!("Commit the change with `crucible run land {id}`."),
        RunState::Landed => "Nothing is left to do.".to_owned(),
        RunState::Blocked => {
            "A reviewer blocks the plan: read reviews/, mend the cause, and start a new run.".to_owned()
        }
        RunState::Failed => format!("Look into it with `crucible run bundle {id}`, then start a new run."),
    }
}
