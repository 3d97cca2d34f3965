//! The ledger as a witness: what it knows of a spec's receipts, against what lies in the directory.
//!
//! A ledger that knows nothing of a receipt says nothing: it may have come from another machine. The other way round, a receipt that
//! the ledger recorded last for its phase has to be there, unless the oldest receipts were pruned with it, or the whole spec was removed
//! and begun anew after it.

use std::collections::BTreeMap;

use crucible_ledger::{Ledger, NewSpecReceipt, SpecReceiptRow};
use crucible_model::{ClockSource, Digest};

use super::SpecStore;
use super::reading::Shelf;
use crate::error::SpecError;
use crate::project::SpecProject;
use crate::receipt::{PhaseStatus, ReadReceipt, ReceiptId};
use crate::state::ReceiptProblemKind;

/// A ledger, and what it says of the newest receipts of all specs of a project where it was asked for that.
pub(crate) struct Witness<'a> {
    ledger: &'a Ledger,
    project: Option<BTreeMap<String, Vec<SpecReceiptRow>>>,
}

impl<'a> Witness<'a> {
    /// The ledger, asked for each spec by itself.
    pub(crate) fn of(ledger: &'a Ledger) -> Self {
        Self { ledger, project: None }
    }

    /// The ledger, asked once for all specs of this project.
    pub(crate) fn of_project(ledger: &'a Ledger, project: &SpecProject) -> Result<Self, SpecError> {
        let newest = ledger.newest_spec_receipts_of_project(&project.key()?)?;
        Ok(Self { ledger, project: Some(newest) })
    }

    /// Of each phase of a spec the receipt that was recorded last.
    fn newest(&self, project: &Digest, spec: &str) -> Result<Vec<SpecReceiptRow>, SpecError> {
        match &self.project {
            Some(known) => Ok(known.get(spec).cloned().unwrap_or_default()),
            None => Ok(self.ledger.newest_spec_receipts(project, spec)?),
        }
    }

    /// Tells where the ledger knows better. The receipt of an unfinished promotion is not gone: it is on its way.
    pub(super) fn compare(
        &self,
        shelf: &mut Shelf<'_>,
        store: &SpecStore,
        unfinished: Option<&ReceiptId>,
    ) -> Result<(), SpecError> {
        let (project, spec) = (store.project().key()?, store.spec().as_str());
        let newest = self.newest(&project, spec)?;
        if newest.is_empty() {
            return Ok(());
        }
        compare(shelf, self.ledger, (&project, spec), newest, unfinished)
    }
}

fn compare(
    shelf: &mut Shelf<'_>,
    ledger: &Ledger,
    (project, spec): (&Digest, &str),
    newest: Vec<SpecReceiptRow>,
    unfinished: Option<&ReceiptId>,
) -> Result<(), SpecError> {
    // Most of what was read is what was recorded last: nobody has to be asked for it again.
    let is_newest = |id: &ReceiptId, digest: Digest| {
        newest.iter().any(|row| row.receipt_id == id.as_str() && row.digest == digest)
    };
    let read: Vec<(ReceiptId, Digest)> = shelf
        .trusted()
        .filter(|(id, read)| !is_newest(id, read.digest))
        .map(|(id, read)| (id.clone(), read.digest))
        .collect();
    let last = newest.iter().map(|row| row.sequence).max().unwrap_or(0);
    for (id, digest) in read {
        let known = ledger.spec_receipts_of_id(project, spec, id.as_str())?;
        if known.is_empty() && id.sequence() > last {
            shelf.not_from_here.push(id.file_name());
        }
        if !known.is_empty() && known.iter().all(|row| row.digest != digest) {
            shelf.problem(&id, ReceiptProblemKind::LedgerDiffers);
        }
    }
    let gone = newest.into_iter().filter_map(|row| {
        let id: ReceiptId = row.receipt_id.parse().ok()?;
        let here = shelf.listing.of_phase(id.phase()).next();
        let is_newer = here.is_none_or(|here| here.sequence() <= row.sequence);
        let is_gone = shelf.listing.find(&id).is_none() && row.sequence >= shelf.listing.lowest();
        (is_newer && is_gone && unfinished != Some(&id)).then(|| (id, row, here.cloned()))
    });
    let gone: Vec<_> = gone.collect();
    if gone.is_empty() {
        return Ok(());
    }
    let began = first_event(shelf, ledger, project, spec)?;
    for (id, row, here) in gone {
        if began.is_some_and(|began| row.event < began) {
            continue;
        }
        let in_its_place = here.filter(|here| here.sequence() == row.sequence);
        if let Some(here) = in_its_place
            && ledger.spec_receipts_of_id(project, spec, here.as_str())?.is_empty()
        {
            shelf.problem(&here, ReceiptProblemKind::LedgerDiffers);
        } else {
            shelf.problem(&id, ReceiptProblemKind::LedgerKnowsNewer);
        }
    }
    Ok(())
}

/// The event of the oldest receipt that is there. What the ledger recorded before that belongs to an earlier life of the spec: it was removed as
/// a whole, and all that counts now was made afterwards.
fn first_event(
    shelf: &Shelf<'_>,
    ledger: &Ledger,
    project: &Digest,
    spec: &str,
) -> Result<Option<u64>, SpecError> {
    let Some(oldest) = shelf.listing.all().next() else { return Ok(None) };
    let Ok(read) = shelf.load(oldest) else { return Ok(None) };
    let known = ledger.spec_receipts_of_id(project, spec, oldest.as_str())?;
    Ok(known.iter().find(|row| row.digest == read.digest).map(|row| row.event))
}

/// Records a receipt with its bytes. One without an instant, as only other programs write them, is left out.
pub(super) fn record(
    ledger: &mut Ledger,
    project: Digest,
    id: &ReceiptId,
    read: &ReadReceipt,
    content: Vec<u8>,
) -> Result<(), SpecError> {
    let receipt = &read.receipt;
    let (Some(at), Some(phase)) = (receipt.emitted_at, receipt.phase(id.phase().as_str())) else {
        return Ok(());
    };
    let status = match phase.status {
        PhaseStatus::Success => "success",
        PhaseStatus::Failed => "failed",
        PhaseStatus::DryRun => "dry_run",
    };
    ledger.record_spec_receipt(&NewSpecReceipt {
        project,
        spec: receipt.spec_id.clone(),
        sequence: id.sequence(),
        receipt_id: id.as_str().to_owned(),
        phase: id.phase().as_str().to_owned(),
        status: status.to_owned(),
        digest: read.digest,
        outputs: phase.outputs.iter().map(|output| (output.path.clone(), output.sha256)).collect(),
        at,
        clock: receipt.clock.unwrap_or(ClockSource::System),
        content,
    })?;
    Ok(())
}
