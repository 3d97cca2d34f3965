//! Compares the ledger's records of a spec's receipts with the directory.
//!
//! A receipt that counts but is not in the ledger may have come from another machine, if its sequence
//! number is above all recorded ones, or was learned from the directory; that is reported. Below the last
//! recorded number it has replaced another receipt. A ledger without records of the spec says nothing.
//! Conversely, the receipt recorded last for a phase must exist, unless it was pruned with the oldest
//! receipts, or the whole spec was removed and started again later.

use std::collections::BTreeMap;

use crucible_ledger::{Ledger, NewSpecReceipt, ReceiptWriter, SpecReceiptRow};
use crucible_model::{ClockSource, Digest};

use super::reading::ReceiptCache;
use super::{SpecStore, promotion};
use crate::error::SpecError;
use crate::project::SpecProject;
use crate::receipt::{PhaseStatus, ReadReceipt, ReceiptId};
use crate::state::ReceiptProblemKind;

/// A ledger with its records of the newest receipts of all specs of a project, if they were queried
/// together.
pub(crate) struct RecordedReceipts<'a> {
    ledger: &'a Ledger,
    project: Option<BTreeMap<String, Vec<SpecReceiptRow>>>,
}

impl<'a> RecordedReceipts<'a> {
    /// A ledger that is queried for each spec.
    pub(crate) fn from_ledger(ledger: &'a Ledger) -> Self {
        Self {
            ledger,
            project: None,
        }
    }

    /// A ledger that is queried once for all specs of this project.
    pub(crate) fn of_project(ledger: &'a Ledger, project: &SpecProject) -> Result<Self, SpecError> {
        let newest = ledger.newest_spec_receipts_of_project(&project.key()?)?;
        Ok(Self {
            ledger,
            project: Some(newest),
        })
    }

    /// The receipt recorded last for each phase of a spec.
    fn newest(&self, project: &Digest, spec: &str) -> Result<Vec<SpecReceiptRow>, SpecError> {
        match &self.project {
            Some(known) => Ok(known.get(spec).cloned().unwrap_or_default()),
            None => Ok(self.ledger.newest_spec_receipts(project, spec)?),
        }
    }

    /// Whether the ledger has recorded exactly this receipt.
    pub(super) fn is_recorded(
        &self,
        store: &SpecStore,
        id: &ReceiptId,
        digest: Digest,
    ) -> Result<bool, SpecError> {
        let (project, spec) = (store.project().key()?, store.spec().as_str());
        let known = self
            .ledger
            .spec_receipts_of_id(&project, spec, id.as_str())?;
        Ok(known.iter().any(|row| row.digest == digest))
    }

    /// Reports differences to the ledger. The receipt of an unfinished promotion is not missing.
    pub(super) fn compare(
        &self,
        cache: &mut ReceiptCache<'_>,
        store: &SpecStore,
        unfinished: Option<&ReceiptId>,
    ) -> Result<(), SpecError> {
        let (project, spec) = (store.project().key()?, store.spec().as_str());
        let newest = self.newest(&project, spec)?;
        if newest.is_empty() {
            return Ok(());
        }
        compare(
            cache,
            self.ledger,
            (&project, spec),
            newest,
            unfinished,
            promotion::marked(store),
        )
    }
}

fn compare(
    cache: &mut ReceiptCache<'_>,
    ledger: &Ledger,
    (project, spec): (&Digest, &str),
    newest: Vec<SpecReceiptRow>,
    unfinished: Option<&ReceiptId>,
    own_digest: Option<Digest>,
) -> Result<(), SpecError> {
    let read: Vec<(ReceiptId, Digest)> = cache
        .trusted()
        .map(|(id, read)| (id.clone(), read.digest))
        .collect();
    let mut unknown = Vec::new();
    for (id, digest) in read {
        // Most receipts are those recorded last, which need no further query.
        let is_this = |row: &&SpecReceiptRow| row.receipt_id == id.as_str() && row.digest == digest;
        if let Some(row) = newest.iter().find(is_this) {
            report_mismatch(cache, &id, row);
            continue;
        }
        let known = ledger.spec_receipts_of_id(project, spec, id.as_str())?;
        match known.iter().find(is_this) {
            Some(row) => report_mismatch(cache, &id, row),
            None if known.is_empty() => unknown.push((id, digest)),
            None => cache.problem(&id, ReceiptProblemKind::LedgerDiffers),
        }
    }
    unknown.retain(|(id, digest)| cache.counts(id) && own_digest != Some(*digest));
    if !unknown.is_empty() {
        let last = last_place(cache, ledger, (project, spec), &newest)?;
        for (id, _) in unknown {
            if id.sequence() > last {
                cache.not_from_here.push(id.file_name());
            } else {
                cache.problem(&id, ReceiptProblemKind::LedgerDiffers);
            }
        }
    }
    let missing = newest.into_iter().filter_map(|row| {
        let id: ReceiptId = row.receipt_id.parse().ok()?;
        let receipt_id = cache.listing.of_phase(id.phase()).next();
        let is_newer = receipt_id.is_none_or(|here| here.sequence() <= row.sequence);
        let is_gone = cache.listing.find(&id).is_none() && row.sequence >= cache.listing.lowest();
        (is_newer && is_gone && unfinished != Some(&id)).then(|| (id, row, receipt_id.cloned()))
    });
    let missing: Vec<_> = missing.collect();
    if missing.is_empty() {
        return Ok(());
    }
    let began = first_event(cache, ledger, project, spec)?;
    for (id, row, here) in missing {
        if began.is_some_and(|began| row.event < began) {
            continue;
        }
        let in_its_place = here.filter(|here| here.sequence() == row.sequence);
        if let Some(here) = in_its_place
            && ledger
                .spec_receipts_of_id(project, spec, here.as_str())?
                .is_empty()
        {
            cache.problem(&here, ReceiptProblemKind::LedgerDiffers);
        } else {
            cache.problem(&id, ReceiptProblemKind::LedgerKnowsNewer);
        }
    }
    Ok(())
}

