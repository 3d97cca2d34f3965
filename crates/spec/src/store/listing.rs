//! The names in `receipts/`: what can be told of receipts without reading one.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use crucible_host::fs::FsError;

use super::place::{RECEIPTS, is_directory};
use crate::error::SpecError;
use crate::phase_id::PhaseId;
use crate::receipt::ReceiptId;
use crate::state::{ReceiptProblem, ReceiptProblemKind};

/// What the names of files begin with that we write and have not finished; whoever locks the spec next removes them.
const UNFINISHED: &str = ".tmp-";

/// More of a kind than this are not told one by one: foreign names, gaps, places that are taken twice.
pub(super) const MAX_TOLD: usize = 20;

/// The receipts that are there, by their names.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// By sequence, and by name where a sequence stands twice.
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
        let fail = |source: io::Error| FsError::Io { action: "list", path: receipts.clone(), source };
        let mut found = Self::default();
        for entry in std::fs::read_dir(&receipts).map_err(fail)? {
            let name = entry.map_err(fail)?.file_name();
            if name.as_encoded_bytes().starts_with(UNFINISHED.as_bytes()) {
                continue;
            }
            let id = name.to_str().and_then(|name| name.strip_suffix(".json")?.parse().ok());
            match id {
                Some(id) => found.ids.push(id),
                None => found.foreign.push(name.to_string_lossy().into_owned()),
            }
        }
        found.ids.sort_unstable_by(|a, b| (a.sequence(), a.as_str()).cmp(&(b.sequence(), b.as_str())));
        for (place, id) in found.ids.iter().enumerate() {
            found.by_phase.entry(id.phase()).or_default().push(place);
        }
        found.foreign.sort_unstable();
        found.foreign_untold = found.foreign.len().saturating_sub(MAX_TOLD) as u64;
        found.foreign.truncate(MAX_TOLD);
        Ok(found)
    }

    /// How many there are.
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

    /// The sequence of the first; 0 where there is none.
    pub(super) fn lowest(&self) -> u64 {
        self.ids.first().map_or(0, ReceiptId::sequence)
    }

    /// The sequence of the next.
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

    /// The last receipt before this place.
    pub(super) fn before(&self, place: u64) -> Option<&ReceiptId> {
        self.ids[..self.ids.partition_point(|id| id.sequence() < place)].last()
    }

    /// The next receipt behind this place.
    pub(super) fn after(&self, place: u64) -> Option<&ReceiptId> {
        self.ids.get(self.ids.partition_point(|id| id.sequence() <= place))
    }

    /// The receipts in this place.
    pub(super) fn at(&self, place: u64) -> impl Iterator<Item = &ReceiptId> {
        let from = self.ids.partition_point(|id| id.sequence() < place);
        self.ids[from..].iter().take_while(move |id| id.sequence() == place)
    }

    /// Names that are none of a receipt.
    pub(super) fn foreign(&self) -> impl Iterator<Item = ReceiptProblem> {
        let more = (self.foreign_untold > 0).then(|| format!("{} more", self.foreign_untold));
        let problem = |file| ReceiptProblem { file, phase: None, kind: ReceiptProblemKind::ForeignName };
        self.foreign.iter().cloned().chain(more).map(problem)
    }

    /// Receipts that share their place with another one, which is told too; the newest first.
    pub(super) fn doubled(&self) -> impl Iterator<Item = (&ReceiptId, &ReceiptId)> {
        self.ids.iter().enumerate().rev().filter_map(|(place, id)| {
            let neighbours = [place.checked_sub(1), place.checked_add(1)];
            let mut neighbours = neighbours.into_iter().flatten().filter_map(|place| self.ids.get(place));
            neighbours.find(|other| other.sequence() == id.sequence()).map(|other| (id, other))
        })
    }

    /// The first and the last of the places that are empty between others; the newest first. What is missing at the beginning was pruned.
    pub(super) fn gaps(&self) -> impl Iterator<Item = (u64, u64)> {
        let pairs = self.ids.windows(2).rev().map(|pair| (pair[0].sequence(), pair[1].sequence()));
        pairs.filter(|(before, after)| after - before > 1).map(|(before, after)| (before + 1, after - 1))
    }
}
