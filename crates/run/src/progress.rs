//! How far a run has come, by its files and events, and what it waits for.

use std::collections::BTreeMap;

use crucible_ledger::EventRecord;
use crucible_model::Digest;
use serde::Serialize;
use serde_json::Value;

use crate::allow::Permissions;
use crate::attempt::{self, AttemptEnd};
use crate::contract::{Review, ReviewVerdict, Signature};
use crate::error::RunError;
use crate::event_kind::{DECLINED, EventKind, answered_key, prompted_step};
use crate::layout::{self, RunDir};
use crate::recorded::is_recorded;
use crate::state::Progress;

/// The event key of the signature.
pub(crate) const SIGNED: &str = "signature";

/// What the run waits for, and from whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PendingRequest {
    /// The role that owes it.
    pub role: String,
    /// What is asked.
    pub action: String,
    /// Where the answer is to be written, in the run directory.
    pub target: String,
    /// The prompt, in the run directory.
    pub prompt: String,
}

/// What a run's files and the ledger's events say of its progress.
pub(crate) fn progress(dir: &RunDir, events: &[EventRecord]) -> Result<Progress, RunError> {
    let digest = |path: &str| {
        Ok::<_, RunError>(
            dir.read_if_there(path)?
                .map(|bytes| Digest::compute(&bytes)),
        )
    };
    let review = |path: &str| -> Result<Option<(ReviewVerdict, Digest)>, RunError> {
        let Some(bytes) = dir.read_if_there(path)? else {
            return Ok(None);
        };
        Ok(Review::parse_verdict(&String::from_utf8_lossy(&bytes)).ok())
    };
    let allowances = Permissions::from_events(events);
    let draft = digest(layout::PLAN_DRAFT)?;
    let reviews = [
        review(layout::REVIEW_CONTRACT)?,
        review(layout::REVIEW_COST)?,
    ];
    let seconds = [
        review(layout::SECOND_REVIEW_CONTRACT)?,
        review(layout::SECOND_REVIEW_COST)?,
    ];
    let of_draft = |verdict: ReviewVerdict| move |review: &Option<(ReviewVerdict, Digest)>| matches!((review, draft), (Some((said, subject)), Some(draft)) if *said == verdict && *subject == draft);
    let blocked = reviews
        .iter()
        .chain(&seconds)
        .any(of_draft(ReviewVerdict::Block));
    let approved = reviews.iter().all(of_draft(ReviewVerdict::Approve));
    let plan = digest(layout::PLAN)?;
    let signed = match plan {
        Some(plan) if dir.has(layout::SIGNATURE) => match is_signature_valid(dir, plan) {
            // Without an event it may be partial; it is created again.
            Err(RunError::Malformed { .. }) if !has_event(events, &allowances.key(SIGNED)) => false,
            holds => holds?,
        },
        _ => false,
    };
    let patch = digest(layout::PATCH)?;
    let patched = match (review(layout::REVIEW_PATCH)?, patch) {
        (Some((ReviewVerdict::Approve, subject)), Some(patch)) => subject == patch,
        _ => false,
    };
    let ended = attempt::recorded_outcomes(dir, events)?;
    let verified = match ended.last() {
        // If another outcome follows, this attempt is not the last one.
        Some(last) if last.number < attempt::count_outcomes(dir) => false,
        Some(last)
            if last.end == AttemptEnd::Verified && last.patch.is_some() && last.patch == patch =>
        {
            attempt::is_fully_recorded(dir, events, last.number)?
        }
        _ => false,
    };
    Ok(Progress {
        analysed: dir.has(layout::ANALYSIS),
        context: dir.has(layout::CONTEXT_PACK),
        planned: draft.is_some(),
        reviewed: approved || blocked,
        blocked,
        waiting: pending_request(events).is_some(),
        signed,
        patched,
        verified,
        landed: is_recorded(dir, events, "landed", layout::LANDING)?,
        failed: is_recorded(dir, events, &allowances.key("failed"), layout::FAILURE)?,
        declined: is_recorded(dir, events, DECLINED, layout::FAILURE)?,
    })
}

fn has_event(events: &[EventRecord], key: &str) -> bool {
    events.iter().any(|event| event.key.as_deref() == Some(key))
}

/// Whether the signature covers the plan and the reviews as they are.
pub(crate) fn is_signature_valid(dir: &RunDir, plan: Digest) -> Result<bool, RunError> {
    let signature: Signature = dir.read_document(layout::SIGNATURE)?;
    let mut now = BTreeMap::new();
    for path in signature.reviews.keys() {
        // A signature names files of this run only.
        if !layout::REVIEWS.contains(&path.as_str()) {
            return Ok(false);
        }
        if let Some(bytes) = dir.read_if_there(path)? {
            now.insert(path.clone(), Digest::compute(&bytes));
        }
    }
    let local = [layout::REVIEW_CONTRACT, layout::REVIEW_COST]
        .iter()
        .all(|path| now.contains_key(*path));
    Ok(signature.plan == plan && signature.reviews == now && local)
}

/// What a person owes: the newest prompt that has no answer.
pub(crate) fn pending_request(events: &[EventRecord]) -> Option<PendingRequest> {
    let prompted = events
        .iter()
        .rfind(|event| event.event == EventKind::OutboxPrompted.name())?;
    let answer = answered_key(prompted_step(prompted.key.as_deref()?)?);
    if events
        .iter()
        .any(|event| event.key.as_deref() == Some(answer.as_str()))
    {
        return None;
    }
    let text = |field: &str| {
        prompted
            .body
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    Some(PendingRequest {
        role: prompted.role.clone(),
        action: text("action"),
        target: text("target"),
        prompt: prompted.path.clone().unwrap_or_default(),
    })
}
