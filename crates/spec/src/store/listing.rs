//! Lists the names in `receipts/`: what is known about receipts without reading one.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use crucible_host::fs::FsError;

use super::place::{RECEIPTS, is_directory};
use crate::error::SpecError;
use crate::phase_id::PhaseId;
use crate::receipt::ReceiptId;
use crate::state::{ReceiptProblem, ReceiptProblemKind};

/// The prefix of files that are not completely written; the next process that locks the spec deletes
/// them.
const UNFINISHED: &str = ".tmp-";

/// The most problems of a kind that are listed: foreign names, gaps, repeated sequence numbers.
pub(super) const MAX_TOLD: usize = 20;

/// The existing receipts, by name.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Sorted by sequence number, and by name where a number is repeated.
    ids: Vec<ReceiptId>,
    by_phase: BTreeMap<PhaseId, Vec<usize>>,
    foreign: Vec<String>,
    foreign_untold: u64,
}

impl Listing {
    /// Lists the receipts of the spec in `dir`.
    pub(super) fn read(dir: &Path) -> Result<Self, SpecError> {
        let receipts = dir.join(RECEIPTS);
        if !is_directory(&receipts)? {
            return Ok(Self::default());
        }
        let fail = |source: io::Error| FsError::Io {
            action: "list",
            path: receipts.clone(),
            source,
        };
        let mut found = Self::default();
        for entry in std::fs::read_dir(&receipts).map_err(fail)? {
            let name = entry.map_err(fail)?.file_name();
            if name.as_encoded_bytes().starts_with(UNFINISHED.as_bytes()) {
                continue;
            }
            let id = name
                .to_str()
                .and_then(|name| name.strip_suffix(".json")?.parse().ok());
            match id {
                Some(id) => found.ids.push(id),
                None => found.foreign.push(name.to_string_lossy().into_owned()),
            }
        }
        found
            .ids
            .sort_unstable_by(|a, b| (a.sequence(), a.as_str()).cmp(&(b.sequence(), b.as_str())));
        for (place, id) in found.ids.iter().enumerate() {
            found.by_phase.entry(id.phase()).or_default().push(place);
        }
        found.foreign.sort_unstable();
        found.foreign_untold = found.foreign.len().saturating_sub(MAX_TOLD) as u64;
        found.foreign.truncate(MAX_TOLD);
        Ok(found)
    }

    /// The number of receipts.
    pub(super) fn count(&self) -> u64 {
        self.ids.len() as u64
    }

    /// The last receipt of the spec.
    pub(super) fn last(&self) -> Option<&ReceiptId> {
        self.ids.last()
    }

    /// All, the oldest first.
    pub(super) fn all(&self) -> impl Iterator<Item = &ReceiptId> {
        self.ids.iter()
    }

    /// The sequence number of the first; 0 if the list is empty.
    pub(super) fn lowest(&self) -> u64 {
        self.ids.first().map_or(0, ReceiptId::sequence)
    }

    /// The next free sequence number.
    pub(super) fn next_sequence(&self) -> u64 {
        self.last().map_or(0, ReceiptId::sequence).saturating_add(1)
    }

    /// The receipts of a phase, the newest first.
    pub(super) fn of_phase(&self, phase: PhaseId) -> impl Iterator<Item = &ReceiptId> {
        let places = self.by_phase.get(&phase).map_or(&[][..], Vec::as_slice);
        places.iter().rev().filter_map(|place| self.ids.get(*place))
    }

    /// The receipt of this name.
    pub(super) fn find(&self, id: &ReceiptId) -> Option<&ReceiptId> {
        self.at(id.sequence()).find(|other| *other == id)
    }

    /// The last receipt before this sequence number.
    pub(super) fn before(&self, place: u64) -> Option<&ReceiptId> {
        self.ids[..self.ids.partition_point(|id| id.sequence() < place)].last()
    }

    /// The next receipt after this sequence number.
    pub(super) fn after(&self, place: u64) -> Option<&ReceiptId> {
        self.ids
            .get(self.ids.partition_point(|id| id.sequence() <= place))
    }

    /// The receipts with this sequence number.
    pub(super) fn at(&self, place: u64) -> impl Iterator<Item = &ReceiptId> {
        let from = self.ids.partition_point(|id| id.sequence() < place);
        self.ids[from..]
            .iter()
            .take_while(move |id| id.sequence() == place)
    }

    /// Names that are not receipt names.
    pub(super) fn foreign(&self) -> impl Iterator<Item = ReceiptProblem> {
        let more = (self.foreign_untold > 0).then(|| format!("{} more", self.foreign_untold));
        let problem = |file| ReceiptProblem {
            file,
            phase: None,
            kind: ReceiptProblemKind::ForeignName,
        };
        self.foreign.iter().cloned().chain(more).map(problem)
    }

    /// Receipts that share their sequence number with another one, which is returned as well; the newest
    /// first.
    pub(super) fn doubled(&self) -> impl Iterator<Item = (&ReceiptId, &ReceiptId)> {
        self.ids.iter().enumerate().rev().filter_map(|(place, id)| {
            let neighbours = [place.checked_sub(1), place.checked_add(1)];
            let mut neighbours = neighbours
                .into_iter()
                .flatten()
                .filter_map(|place| self.ids.get(place));
            neighbours
                .find(|other| other.sequence() == id.sequence())
                .map(|other| (id, other))
        })
    }

    /// The first and last numbers of gaps in the sequence; the newest first. Receipts missing at the
    /// beginning were pruned.
    pub(super) fn gaps(&self) -> impl Iterator<Item = (u64, u64)> {
        let pairs = self
            .ids
            .windows(2)
            .rev()
            .map(|pair| (pair[0].sequence(), pair[1].sequence()));
        pairs
            .filter(|(before, after)| after - before > 1)
            .map(|(before, after)| (before + 1, after - 1))
    }
}
