//! One try of one phase, from its first check to its receipt.
//!
//! [`PhaseRun`] is a value that outlives the work: a future that asks a model borrows it, so whoever drops that future, because the user
//! interrupts, still has what is needed for the receipt. The steps are [`PhaseRun::begin`], [`PhaseRun::gather`], [`PhaseRun::ask`] (in `ask`), and one of
//! the ends: [`PhaseRun::succeed`], [`PhaseRun::tried_dry`], [`PhaseRun::fail`].
//!
//! What always holds: an end writes exactly one receipt; until then nothing of the spec but `context/` has changed; answers are recorded
//! before they are used, so a try that was killed is not paid for twice; what somebody wrote into an artifact is kept before it is promoted over.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crucible_host::fs;
use crucible_ledger::Ledger;
use crucible_llm::{CallError, CallWatch, CassetteHeader, CassetteWriter, ReceiptWarning, Recording, Reuse};
use crucible_model::{Clock, Digest, EditFormat, ExitStatus};

use super::calls::{
    DRAFT, LeftCalls, calls_under_way, clear_drafts, has_spent, is_unused, left_calls, put_away, take_over,
};
use super::failure::failure;
use super::material::packet;
use super::phase_order::{check_transition, definition, stale_ground};
use super::receipt::{Written, add_hooks, bounded, receipt, record};
use super::tally::{Begun, Tally};
use crate::document::RequirementId;
use crate::error::SpecError;
use crate::fixup::{FixupChoice, recover_fixup};
use crate::hook::HookConsequence;
use crate::json_output::{LLM_REPLAYED, Standing, applied_fixups, standing};
use crate::packet::{EntryKind, Packet, PacketLimits, PacketManifest};
use crate::phase::PhaseDefinition;
use crate::phase_id::PhaseId;
use crate::receipt::{
    FileRecord, FixupReceipt, HookReceipt, PhaseEntry, PhaseStatus, ReceiptId, SpecReceipt,
};
use crate::source::{FileSelectors, Idea};
use crate::store::{PhaseOutput, PromotionEnd, SpecLock};

/// Whether a try counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trial {
    /// It does.
    Real,
    /// Nobody is asked, and its receipt counts for nothing, however it ends.
    Dry,
}

/// What a try is to do, and within which bounds.
#[derive(Debug, Clone)]
pub struct PhaseOrder {
    /// Which phase.
    pub phase: PhaseId,
    /// Whether it counts.
    pub trial: Trial,
    /// How large the packet may be.
    pub limits: PacketLimits,
    /// Answers that are taken at most, from 1 on: the first, and corrections.
    pub attempts: u64,
    /// The time for all calls together.
    pub phase_time: Duration,
    /// The time for one call.
    pub call_time: Duration,
    /// The model to ask; empty for the one that the client has for the phase.
    pub model: String,
    /// How a fixup is written.
    pub edit_format: EditFormat,
    /// What a fixup may touch.
    pub fixups: FixupChoice,
    /// What deserves a look before anything began: that a fallback answers.
    pub warnings: Vec<ReceiptWarning>,
}

/// A try of a phase.
pub struct PhaseRun<'a> {
    pub(super) lock: &'a SpecLock,
    clock: &'a dyn Clock,
    pub(super) order: PhaseOrder,
    pub(super) definition: &'static dyn PhaseDefinition,
    id: ReceiptId,
    pub(super) packet: Option<Packet>,
    /// Of the phase `requirements`: the highest id that its last success had given.
    pub(super) highest_requirement: u32,
    /// Of the same: whether there was one.
    has_written: bool,
    pub(super) entry: PhaseEntry,
    pub(super) tally: Tally,
    pub(super) outputs: Vec<PhaseOutput>,
    calls: PathBuf,
    left: Vec<LeftCalls>,
    /// Findings that the receipt has no room for.
    pub(super) untold: u64,
    /// Attempts that were begun, and those of them whose calls came to an end.
    pub(super) begun: Arc<AtomicU64>,
    pub(super) settled: u64,
    unfinished: Vec<String>,
    /// Of the phase `fixup`: what an application changed that then failed.
    applied: Option<FixupReceipt>,
}

