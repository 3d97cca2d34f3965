//! One try of one phase, from its first check to its receipt.
//!
//! [`PhaseRun`] is a value that outlives the work: a future that asks a model borrows it, so whoever drops that future, because the user
//! interrupts, still has what is needed for the receipt. The steps are [`PhaseRun::begin`], [`PhaseRun::gather`], [`PhaseRun::ask`] (in `ask`), and one of
//! the ends: [`PhaseRun::succeed`], [`PhaseRun::tried_dry`], [`PhaseRun::fail`].
//!
//! What always holds: an end writes exactly one receipt; until then nothing but `context/` has changed; answers are recorded
//! before they are used, so a try that was killed is not paid for twice.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crucible_host::fs;
use crucible_ledger::Ledger;
use crucible_llm::{
    CallError, CassetteError, CassetteHeader, CassetteWriter, ReceiptWarning, Recording, Reuse,
};
use crucible_model::{Clock, EditFormat, ExitStatus, Untrusted};
use crucible_patch::Policy;

use super::calls::{calls_of, calls_under_way, put_spent_calls_away};
use super::failure::{answers_are_spent, failure};
use super::material::{fixed_entries, selectors_of};
use super::receipt::{Written, entry, receipt, record};
use super::tally::Tally;
use super::way::{check_transition, definition, stale_ground};
use crate::error::SpecError;
use crate::packet::{Packet, PacketLimits, PacketManifest};
use crate::phase::PhaseDefinition;
use crate::phase_id::PhaseId;
use crate::receipt::{FileRecord, HookReceipt, PhaseEntry, PhaseStatus, ReceiptId, SpecReceipt};
use crate::source::{FileSelectors, gather_packet};
use crate::store::{PhaseOutput, SpecLock};

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
    pub policy: Policy,
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
    pub(super) previous: Option<Untrusted>,
    pub(super) entry: PhaseEntry,
    pub(super) tally: Tally,
    pub(super) outputs: Vec<PhaseOutput>,
    calls: PathBuf,
}