/// Reports a receipt that the ledger has recorded differently.
fn report_mismatch(cache: &mut ReceiptCache<'_>, id: &ReceiptId, row: &SpecReceiptRow) {
    if row.writer == ReceiptWriter::Unknown && cache.counts(id) {
        cache.not_from_here.push(id.file_name());
    }
}

/// The last sequence number that the ledger has recorded in this life of the spec: it learned of all
/// receipts up to there when that one was promoted.
pub(super) fn last_place(
    cache: &ReceiptCache<'_>,
    ledger: &Ledger,
    (project, spec): (&Digest, &str),
    newest: &[SpecReceiptRow],
) -> Result<u64, SpecError> {
    let began = first_event(cache, ledger, project, spec)?;
    let of_this_life = newest
        .iter()
        .filter(|row| began.is_none_or(|began| row.event >= began));
    Ok(of_this_life.map(|row| row.sequence).max().unwrap_or(0))
}

/// The event of the oldest existing receipt. Earlier records belong to an earlier life of the spec: it
/// was removed as a whole, and every receipt that counts now is newer.
fn first_event(
    cache: &ReceiptCache<'_>,
    ledger: &Ledger,
    project: &Digest,
    spec: &str,
) -> Result<Option<u64>, SpecError> {
    let Some(oldest) = cache.listing.all().next() else {
        return Ok(None);
    };
    let Ok(read) = cache.load(oldest) else {
        return Ok(None);
    };
    let known = ledger.spec_receipts_of_id(project, spec, oldest.as_str())?;
    Ok(known
        .iter()
        .find(|row| row.digest == read.digest)
        .map(|row| row.event))
}

/// Records a receipt with its bytes and its writer. A receipt without a time, as only other programs
/// write, is recorded with the time in its name.
pub(super) fn record(
    ledger: &mut Ledger,
    project: Digest,
    id: &ReceiptId,
    read: &ReadReceipt,
    content: Vec<u8>,
    writer: ReceiptWriter,
) -> Result<(), SpecError> {
    let receipt = &read.receipt;
    let at = receipt.emitted_at.or_else(|| id.began());
    let (Some(at), Some(phase)) = (at, receipt.phase(id.phase().as_str())) else {
        return Ok(());
    };
    let status = match phase.status {
        PhaseStatus::Success => "success",
        PhaseStatus::Failed => "failed",
        PhaseStatus::DryRun => "dry_run",
    };
    let new = NewSpecReceipt {
        project,
        spec: receipt.spec_id.clone(),
        sequence: id.sequence(),
        receipt_id: id.as_str().to_owned(),
        phase: id.phase().as_str().to_owned(),
        status: status.to_owned(),
        digest: read.digest,
        outputs: phase
            .outputs
            .iter()
            .map(|output| (output.path.clone(), output.sha256))
            .collect(),
        at,
        clock: receipt.clock.unwrap_or(ClockSource::System),
        // A receipt that this machine promoted contains no secret, and is stored unchanged.
        content: match writer {
            ReceiptWriter::ThisMachine => content,
            ReceiptWriter::Unknown => read.redacted_copy(content),
        },
    };
    match writer {
        ReceiptWriter::ThisMachine => ledger.record_spec_receipt(&new)?,
        ReceiptWriter::Unknown => ledger.learn_spec_receipt(&new)?,
    };
    Ok(())
}
