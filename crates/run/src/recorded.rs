//! What the events of a run have recorded: its files, and how far it has come.

use std::collections::BTreeMap;

use crucible_ledger::EventRecord;
use crucible_model::Digest;
use serde_json::Value;

use crate::error::RunError;
use crate::event_kind::EventKind;
use crate::layout::{self, RunDir};
use crate::state::RunState;

/// The event field with digests, by path, of further files made with the recorded one. Their bytes are not
/// put into the ledger.
pub(crate) const FILES: &str = "files";

/// Files that are created again after a permission.
const ANEW: [&str; 10] = [
    layout::FILE_REQUEST,
    layout::CONTEXT_PACK,
    layout::PLAN_DRAFT,
    layout::REVIEW_CONTRACT,
    layout::REVIEW_COST,
    layout::SECOND_REVIEW_CONTRACT,
    layout::SECOND_REVIEW_COST,
    layout::PLAN,
    layout::SIGNATURE,
    layout::FAILURE,
];

/// The digest of each recorded file as it was last recorded, by its path in the run directory.
pub(crate) fn recorded_files(events: &[EventRecord]) -> BTreeMap<&str, &str> {
    let mut recorded = BTreeMap::new();
    for event in events {
        if is_allowance(event) {
            // From here on they are created again, and their earlier content is void.
            recorded.retain(|path, _| !ANEW.contains(path));
        }
        let digest = event.body.get("digest").and_then(Value::as_str);
        if let (Some(path), Some(digest)) = (event.path.as_deref(), digest) {
            recorded.insert(path, digest);
        }
        let with_it = event
            .body
            .get(FILES)
            .and_then(Value::as_object)
            .into_iter()
            .flatten();
        recorded
            .extend(with_it.filter_map(|(path, digest)| Some((path.as_str(), digest.as_str()?))));
    }
    recorded
}

/// Returns whether an event records a permission.
pub(crate) fn is_allowance(event: &EventRecord) -> bool {
    event.event == EventKind::ScopeAllowed.name()
}

/// Returns the state of a run by its events alone; `None` without events.
pub(crate) fn state_of_events(events: &[EventRecord]) -> Option<RunState> {
    let state = |event: &EventRecord| match EventKind::parse(&event.event) {
        Some(EventKind::RepositoryAnalysed) => RunState::Analysed,
        Some(EventKind::ContextPacked) => RunState::Context,
        Some(EventKind::PlanDrafted) => RunState::Planned,
        Some(EventKind::CostReviewed) => RunState::Reviewed,
        Some(EventKind::PlanSigned) => RunState::Signed,
        Some(EventKind::PatchAccepted) => RunState::Patched,
        Some(EventKind::VerifyPassed) => RunState::Verified,
        Some(EventKind::Landed) => RunState::Landed,
        Some(EventKind::RunFailed) => RunState::Failed,
        Some(EventKind::RunDeclined) => RunState::Declined,
        Some(_) | None => RunState::New,
    };
    // A failed run continues after a later permission.
    let since = events.iter().rposition(is_allowance).unwrap_or(0);
    let is_over = |(at, event): &(usize, &EventRecord)| {
        *at < since && event.event == EventKind::RunFailed.name()
    };
    events
        .iter()
        .enumerate()
        .filter(|event| !is_over(event))
        .map(|(_, event)| state(event))
        .max()
}

/// Returns whether the file of a step exists and matches the ledger.
pub(crate) fn is_recorded(
    dir: &RunDir,
    events: &[EventRecord],
    key: &str,
    path: &str,
) -> Result<bool, RunError> {
    let Some(event) = events
        .iter()
        .find(|event| event.key.as_deref() == Some(key))
    else {
        return Ok(false);
    };
    let recorded = event.body.get("digest").and_then(Value::as_str);
    let present = dir
        .read_if_there(path)?
        .map(|bytes| Digest::compute(&bytes).to_string());
    Ok(recorded.is_some() && recorded == present.as_deref())
}
