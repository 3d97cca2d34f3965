//! What is known of a spec, from few reads: the names of all receipts, and of each phase the newest one, the newest that is no dry
//! run and the newest success, found by the links that every receipt carries.
//!
//! What always holds: each receipt and each artifact is read at most once; at most three receipts of a phase are read, unless they
//! are of before the links (then older ones are read until one counts); the oldest of all where the ledger knows more than there is. Behind a receipt that cannot be trusted nothing is told of
//! its phase: had it been a failure, an older success must not count in its place.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crucible_ledger::Ledger;
use crucible_model::{ByteLimit, Digest};

use super::listing::Listing;
use super::place::{ARTIFACTS, CONTEXT, Comparison, RECEIPTS, read_file};
use super::{SpecStore, witness};
use crate::error::SpecError;
use crate::phase_id::PhaseId;
use crate::receipt::{
    FileRecord, MAX_RECEIPT_BYTES, RECEIPT_SCHEMA, ReadReceipt, ReceiptFault, ReceiptId, ReceiptLink,
    SpecReceipt,
};
use crate::state::{PhaseState, ReceiptProblem, ReceiptProblemKind, SpecState, TrackedRecord};

/// Receipts that are read when they are asked for, and what is wrong with them.
pub(super) struct Shelf<'a> {
    store: &'a SpecStore,
    pub(super) listing: Listing,
    /// Nothing for those that cannot be trusted.
    read: BTreeMap<String, Option<(ReceiptId, ReadReceipt)>>,
    pub(super) problems: Vec<ReceiptProblem>,
}

/// What counts of a phase.
#[derive(Debug, Default)]
pub(super) struct Counting {
    pub(super) newest: Option<ReadReceipt>,
    pub(super) newest_real: Option<ReadReceipt>,
    pub(super) last_success: Option<ReadReceipt>,
}

impl<'a> Shelf<'a> {
    pub(super) fn open(store: &'a SpecStore) -> Result<Self, SpecError> {
        let listing = Listing::read(store.dir())?;
        let problems = listing.problems();
        Ok(Self { store, listing, read: BTreeMap::new(), problems })
    }

    /// The receipt of this name, if it is there and can be trusted.
    pub(super) fn receipt(&mut self, id: &ReceiptId) -> Option<ReadReceipt> {
        if let Some(read) = self.read.get(id.as_str()) {
            return read.as_ref().map(|(_, read)| read.clone());
        }
        let read = match self.load(id) {
            Ok(read) => Some((id.clone(), read)),
            Err(kind) => {
                self.problem(id, kind);
                None
            }
        };
        self.read.entry(id.as_str().to_owned()).or_insert(read).as_ref().map(|(_, read)| read.clone())
    }

