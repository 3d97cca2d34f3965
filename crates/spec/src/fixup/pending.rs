//! Finds the pending fixup by its receipt.

use crucible_model::Digest;

use super::{FIXUP_DIFF, PendingFixup};
use crate::error::SpecError;
use crate::phase_id::PhaseId;
use crate::receipt::{FixupStage, PhaseStatus};
use crate::state::SpecState;
use crate::store::SpecStore;

/// The pending fixup: the one of the phase's newest real success, if it proposes one. A later failed run leaves it pending; a
/// later application does not.
///
/// # Errors
///
/// [`SpecError::FixupBlocked`] if the diff does not match its receipt.
pub(crate) fn pending_fixup(
    state: &SpecState,
    store: &SpecStore,
) -> Result<Option<PendingFixup>, SpecError> {
    let Some(receipt) = state
        .phase(PhaseId::Fixup)
        .and_then(|phase| phase.last_success.as_ref())
    else {
        return Ok(None);
    };
    let phase = receipt
        .phase(PhaseId::Fixup.as_str())
        .filter(|phase| phase.status == PhaseStatus::Success);
    let fixup = phase.and_then(|phase| phase.fixups.as_ref());
    let Some(fixup) = fixup.filter(|fixup| fixup.stage == FixupStage::Pending && !receipt.dry_run)
    else {
        return Ok(None);
    };
    let blocked = |what: &str| {
        let second_text = format!(
            "run `crucible resume {} --phase fixup` for a new one",
            state.spec
        );
        SpecError::FixupBlocked {
            why: format!("{FIXUP_DIFF} {what}; {second_text}"),
        }
    };
    let Some(patch) = fixup
        .patch
        .as_ref()
        .filter(|patch| patch.path == FIXUP_DIFF)
    else {
        return Err(blocked("is not named by its receipt"));
    };
    let Some(diff) = store.read(FIXUP_DIFF)? else {
        return Err(blocked("is gone"));
    };
    if Digest::compute(&diff) != patch.sha256 {
        return Err(blocked("was changed after its receipt was written"));
    }
    let receipt_id = receipt.receipt_id.clone();
    Ok(Some(PendingFixup {
        receipt_id,
        diff,
        files: fixup.files.clone(),
    }))
}
