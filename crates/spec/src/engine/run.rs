//! One attempt of one phase, from its first check to its receipt.
//!
//! [`PhaseRun`] outlives the work: the future that calls a model only borrows it, so if that future is
//! dropped by an interrupt, everything for the receipt is still there. The steps are [`PhaseRun::begin`],
//! [`PhaseRun::gather`], [`PhaseRun::ask`] (in `ask`), and one of the ends: [`PhaseRun::succeed`],
//! [`PhaseRun::tried_dry`], [`PhaseRun::fail`].
//!
//! Invariants: an end writes exactly one receipt; until then only `context/` of the spec has changed.
//! Answers are recorded before they are used, so a killed attempt is not paid for twice. Manual edits of
//! an artifact are kept before it is replaced.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crucible_host::fs;
use crucible_ledger::Ledger;
use crucible_llm::{
    CallError, CallObserver, CassetteHeader, CassetteWriter, ReceiptWarning, Recording, Reuse,
};
use crucible_model::{Clock, Digest, EditFormat, ExitStatus};

use super::calls::{
    DRAFT, LeftCalls, calls_under_way, clear_drafts, has_spent, is_unused, left_calls, put_away,
    take_over,
};
use super::failure::failure;
use super::material::packet;
use super::phase_order::{check_transition, definition, stale_ground};
use super::receipt::{Written, add_hooks, bounded, receipt, record};
use super::tally::{AttemptCounter, Tally};
use crate::document::RequirementId;
use crate::error::SpecError;
use crate::fixup::{FixupChoice, recover_fixup};
use crate::hook::HookConsequence;
use crate::json_output::{LLM_REPLAYED, PhaseCondition, applied_fixups, standing};
use crate::packet::{EntryKind, Packet, PacketLimits, PacketManifest};
use crate::phase::PhaseDefinition;
use crate::phase_id::PhaseId;
use crate::receipt::{
    FileRecord, FixupReceipt, HookReceipt, PhaseEntry, PhaseStatus, ReceiptId, SpecReceipt,
};
use crate::source::{FileSelectors, Idea};
use crate::store::{PhaseOutput, PromotionEnd, SpecLock};

/// Whether an attempt counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trial {
    /// It counts.
    Real,
    /// It makes no model call, and gates ignore its receipt.
    Dry,
}

/// The task and the limits of an attempt.
#[derive(Debug, Clone)]
pub(crate) struct PhaseOrder {
    /// Which phase.
    pub phase: PhaseId,
    /// Whether it counts.
    pub trial: Trial,
    /// The limits of the packet.
    pub limits: PacketLimits,
    /// The most answers, at least 1: the first one and corrections.
    pub attempts: u64,
    /// The time limit of all calls together.
    pub phase_time: Duration,
    /// The time limit of one call.
    pub call_time: Duration,
    /// The model; empty selects the client's model for the phase.
    pub model: String,
    /// The edit format of a fixup.
    pub edit_format: EditFormat,
    /// What a fixup may change.
    pub fixups: FixupChoice,
    /// Warnings from before the attempt, such as the use of a fallback.
    pub warnings: Vec<ReceiptWarning>,
}

/// A running attempt of a phase.
pub(crate) struct PhaseRun<'a> {
    pub(super) lock: &'a SpecLock,
    clock: &'a dyn Clock,
    pub(super) order: PhaseOrder,
    pub(super) definition: &'static dyn PhaseDefinition,
    id: ReceiptId,
    pub(super) packet: Option<Packet>,
    /// For the phase `requirements`: the highest id assigned by its last success.
    pub(super) highest_requirement: u32,
    /// For the phase `requirements`: whether there was a success.
    has_written: bool,
    pub(super) entry: PhaseEntry,
    pub(super) tally: Tally,
    pub(super) outputs: Vec<PhaseOutput>,
    calls: PathBuf,
    left: Vec<LeftCalls>,
    /// The number of findings that exceed the limit of the receipt.
    pub(super) untold: u64,
    /// Attempts that were started, and those whose calls have ended.
    pub(super) begun: Arc<AtomicU64>,
    pub(super) settled: u64,
    unfinished: Vec<String>,
    /// For the phase `fixup`: the changes of an application that failed afterwards.
    applied: Option<FixupReceipt>,
}

