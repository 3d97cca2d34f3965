//! Applying the fixup that waits, and the receipt of it.
//!
//! What always holds: the receipt of an applied fixup names the same artifacts as the one that proposed it, with the files as they
//! were and as they are. A fixup that cannot be applied leaves no receipt: nothing has changed, and it still waits. Killed between
//! the files and the receipt, the next call finds every file as it is to be and writes the receipt.

use crucible_ledger::Ledger;
use crucible_model::{Clock, ExitStatus};
use crucible_patch::Policy;
use crucible_repo::LinkPolicy;

use super::receipt::{Written, entry, fixup_warning, receipt};
use crate::error::SpecError;
use crate::fixup::{AppliedFixup, FIXUP_DIFF, apply_fixup, pending_fixup};
use crate::phase_id::PhaseId;
use crate::project::SpecProject;
use crate::receipt::{FixupReceipt, FixupStage, PhaseEntry, PhaseStatus, ReceiptId, SpecReceipt};
use crate::store::{PhaseOutput, SpecLock};
use crate::surface::{Standing, standing};

/// What a fixup may touch when it is applied.
#[derive(Debug, Clone)]
pub struct FixupChoice {
    /// The policy of this command.
    pub policy: Policy,
    /// Whether links inside the project are followed.
    pub links: LinkPolicy,
}

/// Applies the fixup that waits, where one does and is made from what is there now, and writes the receipt. Nothing where none waits.
///
/// # Errors
///
/// As [`apply_fixup`]; no file is changed then.
pub fn apply_pending(
    lock: &SpecLock,
    project: &SpecProject,
    choice: &FixupChoice,
    clock: &dyn Clock,
    ledger: &mut Ledger,
) -> Result<Option<(AppliedFixup, SpecReceipt)>, SpecError> {
    let store = lock.store();
    let state = store.state(None)?;
    let known = state.phase(PhaseId::Fixup).filter(|known| standing(&state, known) == Standing::Success);
    let proposed = known.and_then(|known| known.newest_real.as_ref()?.phase(PhaseId::Fixup.as_str()));
    let (Some(proposed), Some(pending)) = (proposed, pending_fixup(&state, store)?) else {
        return Ok(None);
    };
    let artifact = format!("artifacts/{}", PhaseId::Fixup.artifact());
    let Some(report) = store.read(&artifact)? else {
        return Ok(None);
    };
    let started = clock.now();
    let id = ReceiptId::new(PhaseId::Fixup, started, lock.next_sequence()?);
    let applied = apply_fixup(project, store, &pending, &choice.policy, choice.links)?;
    let is_artifact = |path: &str| !path.starts_with("project/");
    let done = PhaseEntry {
        status: PhaseStatus::Success,
        // The project's files are other ones now.
        inputs: proposed.inputs.iter().filter(|input| is_artifact(&input.path)).cloned().collect(),
        warnings: applied.verdict.findings().iter().map(fixup_warning).collect(),
        fixups: Some(FixupReceipt {
            stage: FixupStage::Applied,
            patch: proposed.fixups.as_ref().and_then(|fixup| fixup.patch.clone()),
            files: applied.files.clone(),
        }),
        ..entry(PhaseId::Fixup, started)
    };
    let outputs = vec![
        PhaseOutput { path: artifact, bytes: report },
        PhaseOutput { path: FIXUP_DIFF.to_owned(), bytes: pending.diff },
    ];
    let written = Written { at: clock.now(), clock: clock.source() };
    let told = receipt(store.spec(), &id, done, ExitStatus::Success, written);
    let promoted = lock.promote(told, outputs, ledger)?;
    Ok(Some((applied, promoted)))
}
