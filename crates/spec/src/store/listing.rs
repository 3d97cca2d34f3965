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

/// What the names of our own temporary files begin with.
const TEMPORARY: &str = ".tmp-";

/// More foreign names than this are not told one by one.
const MAX_FOREIGN: usize = 20;

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
            let id = name.to_str().and_then(|name| name.strip_suffix(".json")?.parse().ok());
            match id {
                Some(id) => found.ids.push(id),
                None if name.as_encoded_bytes().starts_with(TEMPORARY.as_bytes()) => {}
                None => found.foreign.push(name.to_string_lossy().into_owned()),
            }
        }
        found.ids.sort_unstable_by(|a, b| (a.sequence(), a.as_str()).cmp(&(b.sequence(), b.as_str())));
        for (place, id) in found.ids.iter().enumerate() {
            found.by_phase.entry(id.phase()).or_default().push(place);
        }
        found.foreign.sort_unstable();
        found.foreign_untold = found.foreign.len().saturating_sub(MAX_FOREIGN) as u64;
        found.foreign.truncate(MAX_FOREIGN);
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
        let from = self.ids.partition_point(|other| other.sequence() < id.sequence());
        let same = self.ids[from..].iter().take_while(|other| other.sequence() == id.sequence());
        same.into_iter().find(|other| *other == id)
    }

    /// What is wrong with the names. Receipts that are missing at the beginning were pruned; missing between others, they were taken
    /// away. A place that is taken twice cannot be in one chain.
    pub(super) fn problems(&self) -> Vec<ReceiptProblem> {
        let mut problems: Vec<_> = self
            .foreign
            .iter()
            .map(|name| ReceiptProblem {
                file: name.clone(),
                phase: None,
                kind: ReceiptProblemKind::ForeignName,
            })
            .collect();
        if self.foreign_untold > 0 {
            let file = format!("{} more", self.foreign_untold);
            problems.push(ReceiptProblem { file, phase: None, kind: ReceiptProblemKind::ForeignName });
        }
        for pair in self.ids.windows(2) {
            let (before, after) = (pair[0].sequence(), pair[1].sequence());
            let file = match after - before {
                1 => continue,
                0 => {
                    let file = pair[1].file_name();
                    let phase = Some(pair[1].phase());
                    problems.push(ReceiptProblem { file, phase, kind: ReceiptProblemKind::ChainBroken });
                    continue;
                }
                2 => format!("{:04}", before + 1),
                _ => format!("{:04}–{:04}", before + 1, after - 1),
            };
            problems.push(ReceiptProblem { file, phase: None, kind: ReceiptProblemKind::Gap });
        }
        problems
    }
}