impl<'a> PhaseRun<'a> {
    /// Begins an attempt of a phase under the spec's lock. It first completes or rolls back a fixup application of a killed process, and
    /// deletes leftover drafts. A receipt that contradicts the ledger is ignored.
    ///
    /// # Errors
    ///
    /// [`SpecError::Transition`] if the phase may not run now; file system errors. Nothing is written in these cases.
    pub(crate) fn begin(
        lock: &'a SpecLock,
        clock: &'a dyn Clock,
        order: PhaseOrder,
        ledger: &Ledger,
    ) -> Result<Self, SpecError> {
        lock.settle()?;
        recover_fixup(lock.store().project(), lock)?;
        clear_drafts(lock)?;
        let state = lock.store().state(Some(ledger))?;
        check_transition(&state, order.phase)?;
        let Some(definition) = definition(order.phase) else {
            let why = "it has no definition".to_owned();
            let spec = lock.store().spec().clone();
            return Err(SpecError::Transition {
                spec,
                phase: order.phase,
                why,
                valid: Vec::new(),
            });
        };
        let started = clock.now();
        let id = ReceiptId::new(order.phase, started, lock.next_sequence()?);
        let mut entry = PhaseEntry::begun(order.phase, started);
        entry.warnings.extend(order.warnings.iter().cloned());
        entry.warnings.extend(stale_ground(&state, order.phase));
        let known = state
            .phase(order.phase)
            .filter(|known| known.phase == PhaseId::Requirements);
        let last = known.and_then(|known| known.last_success.as_ref());
        let last = last.and_then(|receipt| receipt.phase(order.phase.as_str()));
        let calls = calls_under_way(lock, &id)?;
        let left = left_calls(lock, &state, order.phase)?;
        // If a success mentions the application, that success stays the last one.
        let is_failed = state
            .phase(order.phase)
            .is_some_and(|known| standing(&state, known) == PhaseCondition::Failed);
        let applied = applied_fixups(&state)
            .filter(|_| order.phase == PhaseId::Fixup && is_failed)
            .cloned();
        Ok(Self {
            lock,
            clock,
            order,
            definition,
            id,
            packet: None,
            highest_requirement: last
                .and_then(|entry| entry.highest_requirement)
                .unwrap_or_default(),
            has_written: last.is_some(),
            entry,
            tally: Tally::default(),
            outputs: Vec::new(),
            calls,
            left,
            untold: 0,
            begun: Arc::default(),
            settled: 0,
            unfinished: Vec::new(),
            applied,
        })
    }

    /// The id of the receipt that this attempt will write.
    #[must_use]
    pub(crate) fn id(&self) -> &ReceiptId {
        &self.id
    }

    #[must_use]
    pub(crate) fn phase(&self) -> PhaseId {
        self.order.phase
    }

    /// The recording of this attempt's calls: in Crucible's own directory until the answers are used,
    /// then in the spec's directory.
    #[must_use]
    pub(crate) fn calls(&self) -> &Path {
        &self.calls
    }

    /// Opens the recording for the client of this attempt. Unused answers of earlier attempts are served from it.
    ///
    /// # Errors
    ///
    /// Fails if the recording cannot be written. An unreadable one is renamed, with a warning.
    pub(crate) fn recording(&mut self, header: &CassetteHeader) -> Result<Recording, SpecError> {
        let open =
            |reuse| CassetteWriter::open(&self.calls, header, reuse).map_err(CallError::from);
        let (writer, unreadable) = self.lock.in_turn(|_| {
            if let Some(directory) = self.calls.parent() {
                fs::create_dir_all(directory)?;
            }
            drop(open(Reuse::Nothing)?);
            let unreadable = take_over(&self.calls, header, &self.left)?;
            Ok((open(Reuse::After(0))?, unreadable))
        })?;
        self.left.clear();
        self.entry.warnings.extend(unreadable.into_iter().map(|name| ReceiptWarning {
            kind: "calls_unreadable".to_owned(),
            message: format!(
                "the recorded calls of an earlier attempt cannot be read, so they are made again; Crucible's \
                own directory keeps the recording as {name}"
            ),
        }));
        Ok(Recording::To(Arc::new(writer)))
    }

    /// Returns the observer that counts the attempts for the receipt, even if the work is interrupted;
    /// `shown` is notified as well.
    #[must_use]
    pub(crate) fn watch(&self, shown: Option<Arc<dyn CallObserver>>) -> Arc<dyn CallObserver> {
        Arc::new(AttemptCounter {
            count: Arc::clone(&self.begun),
            observer: shown,
        })
    }

    /// Cleanup that failed after the receipt was written. The next command repeats it.
    #[must_use]
    pub(crate) fn unfinished(&self) -> &[String] {
        &self.unfinished
    }

    /// The warnings so far.
    #[cfg(test)]
    pub(crate) fn warnings(&self) -> &[ReceiptWarning] {
        &self.entry.warnings
    }

