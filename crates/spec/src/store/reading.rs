//! Reads the state of a spec with few reads. It lists the names of all receipts. For each phase it reads
//! the newest one, the newest that is not a dry run and the newest success, found by the links in every
//! receipt.
//!
//! Invariants: each artifact is read at most once. At most three receipts of a phase are read, unless
//! they predate the links; then older ones are read until one counts. In addition it reads the next
//! receipt after each of them, and the oldest one if the ledger has more than exist. It also reads at
//! most twenty that share their sequence number, and for applied fixups up to three to find the model
//! call. After a receipt that cannot be trusted, no older one of its phase is used: if it had been a
//! failure, an older success must not count in its place. Missing or repeated names are reported only
//! while they could hide a receipt that counts.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crucible_model::{ByteLimit, Digest, RepoPath};

use super::listing::{Listing, MAX_TOLD};
use super::place::{
    ARTIFACTS, CONTEXT, Comparison, MAX_FILE, RECEIPTS, read_file, read_file_there,
};
use super::recorded_receipts::RecordedReceipts;
use super::{SpecStore, promotion};
use crate::error::SpecError;
use crate::phase_id::PhaseId;
use crate::project::IDEA;
use crate::receipt::{
    FileRecord, FixedFile, FixupStage, MAX_RECEIPT_BYTES, RECEIPT_SCHEMA, ReadReceipt,
    ReceiptFault, ReceiptId, ReceiptLink, SpecReceipt,
};
use crate::state::{PhaseState, ReceiptProblem, ReceiptProblemKind, SpecState, TrackedRecord};

/// How many receipts back to look for one with a model call.
const FARTHEST_ASKED: usize = 3;

/// The most files of an applied fixup that are checked.
const MAX_FIXED: usize = 200;

/// Receipts that are read on demand, and their problems.
pub(super) struct ReceiptCache<'a> {
    store: &'a SpecStore,
    pub(super) listing: Listing,
    /// The entry is empty for a receipt that cannot be trusted.
    read: BTreeMap<String, Option<(ReceiptId, ReadReceipt)>>,
    /// The sequence numbers of the newest real receipts of the requested phases.
    newest_real: BTreeMap<PhaseId, u64>,
    pub(super) problems: Vec<ReceiptProblem>,
    /// Receipts not written here; see [`SpecState::not_from_here`].
    pub(super) not_from_here: Vec<String>,
    /// The receipts that count for the requested phases.
    counts: BTreeSet<String>,
    /// Up to this sequence number no receipt names its schema.
    unnamed_up_to: Cell<u64>,
}

/// The receipts that count for a phase.
#[derive(Debug, Default)]
pub(super) struct Counting {
    pub(super) newest: Option<ReadReceipt>,
    pub(super) newest_real: Option<ReadReceipt>,
    pub(super) last_success: Option<ReadReceipt>,
}

impl<'a> ReceiptCache<'a> {
    pub(super) fn open(store: &'a SpecStore) -> Result<Self, SpecError> {
        let listing = Listing::read(store.dir())?;
        let (read, newest_real) = (BTreeMap::new(), BTreeMap::new());
        let (problems, not_from_here) = (Vec::new(), Vec::new());
        let (counts, unnamed_up_to) = (BTreeSet::new(), Cell::new(0));
        Ok(Self {
            store,
            listing,
            read,
            newest_real,
            problems,
            not_from_here,
            counts,
            unnamed_up_to,
        })
    }

