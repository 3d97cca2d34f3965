//! Applies the pending fixup, and writes its receipt.
//!
//! [`waiting_fixup`] finds a fixup that was proposed before this command began. Only such a fixup is
//! applied, so that a person could review it first. [`FixupRun`] is the application: hooks before it,
//! [`FixupRun::apply`], hooks after it, and one of its ends.
//!
//! Invariants: the receipt of an applied fixup names the same artifacts as the proposing one, and the
//! files before and after. A fixup that cannot be applied leaves no receipt; nothing has changed, and it
//! is still pending. If a hook fails, the receipt records a failure and whether the files were changed,
//! as does every later failure until a success. Applying the fixup again finds every file in its new
//! state. The same is true after a process was killed between changing the files and writing the receipt.

use crucible_ledger::Ledger;
use crucible_model::{Clock, Digest, ExitStatus};

use super::failure::failure;
use super::receipt::{Written, add_hooks, bounded, fixup_warning, receipt};
use crate::error::SpecError;
use crate::fixup::{
    AppliedFixup, FIXUP_DIFF, FixupChoice, PendingFixup, apply_fixup, pending_fixup,
};
use crate::hook::HookConsequence;
use crate::json_output::{PhaseCondition, applied_fixups, standing};
use crate::phase_id::PhaseId;
use crate::project::SpecProject;
use crate::receipt::{
    FileRecord, FixupReceipt, FixupStage, HookReceipt, PhaseEntry, PhaseStatus, ReceiptId,
};
use crate::state::{FileState, TrackedRecord};
use crate::store::{PhaseOutput, Promotion, SpecLock};

/// Whether a fixup is pending.
pub(crate) enum WaitingFixup<'a> {
    /// One is pending and matches the current files.
    Ready(Box<FixupRun<'a>>),
    /// None is pending: the proposal was applied, or it was empty.
    Settled,
    /// No pending fixup matches the current files: the phase has to run.
    Missing,
}

/// A running application of a fixup.
pub(crate) struct FixupRun<'a> {
    lock: &'a SpecLock,
    clock: &'a dyn Clock,
    id: ReceiptId,
    pending: PendingFixup,
    report: Vec<u8>,
    patch: Option<FileRecord>,
    pub(super) entry: PhaseEntry,
}

/// Looks for a pending fixup. A receipt that contradicts the ledger is ignored.
///
/// # Errors
///
/// [`SpecError::FixupBlocked`] if the diff does not match its receipt.
pub(crate) fn waiting_fixup<'a>(
    lock: &'a SpecLock,
    clock: &'a dyn Clock,
    ledger: &Ledger,
) -> Result<WaitingFixup<'a>, SpecError> {
    let store = lock.store();
    let state = store.state(Some(ledger))?;
    let Some(known) = state.phase(PhaseId::Fixup) else {
        return Ok(WaitingFixup::Missing);
    };
    let phase_condition = standing(&state, known);
    // A later failed run does not invalidate a proposal.
    if !matches!(
        phase_condition,
        PhaseCondition::Success | PhaseCondition::Failed | PhaseCondition::Changed
    ) {
        return Ok(WaitingFixup::Missing);
    }
    let is_there = |files: &[TrackedRecord]| files.iter().all(|file| file.found == FileState::Same);
    let proposed = known
        .last_success
        .as_ref()
        .and_then(|success| success.phase(PhaseId::Fixup.as_str()));
    let Some(proposed) = proposed.filter(|_| is_there(&known.inputs)) else {
        return Ok(WaitingFixup::Missing);
    };
    let pending = pending_fixup(&state, store)?;
    let report = store
        .read(&artifact())?
        .filter(|_| is_there(&known.outputs));
    let (pending, report) = match (pending, report) {
        (Some(pending), Some(report)) => (pending, report),
        (None, Some(_)) if phase_condition == PhaseCondition::Success => {
            return Ok(WaitingFixup::Settled);
        }
        _ => return Ok(WaitingFixup::Missing),
    };
    let started = clock.now();
    let is_artifact = |path: &str| !path.starts_with("project/");
    let entry = PhaseEntry {
        // If an earlier application changed the files and then failed, they stay changed, whatever the
        // result of this one.
        fixups: applied_fixups(&state).cloned(),
        // The project's files are different afterwards.
        inputs: proposed
            .inputs
            .iter()
            .filter(|input| is_artifact(&input.path))
            .cloned()
            .collect(),
        ..PhaseEntry::begun(PhaseId::Fixup, started)
    };
    let patch = proposed
        .fixups
        .as_ref()
        .and_then(|fixup| fixup.patch.clone());
    let id = ReceiptId::new(PhaseId::Fixup, started, lock.next_sequence()?);
    Ok(WaitingFixup::Ready(Box::new(FixupRun {
        lock,
        clock,
        id,
        pending,
        report,
        patch,
        entry,
    })))
}