    /// Adds a warning.
    pub(crate) fn warn(&mut self, warning: ReceiptWarning) {
        self.entry.warnings.push(warning);
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

    /// Builds the packet and writes its manifest to `context/`. The packet holds the given or stored idea for the first phase, the
    /// artifacts the phase depends on, its last document, and the project files it may see.
    ///
    /// # Errors
    ///
    /// [`SpecError::EmptyIdea`], and as [`gather_packet`](crate::gather_packet). A packet that is too large also leaves its manifest.
    pub(crate) fn gather(
        &mut self,
        idea: Option<&Idea>,
        selectors: FileSelectors,
    ) -> Result<&PacketManifest, SpecError> {
        let (store, limits) = (self.lock.store(), self.order.limits);
        let built = packet(
            store,
            self.definition,
            idea,
            selectors,
            limits,
            &mut self.entry.warnings,
        );
        if let Ok(Packet { manifest, .. }) = &built {
            self.keep_manifest(manifest)?;
        }
        if let Err(SpecError::PacketOverLimit { manifest }) = &built {
            self.keep_manifest(manifest)?;
        }
        let packet = built?;
        self.entry.inputs = packet.manifest.inputs();
        let goes_on = packet
            .entries
            .iter()
            .any(|entry| matches!(entry.kind, EntryKind::Previous(_)));
        if self.has_written && !goes_on {
            self.entry
                .warnings
                .push(begins_anew(self.highest_requirement));
        }
        self.entry.warnings.extend(
            packet
                .manifest
                .passed_over
                .iter()
                .map(|file| ReceiptWarning {
                    kind: "file_passed_over".to_owned(),
                    message: file.to_string(),
                }),
        );
        Ok(&self.packet.insert(packet).manifest)
    }

    fn keep_manifest(&mut self, manifest: &PacketManifest) -> Result<(), SpecError> {
        self.entry.packet = Some(manifest.receipt()?);
        self.lock
            .write_context(&format!("{}.packet.json", self.id), &manifest.to_json()?)
    }

    /// Writes the artifact to be promoted as a draft for hooks, and returns its path in the spec's directory and its digest. The draft
    /// stays in `context/` until the attempt ends.
    ///
    /// # Errors
    ///
    /// Fails if the draft cannot be written.
    pub(crate) fn draft(&self) -> Result<Option<FileRecord>, SpecError> {
        let Some(output) = self.outputs.first() else {
            return Ok(None);
        };
        let name = self.draft_name();
        self.lock.write_context(&name, &output.bytes)?;
        Ok(Some(FileRecord {
            path: format!("context/{name}"),
            ..record(output)
        }))
    }

    /// Ends with a success: the artifact and the receipt are promoted together.
    ///
    /// # Errors
    ///
    /// As [`SpecLock::promote`]. The attempt must then be ended by [`PhaseRun::fail`].
    pub(crate) fn succeed(&mut self, ledger: &mut Ledger) -> Result<SpecReceipt, SpecError> {
        self.keep_edited(ledger)?;
        let entry = PhaseEntry {
            status: PhaseStatus::Success,
            ..self.entry()
        };
        let promoted = self.promote(entry, ExitStatus::Success, self.outputs.clone(), ledger)?;
        self.put_calls();
        Ok(promoted)
    }

    /// Keeps manual edits of an artifact before it is replaced: any content that no trusted receipt
    /// records.
    fn keep_edited(&mut self, ledger: &Ledger) -> Result<(), SpecError> {
        let store = self.lock.store();
        let state = store.state(Some(ledger))?;
        let known = state.phase(self.order.phase);
        let newest = known
            .into_iter()
            .flat_map(|known| [&known.newest_real, &known.last_success])
            .flatten();
        let newest: Vec<SpecReceipt> = newest.cloned().collect();
        for new in &self.outputs {
            let path = new.path.as_str();
            let is_file = store
                .dir()
                .join(path)
                .symlink_metadata()
                .is_ok_and(|meta| meta.is_file());
            // A special file has no content to keep; the promotion reports the obstacle.
            let Some(bytes) = (if is_file { store.read(path)? } else { None }) else {
                continue;
            };
            // All receipts are read only if the newest ones do not record it, which is rare.
            if bytes == new.bytes
                || is_written(&newest, path, &bytes)
                || is_written(&store.history(Some(ledger))?.0, path, &bytes)
            {
                continue;
            }
            let name = format!(
                "{}.edited-{}",
                self.id,
                path.trim_start_matches("artifacts/")
            );
            self.lock.write_context(&name, &bytes)?;
            self.entry.warnings.push(ReceiptWarning {
                kind: "artifact_edited".to_owned(),
                message: format!(
                    "{path} did not match any receipt; its content is kept in context/{name}"
                ),
            });
        }
        Ok(())
    }

    /// Ends a dry run with a receipt that gates ignore.
    ///
    /// # Errors
    ///
    /// As [`SpecLock::promote`].
    pub(crate) fn tried_dry(&mut self, ledger: &mut Ledger) -> Result<SpecReceipt, SpecError> {
        let entry = PhaseEntry {
            status: PhaseStatus::DryRun,
            ..self.entry()
        };
        self.promote(entry, ExitStatus::Success, Vec::new(), ledger)
    }

    /// Ends with a failure of this class (see [`failure_class`](crate::failure_class)) and this exit code.
    ///
    /// # Errors
    ///
    /// As [`SpecLock::promote`].
    pub(crate) fn fail(
        &mut self,
        class: &str,
        message: &str,
        exit: ExitStatus,
        ledger: &mut Ledger,
    ) -> Result<SpecReceipt, SpecError> {
        let error = Some(failure(class, message));
        // A failed dry run does not change the state of the phase either.
        let status = match self.order.trial {
            Trial::Real => PhaseStatus::Failed,
            Trial::Dry => PhaseStatus::DryRun,
        };
        // Proposed files are promoted only with a success; applied changes stay applied.
        let fixups = self.applied.clone();
        let entry = PhaseEntry {
            status,
            error,
            fixups,
            ..self.entry()
        };
        // Answers from a recording cost nothing, and must not reappear as answers of a model.
        let is_replayed = entry
            .warnings
            .iter()
            .any(|warning| warning.kind == LLM_REPLAYED);
        let is_spent = has_spent(&entry) || is_replayed;
        let promoted = self.promote(entry, exit, Vec::new(), ledger)?;
        if is_spent || is_unused(&self.calls) {
            self.put_calls();
        }
        Ok(promoted)
    }

    fn entry(&self) -> PhaseEntry {
        // For an abandoned call only its attempts are known.
        let under_way = self
            .begun
            .load(Ordering::SeqCst)
            .saturating_sub(self.settled);
        let attempts = self.tally.attempts().saturating_add(under_way);
        let mut entry = PhaseEntry {
            llm: self.tally.receipt(),
            attempts,
            ..self.entry.clone()
        };
        entry.warnings.extend(
            entry
                .llm
                .as_ref()
                .and_then(ReceiptWarning::exhausted_budget),
        );
        bounded(entry, self.untold)
    }

    fn promote(
        &mut self,
        entry: PhaseEntry,
        exit: ExitStatus,
        outputs: Vec<PhaseOutput>,
        ledger: &mut Ledger,
    ) -> Result<SpecReceipt, SpecError> {
        let written = Written {
            at: self.clock.now(),
            clock: self.clock.source(),
        };
        let receipt = receipt(self.lock.store().spec(), &self.id, entry, exit, written);
        let promoted = self.lock.promote(receipt, outputs, ledger);
        let draft = self
            .lock
            .store()
            .dir()
            .join("context")
            .join(self.draft_name());
        let cleared = match draft.symlink_metadata() {
            Ok(_) => self.lock.in_turn(|_| Ok(fs::remove_file(&draft)?)),
            Err(_) => Ok(()),
        };
        let promoted = promoted?;
        if let Err(error) = cleared {
            self.unfinished
                .push(format!("cannot delete a draft: {error}"));
        }
        if let PromotionEnd::CleanUpPending { why } = promoted.end {
            self.unfinished.push(format!(
                "its files are promoted but not in place yet: {why}"
            ));
        }
        Ok(promoted.receipt)
    }

    fn draft_name(&self) -> String {
        format!("{}{DRAFT}", self.id)
    }

    /// Moves the recording away if its answers are used, or deletes an empty one. The receipt already
    /// exists; the next attempt repeats what fails here.
    fn put_calls(&mut self) {
        let put = match self.calls.symlink_metadata() {
            Err(_) => return,
            Ok(_) if is_unused(&self.calls) => {
                fs::remove_file(&self.calls).map_err(SpecError::from)
            }
            Ok(_) => put_away(self.lock, &self.calls, &self.id).map(|to| self.calls = to),
        };
        if let Err(error) = put {
            self.unfinished
                .push(format!("cannot move or delete its recorded calls: {error}"));
        }
    }
}

/// Whether a receipt records that a phase wrote exactly these bytes to this file.
fn is_written(receipts: &[SpecReceipt], path: &str, bytes: &[u8]) -> bool {
    let digest = Digest::compute(bytes);
    let mut outputs = receipts
        .iter()
        .flat_map(|receipt| &receipt.phases)
        .flat_map(|entry| &entry.outputs);
    outputs.any(|output| output.path == path && output.sha256 == digest)
}

/// The warning about requirements whose last document is missing.
fn begins_anew(highest: u32) -> ReceiptWarning {
    let ids = match highest {
        0 => "its ids can be reused".to_owned(),
        given => format!(
            "new ids follow {}, the last one given",
            RequirementId(given)
        ),
    };
    let message = format!(
        "artifacts/{} of the last run is missing",
        PhaseId::Requirements.artifact()
    );
    ReceiptWarning {
        kind: "previous_gone".to_owned(),
        message: format!("{message}, so the requirements start over; {ids}"),
    }
}