impl<'a> PhaseRun<'a> {
    /// Begins a try of a phase under the spec's lock. What a killed process left of applying a fixup is finished or taken back first, and
    /// so is what an earlier try left for hooks. A receipt that the ledger knows otherwise is built on in nothing.
    ///
    /// # Errors
    ///
    /// [`SpecError::Transition`] when the phase may not run now; a file system's error. Nothing is written then.
    pub fn begin(
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
            return Err(SpecError::Transition { spec, phase: order.phase, why, valid: Vec::new() });
        };
        let started = clock.now();
        let id = ReceiptId::new(order.phase, started, lock.next_sequence()?);
        let mut entry = PhaseEntry::begun(order.phase, started);
        entry.warnings.extend(order.warnings.iter().cloned());
        entry.warnings.extend(stale_ground(&state, order.phase));
        let known = state.phase(order.phase).filter(|known| known.phase == PhaseId::Requirements);
        let last = known.and_then(|known| known.last_success.as_ref());
        let last = last.and_then(|receipt| receipt.phase(order.phase.as_str()));
        let calls = calls_under_way(lock, &id)?;
        let left = left_calls(lock, &state, order.phase)?;
        // Where a success tells of it, that stays the last success.
        let is_failed =
            state.phase(order.phase).is_some_and(|known| standing(&state, known) == Standing::Failed);
        let applied = applied_fixups(&state).filter(|_| order.phase == PhaseId::Fixup && is_failed).cloned();
        Ok(Self {
            lock,
            clock,
            order,
            definition,
            id,
            packet: None,
            highest_requirement: last.and_then(|entry| entry.highest_requirement).unwrap_or_default(),
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

    /// The id of the receipt to come.
    #[must_use]
    pub fn id(&self) -> &ReceiptId {
        &self.id
    }

    /// Which phase.
    #[must_use]
    pub fn phase(&self) -> PhaseId {
        self.order.phase
    }

    /// The file in which the calls of this try are recorded while it works, and where they lie afterwards: in Crucible's own directory until
    /// their answers are used up.
    #[must_use]
    pub fn calls(&self) -> &Path {
        &self.calls
    }

    /// Where the client of this try records its calls. Answers that an earlier try paid for and did not use are handed out from there.
    ///
    /// # Errors
    ///
    /// Fails when the recording cannot be written. One that cannot be read is put away, with a warning.
    pub fn recording(&mut self, header: &CassetteHeader) -> Result<Recording, SpecError> {
        let open = |reuse| CassetteWriter::open(&self.calls, header, reuse).map_err(CallError::from);
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

    /// Who has to be told of the attempts of this try, so that its receipt counts them, also when it is interrupted; `shown` is told, too.
    #[must_use]
    pub fn watch(&self, shown: Option<Arc<dyn CallWatch>>) -> Arc<dyn CallWatch> {
        Arc::new(Begun { count: Arc::clone(&self.begun), shown })
    }

    /// What could not be done after the try had ended with its receipt. The next command does it.
    #[must_use]
    pub fn unfinished(&self) -> &[String] {
        &self.unfinished
    }

    /// What deserves a look so far.
    #[must_use]
    pub fn warnings(&self) -> &[ReceiptWarning] {
        &self.entry.warnings
    }

    /// Adds something that deserves a look.
    pub fn warn(&mut self, warning: ReceiptWarning) {
        self.entry.warnings.push(warning);
    }

    /// Adds hooks that ran.
    ///
    /// # Errors
    ///
    /// What a hook failed with that is set to `fail`.
    pub fn hooked(&mut self, hooks: Vec<HookReceipt>, consequence: HookConsequence) -> Result<(), SpecError> {
        add_hooks(&mut self.entry, hooks, consequence)
    }

    /// Puts the packet together and keeps its manifest in `context/`: for the first phase the idea, as given here or as it was kept; the
    /// artifacts that the phase is made from, and the one that it goes on from; and the project's files that it may see.
    ///
    /// # Errors
    ///
    /// [`SpecError::EmptyIdea`], and as [`gather_packet`](crate::gather_packet). A packet that is too large leaves its manifest, too.
    pub fn gather(
        &mut self,
        idea: Option<&Idea>,
        selectors: FileSelectors,
    ) -> Result<&PacketManifest, SpecError> {
        let (store, limits) = (self.lock.store(), self.order.limits);
        let built = packet(store, self.definition, idea, selectors, limits, &mut self.entry.warnings);
        if let Ok(Packet { manifest, .. }) = &built {
            self.keep_manifest(manifest)?;
        }
        if let Err(SpecError::PacketOverLimit { manifest }) = &built {
            self.keep_manifest(manifest)?;
        }
        let packet = built?;
        self.entry.inputs = packet.manifest.inputs();
        let goes_on = packet.entries.iter().any(|entry| matches!(entry.kind, EntryKind::Previous(_)));
        if self.has_written && !goes_on {
            self.entry.warnings.push(begins_anew(self.highest_requirement));
        }
        self.entry.warnings.extend(
            packet.manifest.passed_over.iter().map(|file| ReceiptWarning {
                kind: "file_passed_over".to_owned(),
                message: file.to_string(),
            }),
        );
        Ok(&self.packet.insert(packet).manifest)
    }

    fn keep_manifest(&mut self, manifest: &PacketManifest) -> Result<(), SpecError> {
        self.entry.packet = Some(manifest.receipt()?);
        self.lock.write_context(&format!("{}.packet.json", self.id), &manifest.to_json()?)
    }

    /// The artifact that is about to be promoted, for hooks: its path in the spec's directory and its digest. It lies in `context/` as a
    /// draft until the try ends.
    ///
    /// # Errors
    ///
    /// Fails when the draft cannot be written.
    pub fn draft(&self) -> Result<Option<FileRecord>, SpecError> {
        let Some(output) = self.outputs.first() else {
            return Ok(None);
        };
        let name = self.draft_name();
        self.lock.write_context(&name, &output.bytes)?;
        Ok(Some(FileRecord { path: format!("context/{name}"), ..record(output) }))
    }

    /// Ends with a success: the artifact and the receipt are promoted together.
    ///
    /// # Errors
    ///
    /// As [`SpecLock::promote`]. The try is then to be ended by [`PhaseRun::fail`].
    pub fn succeed(&mut self, ledger: &mut Ledger) -> Result<SpecReceipt, SpecError> {
        self.keep_edited(ledger)?;
        let entry = PhaseEntry { status: PhaseStatus::Success, ..self.entry() };
        let promoted = self.promote(entry, ExitStatus::Success, self.outputs.clone(), ledger)?;
        self.put_calls();
        Ok(promoted)
    }

    /// Keeps what somebody wrote into an artifact by hand, before it is promoted over: whatever stands there and no receipt that can be believed
    /// says was written.
    fn keep_edited(&mut self, ledger: &Ledger) -> Result<(), SpecError> {
        let store = self.lock.store();
        let state = store.state(Some(ledger))?;
        let known = state.phase(self.order.phase);
        let newest = known.into_iter().flat_map(|known| [&known.newest_real, &known.last_success]).flatten();
        let newest: Vec<SpecReceipt> = newest.cloned().collect();
        for new in &self.outputs {
            let path = new.path.as_str();
            let is_file = store.dir().join(path).symlink_metadata().is_ok_and(|meta| meta.is_file());
            // What is no plain file has nothing to keep, and the promotion says what stands in its way.
            let Some(bytes) = (if is_file { store.read(path)? } else { None }) else { continue };
            // Only where the newest receipts do not know it, which is rare, all of them are read.
            if bytes == new.bytes
                || is_written(&newest, path, &bytes)
                || is_written(&store.history(Some(ledger))?.0, path, &bytes)
            {
                continue;
            }
            let name = format!("{}.edited-{}", self.id, path.trim_start_matches("artifacts/"));
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

    /// Ends a dry run: a receipt that counts for nothing.
    ///
    /// # Errors
    ///
    /// As [`SpecLock::promote`].
    pub fn tried_dry(&mut self, ledger: &mut Ledger) -> Result<SpecReceipt, SpecError> {
        let entry = PhaseEntry { status: PhaseStatus::DryRun, ..self.entry() };
        self.promote(entry, ExitStatus::Success, Vec::new(), ledger)
    }

    /// Ends with a failure of this class (see [`failure_class`](crate::failure_class)), for which the process exits so.
    ///
    /// # Errors
    ///
    /// As [`SpecLock::promote`].
    pub fn fail(
        &mut self,
        class: &str,
        message: &str,
        exit: ExitStatus,
        ledger: &mut Ledger,
    ) -> Result<SpecReceipt, SpecError> {
        let error = Some(failure(class, message));
        // A dry run that fails says nothing of the phase either.
        let status = match self.order.trial {
            Trial::Real => PhaseStatus::Failed,
            Trial::Dry => PhaseStatus::DryRun,
        };
        // What it proposes is promoted with a success or not at all; what was applied before stays applied.
        let fixups = self.applied.clone();
        let entry = PhaseEntry { status, error, fixups, ..self.entry() };
        // Answers out of a recording are paid for by nobody, and must not come back as those of a model.
        let is_replayed = entry.warnings.iter().any(|warning| warning.kind == LLM_REPLAYED);
        let is_spent = has_spent(&entry) || is_replayed;
        let promoted = self.promote(entry, exit, Vec::new(), ledger)?;
        if is_spent || is_unused(&self.calls) {
            self.put_calls();
        }
        Ok(promoted)
    }

    fn entry(&self) -> PhaseEntry {
        // Of a call that nobody waits for any more only its attempts are known.
        let under_way = self.begun.load(Ordering::SeqCst).saturating_sub(self.settled);
        let attempts = self.tally.attempts().saturating_add(under_way);
        let mut entry = PhaseEntry { llm: self.tally.receipt(), attempts, ..self.entry.clone() };
        entry.warnings.extend(entry.llm.as_ref().and_then(ReceiptWarning::exhausted_budget));
        bounded(entry, self.untold)
    }

    fn promote(
        &mut self,
        entry: PhaseEntry,
        exit: ExitStatus,
        outputs: Vec<PhaseOutput>,
        ledger: &mut Ledger,
    ) -> Result<SpecReceipt, SpecError> {
        let written = Written { at: self.clock.now(), clock: self.clock.source() };
        let receipt = receipt(self.lock.store().spec(), &self.id, entry, exit, written);
        let promoted = self.lock.promote(receipt, outputs, ledger);
        let draft = self.lock.store().dir().join("context").join(self.draft_name());
        let cleared = match draft.symlink_metadata() {
            Ok(_) => self.lock.in_turn(|_| Ok(fs::remove_file(&draft)?)),
            Err(_) => Ok(()),
        };
        let promoted = promoted?;
        if let Err(error) = cleared {
            self.unfinished.push(format!("cannot delete a draft: {error}"));
        }
        if let PromotionEnd::CleanUpPending { why } = promoted.end {
            self.unfinished.push(format!("its files are promoted but not in place yet: {why}"));
        }
        Ok(promoted.receipt)
    }

    fn draft_name(&self) -> String {
        format!("{}{DRAFT}", self.id)
    }

    /// Puts the recording away whose answers are used up, or that holds none. The receipt is written by now; what fails here, the next try
    /// does.
    fn put_calls(&mut self) {
        let put = match self.calls.symlink_metadata() {
            Err(_) => return,
            Ok(_) if is_unused(&self.calls) => fs::remove_file(&self.calls).map_err(SpecError::from),
            Ok(_) => put_away(self.lock, &self.calls, &self.id).map(|to| self.calls = to),
        };
        if let Err(error) = put {
            self.unfinished.push(format!("cannot move or delete its recorded calls: {error}"));
        }
    }
}

/// Whether a receipt says that a phase wrote these very bytes to this file.
fn is_written(receipts: &[SpecReceipt], path: &str, bytes: &[u8]) -> bool {
    let digest = Digest::of(bytes);
    let mut outputs = receipts.iter().flat_map(|receipt| &receipt.phases).flat_map(|entry| &entry.outputs);
    outputs.any(|output| output.path == path && output.sha256 == digest)
}

/// Requirements whose document of the last time is gone.
fn begins_anew(highest: u32) -> ReceiptWarning {
    let ids = match highest {
        0 => "its ids can be reused".to_owned(),
        given => format!("new ids follow {}, the last one given", RequirementId(given)),
    };
    let gone = format!("artifacts/{} of the last run is missing", PhaseId::Requirements.artifact());
    ReceiptWarning {
        kind: "previous_gone".to_owned(),
        message: format!("{gone}, so the requirements start over; {ids}"),
    }
}