    /// The receipt with this id, if it exists and can be trusted.
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
        self.read
            .entry(id.as_str().to_owned())
            .or_insert(read)
            .as_ref()
            .map(|(_, read)| read.clone())
    }

    /// Reads a receipt without reporting its problems. A receipt that does not name its schema predates
    /// the schema, so it cannot follow one that does, nor name an earlier one: otherwise its schema and
    /// digest were removed.
    pub(super) fn load(&self, id: &ReceiptId) -> Result<ReadReceipt, ReceiptProblemKind> {
        let read = self.load_alone(id)?;
        let is_stripped =
            !is_named(&read) && (read.receipt.previous.is_some() || self.follows_a_named(id));
        if is_stripped {
            Err(ReceiptProblemKind::DigestDiffers)
        } else {
            Ok(read)
        }
    }

    /// Whether an earlier receipt names its schema. Each of a series of receipts that do not is read
    /// once.
    fn follows_a_named(&self, id: &ReceiptId) -> bool {
        let older = |below: u64| self.listing.before(below).map(ReceiptId::sequence);
        let mut place = id.sequence();
        while let Some(before) = older(place).filter(|before| *before > self.unnamed_up_to.get()) {
            let mut there = self.listing.at(before);
            if there.any(|other| self.load_alone(other).is_ok_and(|read| is_named(&read))) {
                return true;
            }
            place = before;
        }
        let known = self
            .unnamed_up_to
            .get()
            .max(older(id.sequence()).unwrap_or(0));
        self.unnamed_up_to.set(known);
        false
    }

    fn load_alone(&self, id: &ReceiptId) -> Result<ReadReceipt, ReceiptProblemKind> {
        let path: PathBuf = self.store.dir().join(RECEIPTS).join(id.file_name());
        let unreadable = ReceiptProblemKind::Unreadable;
        let bytes = match read_file_there(&path, ByteLimit(MAX_RECEIPT_BYTES)) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Err(unreadable("it no longer exists".to_owned())),
            Err(error) => return Err(unreadable(error.to_string())),
        };
        ReadReceipt::from_bytes(&bytes, self.store.spec(), id).map_err(|fault| match fault {
            ReceiptFault::Unreadable(why) => unreadable(why),
            ReceiptFault::NameDisagrees => ReceiptProblemKind::NameDisagrees,
            ReceiptFault::DigestDiffers => ReceiptProblemKind::DigestDiffers,
        })
    }

    /// The receipts that count for a phase.
    pub(super) fn counting(&mut self, phase: PhaseId) -> Counting {
        let Some(id) = self.listing.of_phase(phase).next().cloned() else {
            return Counting::default();
        };
        let Some(newest) = self.receipt(&id) else {
            return Counting::default();
        };
        self.counts.insert(id.as_str().to_owned());
        let real = self.walk(id, newest.clone(), SpecReceipt::is_real, |receipt| {
            receipt.last_real.as_ref()
        });
        let Some((real_id, newest_real)) = real else {
            return Counting {
                newest: Some(newest),
                ..Counting::default()
            };
        };
        self.newest_real.insert(phase, real_id.sequence());
        self.counts.insert(real_id.as_str().to_owned());
        let success = self.walk(
            real_id,
            newest_real.clone(),
            SpecReceipt::is_real_success,
            |receipt| receipt.last_success.as_ref(),
        );
        self.counts
            .extend(success.iter().map(|(id, _)| id.as_str().to_owned()));
        Counting {
            newest: Some(newest),
            newest_real: Some(newest_real),
            last_success: success.map(|(_, read)| read),
        }
    }

    /// Whether a receipt counts for one of the requested phases.
    pub(super) fn counts(&self, id: &ReceiptId) -> bool {
        self.counts.contains(id.as_str())
    }

    /// The newest accepted receipt from this one back. Links are followed where receipts have them; a
    /// receipt that should have a link but has none is the first.
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

    /// The receipt that a link of the same phase names. One before the oldest existing receipt was
    /// pruned.
    fn follow(&mut self, from: &ReceiptId, link: &ReceiptLink) -> Option<ReceiptId> {
        let id = link.receipt_id.parse::<ReceiptId>().ok();
        let id = id.filter(|id| id.phase() == from.phase() && id.sequence() < from.sequence());
        let Some(id) = id else {
            self.problem(from, ReceiptProblemKind::ChainBroken);
            return None;
        };
        self.is_linked_rightly(&id, link.digest).then_some(id)
    }

    /// Whether a receipt exists, can be trusted and has this digest; problems are reported.
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

    /// Compares the receipts with the links that name their predecessors. For those that count, the next
    /// receipt is read as well, even if it does not count.
    fn check_previous(&mut self) {
        let counting = self.trusted().filter(|(id, _)| self.counts(id));
        let disowned = counting.filter(|(id, read)| {
            // After a gap, which is reported, nothing names the predecessor.
            let next = self
                .listing
                .after(id.sequence())
                .filter(|next| next.sequence() == id.sequence() + 1);
            let before = next
                .and_then(|next| self.load(next).ok())
                .and_then(|next| next.receipt.previous);
            before.is_some_and(|link| link.receipt_id != id.as_str() || link.digest != read.digest)
        });
        let disowned: Vec<ReceiptId> = disowned.map(|(id, _)| id.clone()).collect();
        for id in disowned {
            // If two receipts share a number, the link of the next one says nothing about the other.
            if self.listing.at(id.sequence()).count() == 1 {
                self.problem(&id, ReceiptProblemKind::ChainBroken);
            }
        }
        // A promotion names the previous receipt, unless that cannot be trusted or was pruned.
        let unlinked = self.trusted().filter(|(id, read)| {
            let receipt = &read.receipt;
            id.sequence() > 1
                && receipt.previous.is_none()
                && receipt.schema_version == RECEIPT_SCHEMA
        });
        let unlinked: Vec<ReceiptId> = unlinked.map(|(id, _)| id.clone()).collect();
        for id in unlinked {
            let before = self.listing.before(id.sequence()).cloned();
            if before.is_some_and(|before| self.load(&before).is_ok()) {
                self.problem(&id, ReceiptProblemKind::ChainBroken);
            }
        }
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
            let matters = match self.listing.find(&id) {
                Some(_) => self.read.contains_key(id.as_str()),
                None => self.may_have_counted(&id),
            };
            if matters {
                self.is_linked_rightly(&id, link.digest);
            }
        }
    }

    /// Whether a newer real receipt of its phase makes this one irrelevant.
    fn is_superseded(&self, id: &ReceiptId) -> bool {
        self.newest_real
            .get(&id.phase())
            .is_some_and(|newest| *newest > id.sequence())
    }

    /// Whether a missing receipt may have counted, or one that counts has its sequence number.
    fn may_have_counted(&self, id: &ReceiptId) -> bool {
        !self.is_superseded(id)
            || self
                .listing
                .at(id.sequence())
                .any(|other| !self.is_superseded(other))
    }

    /// Reports problems of the names that can hide or duplicate a receipt which could still count; after
    /// the phases have run again they no longer matter. All phases must have been requested before.
    fn check_names(&mut self) {
        let mut found = Vec::new();
        let doubled = self
            .listing
            .doubled()
            .filter(|(id, _)| !self.is_superseded(id));
        for (looked_at, (id, other)) in doubled.enumerate() {
            // Beyond this number, the rest is reported as one.
            let is_last = looked_at == MAX_TOLD;
            let counts = is_last || !matches!(self.load(id), Ok(read) if !read.receipt.is_real(id));
            if counts {
                let kind = ReceiptProblemKind::PlaceTaken {
                    other: other.file_name(),
                };
                let file = if is_last {
                    "and more".to_owned()
                } else {
                    id.file_name()
                };
                found.push(ReceiptProblem {
                    file,
                    phase: Some(id.phase()),
                    kind,
                });
            }
            if is_last {
                break;
            }
        }
        let gaps = self.listing.gaps().map(|(first, last)| {
            let older = self
                .newest_real
                .iter()
                .filter(|(_, newest)| **newest < last);
            (
                first,
                last,
                older.map(|(phase, _)| *phase).collect::<Vec<_>>(),
            )
        });
        // The newest come first: nothing before a gap that hides nothing can hide anything.
        let mut gaps = gaps.take_while(|(.., older)| !older.is_empty());
        for (first, last, older) in gaps.by_ref().take(MAX_TOLD) {
            let file = if first == last {
                format!("{first:04}")
            } else {
                format!("{first:04}–{last:04}")
            };
            found.push(ReceiptProblem {
                file,
                phase: None,
                kind: ReceiptProblemKind::Gap { older },
            });
        }
        if let Some((.., older)) = gaps.next() {
            let file = format!("{} more", gaps.count() + 1);
            found.push(ReceiptProblem {
                file,
                phase: None,
                kind: ReceiptProblemKind::Gap { older },
            });
        }
        self.problems.append(&mut found);
        self.problems.extend(self.listing.foreign());
    }

    /// The last earlier success with a model call, if this fixup receipt has none. It is only
    /// informative, so its problems are not reported.
    fn asked_before(&self, phase: PhaseId, receipt: &SpecReceipt) -> Option<SpecReceipt> {
        let asks = |receipt: &SpecReceipt| {
            receipt
                .phase(phase.as_str())
                .is_some_and(|entry| entry.llm.is_some())
        };
        if phase != PhaseId::Fixup || asks(receipt) {
            return None;
        }
        let mut link = receipt.last_success.clone();
        for _ in 0..FARTHEST_ASKED {
            let ReceiptLink { receipt_id, digest } = link?;
            let read = self
                .load(&receipt_id.parse().ok()?)
                .ok()
                .filter(|read| read.digest == digest)?;
            if asks(&read.receipt) {
                return Some(read.receipt);
            }
            link = read.receipt.last_success;
        }
        None
    }

    /// The receipts that were read and can be trusted.
    pub(super) fn trusted(&self) -> impl Iterator<Item = (&ReceiptId, &ReadReceipt)> {
        self.read.values().flatten().map(|(id, read)| (id, read))
    }

    pub(super) fn problem(&mut self, id: &ReceiptId, kind: ReceiptProblemKind) {
        let problem = ReceiptProblem {
            file: id.file_name(),
            phase: Some(id.phase()),
            kind,
        };
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }
}

