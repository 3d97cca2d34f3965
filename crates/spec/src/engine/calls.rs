//! Where the calls of a try are recorded: `context/<phase>.calls.jsonl` while it is under way, `context/<receipt id>.calls.jsonl` once its
//! answers are used up.
//!
//! What lies under the first name was asked and not used: the next try of the phase with the same question takes the answer from
//! there and asks nobody.

use std::path::{Path, PathBuf};

use crucible_host::fs;

use super::failure::answers_are_spent;
use crate::error::SpecError;
use crate::phase_id::PhaseId;
use crate::receipt::{PhaseEntry, PhaseStatus};
use crate::state::SpecState;
use crate::store::SpecLock;

/// The file of these calls in `context/`.
pub(super) fn calls_of(lock: &SpecLock, name: &str) -> PathBuf {
    lock.store().dir().join("context").join(format!("{name}.calls.jsonl"))
}

/// The file of the calls of a try that is under way.
pub(super) fn calls_under_way(lock: &SpecLock, phase: PhaseId) -> PathBuf {
    calls_of(lock, phase.as_str())
}

/// Puts calls away that the newest receipt of the phase has used up: whoever wrote it was killed before it could.
pub(super) fn put_spent_calls_away(
    lock: &SpecLock,
    state: &SpecState,
    phase: PhaseId,
    calls: &Path,
) -> Result<(), SpecError> {
    let Some(newest) = state.phase(phase).and_then(|known| known.newest_real.as_ref()) else {
        return Ok(());
    };
    let to = calls_of(lock, &newest.receipt_id);
    if newest.phase(phase.as_str()).is_some_and(has_spent) && calls.is_file() && !to.exists() {
        fs::rename(calls, &to)?;
    }
    Ok(())
}

/// Whether this try was answered and has used the answers up.
fn has_spent(entry: &PhaseEntry) -> bool {
    let ended = match entry.status {
        PhaseStatus::Success => true,
        PhaseStatus::DryRun => false,
        PhaseStatus::Failed => entry.error.as_ref().is_some_and(|error| answers_are_spent(&error.class)),
    };
    ended && entry.llm.is_some()
}
