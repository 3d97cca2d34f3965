//! How the bytes of a budget are shared out among files of a ranking.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crucible_model::RepoPath;

use super::class::{self, FileClass};
use super::goal::Goal;
use super::package::OUTLINE;
use super::{RankLimits, Scored, is_root_manifest};

/// A file that is larger than its share is shown in part, but never less of it than this.
const LEAST: u64 = 1024;

/// A file with less than this part of the best score is left out, unless failing gates or the goal's own words point at it.
const WEAKEST: u64 = 8;
/// The same where failing gates point at files.
const WEAKEST_BESIDE_EVIDENCE: u64 = 3;

/// How many of the best sources are asked for what they import.
const IMPORTERS: usize = 2;

/// What an imported file gets of its importer's points, as one part in so many.
const FOR_IMPORT: u64 = 5;

/// From here on failing gates point at a file as strongly as at any.
const STRONG: u64 = 600;

/// The most tests where no test is known to fail; else only those that fail.
const MAX_TESTS: u64 = 2;

/// The most files that are chosen for their history although they share little with the goal, and the points that it takes.
const MAX_FOR_HISTORY: u64 = 2;
const FOR_HISTORY: u64 = 12;

/// What is left of a budget.
pub(super) struct Room {
    pub(super) files: u64,
    bytes: u64,
    whole: u64,
    /// The best score of a source.
    best: u64,
    tests: u64,
    for_history: u64,
    /// See [`WEAKEST`].
    weakest: u64,
    /// The history that a weak file needs.
    least_history: u64,
}

/// Raises what the best sources import; tells whether it raised anything.
pub(super) fn raise_imported(
    imports: &dyn Fn(&RepoPath) -> BTreeSet<RepoPath>,
    scored: &mut [Scored],
) -> bool {
    let best: Vec<(RepoPath, u64)> = scored
        .iter()
        .filter(|file| file.candidate.class == FileClass::Source && file.parts.relevance() > 0)
        .take(IMPORTERS)
        .map(|file| {
            (
                file.candidate.path.clone(),
                file.parts.relevance() / FOR_IMPORT,
            )
        })
        .collect();
    let mut raised = false;
    for (importer, points) in best {
        let imported = imports(&importer);
        if imported.is_empty() {
            continue;
        }
        for file in scored
            .iter_mut()
            .filter(|file| imported.contains(&file.candidate.path))
        {
            if file.parts.imports < points {
                file.parts.imports = points;
                file.reasons.push(format!("is imported by `{importer}`"));
                raised = true;
            }
        }
    }
    raised
}

impl Room {
    pub(super) fn new(limits: &RankLimits, scored: &[Scored]) -> Self {
        let bytes = limits.max_total_bytes.0;
        let sources = || {
            scored
                .iter()
                .filter(|file| file.candidate.class == FileClass::Source)
        };
        let best = sources()
            .map(|file| file.parts.relevance())
            .max()
            .unwrap_or_default();
        let is_pointed_at = scored.iter().any(|file| file.parts.evidence > 0);
        let weakest = if is_pointed_at {
            WEAKEST_BESIDE_EVIDENCE
        } else {
            WEAKEST
        };
        let weak = sources().filter(|file| file.parts.relevance().saturating_mul(weakest) < best);
        let mut past: Vec<u64> = weak.map(|file| file.parts.history).collect();
        past.sort_unstable_by_key(|points| Reverse(*points));
        let least_history = past
            .get(MAX_FOR_HISTORY as usize - 1)
            .copied()
            .unwrap_or_default()
            .max(FOR_HISTORY);
        Self {
            weakest,
            least_history,
            files: limits.max_files.0,
            bytes,
            whole: bytes,
            best,
            tests: if is_pointed_at { 0 } else { MAX_TESTS },
            for_history: MAX_FOR_HISTORY,
        }
    }

    /// Whether a file has too little in common with the goal to be worth its bytes.
    pub(super) fn is_too_weak(&self, goal: &Goal, file: &Scored) -> bool {
        if file.parts.mentioned > 0 {
            return false;
        }
        match file.candidate.class {
            FileClass::Test => self.tests == 0 && file.parts.evidence == 0,
            FileClass::Document => !goal.asks_for_documents() && self.best > 0,
            FileClass::Source | FileClass::Generated => {
                self.is_weak(file)
                    && (self.for_history == 0 || file.parts.history < self.least_history)
            }
            FileClass::Manifest => !is_root_manifest(&file.candidate) && self.best > 0,
        }
    }

    /// Whether failing gates point at files, and neither they nor the goal at this one: it only shares words.
    fn is_unsupported(&self, file: &Scored) -> bool {
        self.weakest == WEAKEST_BESIDE_EVIDENCE
            && file.parts.evidence == 0
            && file.parts.mentioned == 0
    }

    fn is_weak(&self, file: &Scored) -> bool {
        file.parts.relevance().saturating_mul(self.weakest) < self.best
    }

    /// How many bytes of a file may be shown, beside those that are kept; nothing where there is no room for it.
    pub(super) fn allowance(&self, file: &Scored, kept_bytes: u64) -> Option<u64> {
        let (size, left) = (file.candidate.size, self.bytes.saturating_sub(kept_bytes));
        let relevance = file.parts.relevance();
        let share = match file.candidate.class {
            _ if file.parts.mentioned >= 1000 => self.whole / 2,
            FileClass::Test if file.parts.evidence > 0 => self.whole / 8,
            FileClass::Test => self.whole / 16,
            FileClass::Document => self.whole / 16,
            FileClass::Manifest => self.whole / 60,
            FileClass::Source | FileClass::Generated if class::is_beside(&file.candidate.path) => {
                self.whole / 30
            }
            FileClass::Source | FileClass::Generated => match relevance {
                _ if relevance >= self.best || file.parts.evidence >= STRONG => self.whole / 2,
                _ if relevance.saturating_mul(4) >= self.best.saturating_mul(3) => self.whole / 6,
                _ if relevance.saturating_mul(2) >= self.best => self.whole / 12,
                _ if relevance.saturating_mul(4) >= self.best => self.whole / 20,
                _ => self.whole / 30,
            },
        };
        let share = if self.is_unsupported(file) {
            share.min(self.whole / 12)
        } else {
            share
        };
        let allowance = size.min(share.max(LEAST)).min(left);
        (allowance == size || allowance >= LEAST).then_some(allowance)
    }

    /// Takes the outline of a file of this size, where there is room for it.
    pub(super) fn takes_outline(&mut self, size: u64) -> bool {
        let bytes = size.min(OUTLINE);
        let fits = self.files > 0 && bytes <= self.bytes;
        if fits {
            self.files -= 1;
            self.bytes -= bytes;
        }
        fits
    }

    /// Takes a file into the pack.
    pub(super) fn take(&mut self, file: &Scored, bytes: u64) {
        self.files = self.files.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
        if file.candidate.class == FileClass::Test && file.parts.evidence == 0 {
            self.tests = self.tests.saturating_sub(1);
        } else if file.candidate.class == FileClass::Source && self.is_weak(file) {
            self.for_history = self.for_history.saturating_sub(1);
        }
    }
}