/// Reads the state of a spec.
pub(super) fn state(
    store: &SpecStore,
    recorded: Option<&RecordedReceipts<'_>>,
) -> Result<SpecState, SpecError> {
    let mut cache = ReceiptCache::open(store)?;
    let mut files = Comparison::new(store.dir());
    let mut phases = Vec::with_capacity(PhaseId::ALL.len());
    for phase in PhaseId::ALL {
        let Counting {
            newest,
            newest_real,
            last_success,
        } = cache.counting(phase);
        let receipt = |read: Option<ReadReceipt>| read.map(|read| read.receipt);
        let last_success = receipt(last_success);
        let phase_entry = last_success
            .as_ref()
            .and_then(|success| success.phase(phase.as_str()));
        let mut track = |records: &[FileRecord], requested: fn(&FileRecord) -> bool| {
            let request = records.iter().filter(|record| requested(record));
            request
                .map(|record| TrackedRecord {
                    record: record.clone(),
                    found: files.state(record),
                })
                .collect()
        };
        phases.push(PhaseState {
            phase,
            outputs: phase_entry.map_or_else(Vec::new, |entry| track(&entry.outputs, |_| true)),
            inputs: phase_entry.map_or_else(Vec::new, |entry| track(&entry.inputs, is_of_the_spec)),
            newest: receipt(newest),
            last_call_receipt: newest_real
                .as_ref()
                .and_then(|read| cache.asked_before(phase, &read.receipt)),
            newest_real: receipt(newest_real),
            last_success,
        });
    }
    check(&mut cache, store, recorded)?;
    Ok(SpecState {
        spec: store.spec().clone(),
        fixups_undone: undone(store, &phases),
        phases,
        receipts: cache.listing.count(),
        problems: cache.problems,
        not_from_here: cache.not_from_here,
        has_idea: files.is_file(IDEA),
    })
}