impl FixupRun<'_> {
    /// The id of the receipt that this run will write.
    #[must_use]
    pub(crate) fn id(&self) -> &ReceiptId {
        &self.id
    }

    /// The document that proposes it.
    #[must_use]
    pub(crate) fn artifact(&self) -> FileRecord {
        let bytes = self.report.len() as u64;
        FileRecord {
            path: artifact(),
            sha256: Digest::compute(&self.report),
            bytes,
        }
    }

    /// Records hooks that ran.
    ///
    /// # Errors
    ///
    /// The error of a failed hook that is set to `fail`.
    pub(crate) fn hooked(
        &mut self,
        hooks: Vec<HookReceipt>,
        consequence: HookConsequence,
    ) -> Result<(), SpecError> {
        add_hooks(&mut self.entry, hooks, consequence)
    }

    /// Changes the project's files.
    ///
    /// # Errors
    ///
    /// As [`apply_fixup`]; then no file is changed.
    pub(crate) fn apply(
        &mut self,
        project: &SpecProject,
        choice: &FixupChoice,
    ) -> Result<AppliedFixup, SpecError> {
        let applied = apply_fixup(project, self.lock, &self.pending, choice)?;
        self.entry
            .warnings
            .extend(applied.verdict.findings().iter().map(fixup_warning));
        self.entry.fixups = Some(FixupReceipt {
            stage: FixupStage::Applied,
            patch: self.patch.clone(),
            files: applied.files.clone(),
        });
        Ok(applied)
    }

    /// Ends with a success.
    ///
    /// # Errors
    ///
    /// As [`SpecLock::promote`].
    pub(crate) fn succeed(&self, ledger: &mut Ledger) -> Result<Promotion, SpecError> {
        let outputs = vec![
            PhaseOutput {
                path: artifact(),
                bytes: self.report.clone(),
            },
            PhaseOutput {
                path: FIXUP_DIFF.to_owned(),
                bytes: self.pending.diff.clone(),
            },
        ];
        let entry = PhaseEntry {
            status: PhaseStatus::Success,
            ..self.entry.clone()
        };
        self.promote(entry, ExitStatus::Success, outputs, ledger)
    }

    /// Ends with a failure of this class (see [`failure_class`](crate::failure_class)) and this exit code. The receipt records
    /// whether the files were changed before.
    ///
    /// # Errors
    ///
    /// As [`SpecLock::promote`].
    pub(crate) fn fail(
        &self,
        class: &str,
        message: &str,
        exit: ExitStatus,
        ledger: &mut Ledger,
    ) -> Result<Promotion, SpecError> {
        let entry = PhaseEntry {
            status: PhaseStatus::Failed,
            error: Some(failure(class, message)),
            ..self.entry.clone()
        };
        self.promote(entry, exit, Vec::new(), ledger)
    }

    fn promote(
        &self,
        entry: PhaseEntry,
        exit: ExitStatus,
        outputs: Vec<PhaseOutput>,
        ledger: &mut Ledger,
    ) -> Result<Promotion, SpecError> {
        let written = Written {
            at: self.clock.now(),
            clock: self.clock.source(),
        };
        let new_receipt = receipt(
            self.lock.store().spec(),
            &self.id,
            bounded(entry, 0),
            exit,
            written,
        );
        self.lock.promote(new_receipt, outputs, ledger)
    }
}

/// The document of the phase.
fn artifact() -> String {
    format!("artifacts/{}", PhaseId::Fixup.artifact())
}