impl<'a> PhaseRun<'a> {
    /// Begins a try of a phase under the spec's lock.
    ///
    /// # Errors
    ///
    /// [`SpecError::Transition`] when the phase may not run now; a file system's error. Nothing is written then.
    pub fn begin(lock: &'a SpecLock, clock: &'a dyn Clock, order: PhaseOrder) -> Result<Self, SpecError> {
        let state = lock.store().state(None)?;
        check_transition(&state, order.phase)?;
        let Some(definition) = definition(order.phase) else {
            let why = "it has no definition".to_owned();
            return Err(SpecError::Transition { phase: order.phase, why, valid: Vec::new() });
        };
        let started = clock.now();
        let id = ReceiptId::new(order.phase, started, lock.next_sequence()?);
        let mut entry = entry(order.phase, started);
        entry.warnings.extend(order.warnings.iter().cloned());
        entry.warnings.extend(stale_ground(&state, order.phase));
        let calls = calls_under_way(lock, order.phase);
        put_spent_calls_away(lock, &state, order.phase, &calls)?;
        let previous = previous(lock, &order, &mut entry)?;
        Ok(Self {
            lock,
            clock,
            order,
            definition,
            id,
            packet: None,
            previous,
            entry,
            tally: Tally::default(),
            outputs: Vec::new(),
            calls,
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

    /// The file in which the calls of this try are recorded while it works, and where they lie afterwards.
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
        let open = || CassetteWriter::open(&self.calls, header, Reuse::After(0));
        let writer = match open() {
            Err(
                CassetteError::NotACassette | CassetteError::Newer { .. } | CassetteError::BadLine { .. },
            ) => {
                let name = format!("{}.unreadable-calls", self.id);
                fs::rename(&self.calls, &self.lock.store().dir().join("context").join(&name))?;
                self.entry.warnings.push(ReceiptWarning {
                    kind: "calls_unreadable".to_owned(),
                    message: format!(
                        "the recorded calls of an earlier try cannot be read; they are in context/{name}"
                    ),
                });
                open()
            }
            opened => opened,
        };
        Ok(Recording::To(Arc::new(writer.map_err(CallError::from)?)))
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
    pub fn hooks_ran(&mut self, hooks: Vec<HookReceipt>) {
        self.entry.hooks.extend(hooks);
    }

    /// Puts the packet together and keeps its manifest in `context/`: for the first phase the idea, as given here or as it was kept; the
    /// artifacts that the phase is made from; and the project's files that it may see.
    ///
    /// # Errors
    ///
    /// [`SpecError::EmptyIdea`], and as [`gather_packet`]. A packet that is too large leaves its manifest, too.
    pub fn gather(
        &mut self,
        idea: Option<&Untrusted>,
        selectors: FileSelectors,
    ) -> Result<&PacketManifest, SpecError> {
        let fixed = fixed_entries(self.lock.store(), self.order.phase, idea)?;
        let selectors = selectors_of(self.order.phase, &fixed, selectors, &mut self.entry.warnings);
        let built = gather_packet(fixed, &selectors, self.order.limits);
        if let Ok(Packet { manifest, .. }) = &built {
            self.keep_manifest(manifest)?;
        }
        if let Err(SpecError::PacketOverLimit { manifest }) = &built {
            self.keep_manifest(manifest)?;
        }
        let packet = built?;
        self.entry.inputs = packet.manifest.inputs();
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
    /// draft from now on.
    ///
    /// # Errors
    ///
    /// Fails when the draft cannot be written.
    pub fn draft(&self) -> Result<Option<FileRecord>, SpecError> {
        let Some(output) = self.outputs.first() else {
            return Ok(None);
        };
        let name = format!("{}.draft.md", self.id);
        self.lock.write_context(&name, &output.bytes)?;
        Ok(Some(FileRecord { path: format!("context/{name}"), ..record(output) }))
    }

    /// Ends with a success: the artifact and the receipt are promoted together.
    ///
    /// # Errors
    ///
    /// As [`SpecLock::promote`]. The try is then to be ended by [`PhaseRun::fail`].
    pub fn succeed(&mut self, ledger: &mut Ledger) -> Result<SpecReceipt, SpecError> {
        let entry = PhaseEntry { status: PhaseStatus::Success, ..self.entry() };
        let promoted = self.promote(entry, ExitStatus::Success, self.outputs.clone(), ledger)?;
        self.put_calls_away()?;
        Ok(promoted)
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
        let entry = PhaseEntry { status, error, ..self.entry() };
        let promoted = self.promote(entry, exit, Vec::new(), ledger)?;
        if answers_are_spent(class) {
            self.put_calls_away()?;
        }
        Ok(promoted)
    }

    fn entry(&self) -> PhaseEntry {
        PhaseEntry { llm: self.tally.receipt(), attempts: self.tally.attempts(), ..self.entry.clone() }
    }

    fn promote(
        &self,
        entry: PhaseEntry,
        exit: ExitStatus,
        outputs: Vec<PhaseOutput>,
        ledger: &mut Ledger,
    ) -> Result<SpecReceipt, SpecError> {
        let written = Written { at: self.clock.now(), clock: self.clock.source() };
        let receipt = receipt(self.lock.store().spec(), &self.id, entry, exit, written);
        self.lock.promote(receipt, outputs, ledger)
    }

    fn put_calls_away(&mut self) -> Result<(), SpecError> {
        let to = calls_of(self.lock, self.id.as_str());
        if self.calls.is_file() {
            fs::rename(&self.calls, &to)?;
            self.calls = to;
        }
        Ok(())
    }
}

/// The artifact that the phase wrote the last time, where it goes on from that. Requirements must: their ids live there. The others may.
fn previous(
    lock: &SpecLock,
    order: &PhaseOrder,
    entry: &mut PhaseEntry,
) -> Result<Option<Untrusted>, SpecError> {
    let path = format!("artifacts/{}", order.phase.artifact());
    let Some(bytes) = lock.store().read(&path)? else {
        return Ok(None);
    };
    let most = order.limits.max_bytes;
    let why = match String::from_utf8(bytes) {
        Ok(text) if text.len() as u64 <= most => return Ok(Some(Untrusted::new(text))),
        Ok(text) => format!(
            "it has {} bytes, and a model is shown {most} at most; shorten it, or put it away to begin anew",
            text.len()
        ),
        Err(_) => "it is not UTF-8; mend it, or put it away to begin anew".to_owned(),
    };
    if order.phase == PhaseId::Requirements {
        return Err(SpecError::Source { source_name: path, why });
    }
    let message = format!("{path} of the last time is not gone on from: {why}");
    entry.warnings.push(ReceiptWarning { kind: "previous_unused".to_owned(), message });
    Ok(None)
}