/// All trusted receipts, the oldest first, and the problems of the others, by the same rules as
/// [`state`], which reads fewer of them.
pub(super) fn history(
    store: &SpecStore,
    recorded: Option<&RecordedReceipts<'_>>,
) -> Result<(Vec<SpecReceipt>, Vec<ReceiptProblem>), SpecError> {
    let mut cache = ReceiptCache::open(store)?;
    for phase in PhaseId::ALL {
        cache.counting(phase);
    }
    let ids: Vec<ReceiptId> = cache.listing.all().cloned().collect();
    let read: Vec<(ReceiptId, ReadReceipt)> = ids
        .into_iter()
        .filter_map(|id| cache.receipt(&id).map(|read| (id, read)))
        .collect();
    check(&mut cache, store, recorded)?;
    let problems = cache.problems;
    // A receipt's own problems matter as much as those that other receipts reveal.
    let is_believed = |id: &ReceiptId| {
        let file = id.file_name();
        let disowned = |kind: &ReceiptProblemKind| {
            matches!(
                kind,
                ReceiptProblemKind::LedgerDiffers | ReceiptProblemKind::ChainBroken
            )
        };
        !problems
            .iter()
            .any(|problem| problem.file == file && disowned(&problem.kind))
    };
    let receipts = read
        .into_iter()
        .filter(|(id, _)| is_believed(id))
        .map(|(_, read)| read.receipt)
        .collect();
    Ok((receipts, problems))
}