    /// Reads a receipt and tells nobody what is wrong with it.
    pub(super) fn load(&self, id: &ReceiptId) -> Result<ReadReceipt, ReceiptProblemKind> {
        let path: PathBuf = self.store.dir().join(RECEIPTS).join(id.file_name());
        let unreadable = ReceiptProblemKind::Unreadable;
        let bytes = match read_file(&path, ByteLimit(MAX_RECEIPT_BYTES)) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Err(unreadable("it is not there any more".to_owned())),
            Err(error) => return Err(unreadable(error.to_string())),
        };
        ReadReceipt::of(&bytes, self.store.spec(), id).map_err(|fault| match fault {
            ReceiptFault::Unreadable(why) => unreadable(why),
            ReceiptFault::NameDisagrees => ReceiptProblemKind::NameDisagrees,
            ReceiptFault::DigestDiffers => ReceiptProblemKind::DigestDiffers,
        })
    }

    /// What counts of a phase.
    pub(super) fn counting(&mut self, phase: PhaseId) -> Counting {
        let Some(id) = self.listing.of_phase(phase).next().cloned() else { return Counting::default() };
        let Some(newest) = self.receipt(&id) else { return Counting::default() };
        let real = self.walk(id, newest.clone(), SpecReceipt::is_real, |receipt| receipt.last_real.as_ref());
        let Some((real_id, newest_real)) = real else {
            return Counting { newest: Some(newest), ..Counting::default() };
        };
        let success = self.walk(real_id, newest_real.clone(), SpecReceipt::is_real_success, |receipt| {
            receipt.last_success.as_ref()
        });
        Counting {
            newest: Some(newest),
            newest_real: Some(newest_real),
            last_success: success.map(|(_, read)| read),
        }
    }

    /// The newest receipt from this one down that is accepted. Receipts that carry links are followed by them; where such a one
    /// carries none, there is nothing behind it.
    fn walk(
        &mut self,
        mut id: ReceiptId,
        mut read: ReadReceipt,
        accept: fn(&SpecReceipt, &ReceiptId) -> bool,
        link: fn(&SpecReceipt) -> Option<&ReceiptLink>,
    ) -> Option<(ReceiptId, ReadReceipt)> {
        loop {
            if accept(&read.receipt, &id) {
                return Some((id, read));
            }
            let next = match link(&read.receipt) {
                Some(link) => {
                    let link = link.clone();
                    self.follow(&id, &link)?
                }
                None if read.receipt.schema_version == RECEIPT_SCHEMA => return None,
                None => {
                    let older = |other: &&ReceiptId| other.sequence() < id.sequence();
                    self.listing.of_phase(id.phase()).find(older)?.clone()
                }
            };
            read = self.receipt(&next)?;
            id = next;
        }
    }

    /// The receipt that a link of another one of its phase names. One from before the oldest that is there was pruned.
    fn follow(&mut self, from: &ReceiptId, link: &ReceiptLink) -> Option<ReceiptId> {
        let id = link.receipt_id.parse::<ReceiptId>().ok();
        let id = id.filter(|id| id.phase() == from.phase() && id.sequence() < from.sequence());
        let Some(id) = id else {
            self.problem(from, ReceiptProblemKind::ChainBroken);
            return None;
        };
        self.is_linked_rightly(&id, link.digest).then_some(id)
    }

    /// Whether a receipt is there, can be trusted and has this digest; what is wrong is told.
    fn is_linked_rightly(&mut self, id: &ReceiptId, digest: Digest) -> bool {
        if self.listing.find(id).is_none() {
            if id.sequence() >= self.listing.lowest() {
                self.problem(id, ReceiptProblemKind::ChainBroken);
            }
            return false;
        }
        match self.receipt(id) {
            Some(read) if read.digest == digest => true,
            Some(_) => {
                self.problem(id, ReceiptProblemKind::ChainBroken);
                false
            }
            None => false,
        }
    }

    /// Compares what was read with what says which receipt was before it; no further receipt is read for that.
    fn check_previous(&mut self) {
        let links: Vec<(ReceiptId, ReceiptLink)> = self
            .trusted()
            .filter_map(|(id, read)| Some((id.clone(), read.receipt.previous.clone()?)))
            .collect();
        for (from, link) in links {
            let id = link.receipt_id.parse::<ReceiptId>().ok();
            let Some(id) = id.filter(|id| id.sequence() < from.sequence()) else {
                self.problem(&from, ReceiptProblemKind::ChainBroken);
                continue;
            };
            if self.listing.find(&id).is_none() || self.read.contains_key(id.as_str()) {
                self.is_linked_rightly(&id, link.digest);
            }
        }
    }

    /// The receipts that were read and can be trusted.
    pub(super) fn trusted(&self) -> impl Iterator<Item = (&ReceiptId, &ReadReceipt)> {
        self.read.values().flatten().map(|(id, read)| (id, read))
    }

    pub(super) fn problem(&mut self, id: &ReceiptId, kind: ReceiptProblemKind) {
        let problem = ReceiptProblem { file: id.file_name(), phase: Some(id.phase()), kind };
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }
}

/// What is known of a spec.
pub(super) fn state(store: &SpecStore, ledger: Option<&Ledger>) -> Result<SpecState, SpecError> {
    let mut shelf = Shelf::open(store)?;
    let mut files = Comparison::new(store.dir());
    let mut phases = Vec::with_capacity(PhaseId::ALL.len());
    for phase in PhaseId::ALL {
        let Counting { newest, newest_real, last_success } = shelf.counting(phase);
        let receipt = |read: Option<ReadReceipt>| read.map(|read| read.receipt);
        let last_success = receipt(last_success);
        let told = last_success.as_ref().and_then(|success| success.phase(phase.as_str()));
        let mut track = |records: &[FileRecord], wanted: fn(&FileRecord) -> bool| {
            let wanted = records.iter().filter(|record| wanted(record));
            wanted
                .map(|record| TrackedRecord { record: record.clone(), found: files.state(record) })
                .collect()
        };
        phases.push(PhaseState {
            phase,
            outputs: told.map_or_else(Vec::new, |told| track(&told.outputs, |_| true)),
            inputs: told.map_or_else(Vec::new, |told| track(&told.inputs, is_of_the_spec)),
            newest: receipt(newest),
            newest_real: receipt(newest_real),
            last_success,
        });
    }
    shelf.check_previous();
    if let Some(ledger) = ledger {
        witness::compare(&mut shelf, store, ledger)?;
    }
    let receipts = shelf.listing.count();
    Ok(SpecState { spec: store.spec().clone(), phases, problems: shelf.problems, receipts })
}

/// Every receipt that can be trusted, the oldest first, and what is wrong with the others.
pub(super) fn history(store: &SpecStore) -> Result<(Vec<SpecReceipt>, Vec<ReceiptProblem>), SpecError> {
    let mut shelf = Shelf::open(store)?;
    let ids: Vec<ReceiptId> = shelf.listing.all().cloned().collect();
    let receipts = ids.iter().filter_map(|id| shelf.receipt(id)).map(|read| read.receipt).collect();
    shelf.check_previous();
    Ok((receipts, shelf.problems))
}

/// Whether an input lies in the spec's directory; those of the project change all the time, and make no phase stale.
fn is_of_the_spec(record: &FileRecord) -> bool {
    let folder = record.path.split('/').next();
    folder == Some(ARTIFACTS) || folder == Some(CONTEXT)
}