/// Compares the receipts with the links, the ledger and the names. All phases must have been requested
/// before.
fn check(
    cache: &mut ReceiptCache<'_>,
    store: &SpecStore,
    recorded: Option<&RecordedReceipts<'_>>,
) -> Result<(), SpecError> {
    cache.check_previous();
    let staged = promotion::staged(store)?;
    let mut unfinished = None;
    if let Some(staged) = &staged {
        let is_known = match recorded {
            Some(recorded) => recorded.is_recorded(store, &staged.id, staged.digest)?,
            None => false,
        };
        let kind = if is_known || promotion::marked(store) == Some(staged.digest) {
            unfinished = Some(&staged.id);
            ReceiptProblemKind::PromotionUnfinished
        } else {
            let replaces = staged
                .records
                .iter()
                .map(|record| record.path.clone())
                .collect();
            ReceiptProblemKind::PromotionForeign { replaces }
        };
        cache.problems.push(ReceiptProblem {
            file: staged.id.file_name(),
            phase: None,
            kind,
        });
    }
    if let Some(recorded) = recorded {
        recorded.compare(cache, store, unfinished)?;
    }
    cache.check_names();
    Ok(())
}

/// Whether it names its schema, and so has a digest.
fn is_named(read: &ReadReceipt) -> bool {
    read.receipt.schema_version == RECEIPT_SCHEMA
}

/// The project files that a fixup changed, according to the newest real receipt of the phase, and that
/// have their old content again.
fn undone(store: &SpecStore, phases: &[PhaseState]) -> Vec<String> {
    let newest = phases.iter().find(|known| known.phase == PhaseId::Fixup);
    let newest =
        newest.and_then(|known| known.newest_real.as_ref()?.phase(PhaseId::Fixup.as_str()));
    let fixups = newest.and_then(|entry| entry.fixups.as_ref());
    let applied = fixups.filter(|fixups| fixups.stage == FixupStage::Applied);
    let files = applied
        .map(|fixups| fixups.files.as_slice())
        .unwrap_or_default()
        .iter()
        .take(MAX_FIXED);
    let root = store.project().root();
    let is_undone = |file: &&FixedFile| {
        file.before != file.after
            && file.path.parse::<RepoPath>().is_ok_and(|path| {
                let bytes = read_file(&root.join(path.as_str()), MAX_FILE);
                bytes.is_ok_and(|bytes| bytes.as_deref().map(Digest::compute) == file.before)
            })
    };
    files
        .filter(is_undone)
        .map(|file| file.path.clone())
        .collect()
}

/// Whether an input is in the spec's directory; project files change all the time, and make no phase
/// stale.
fn is_of_the_spec(record: &FileRecord) -> bool {
    let folder = record.path.split('/').next();
    folder == Some(ARTIFACTS) || folder == Some(CONTEXT)
}
