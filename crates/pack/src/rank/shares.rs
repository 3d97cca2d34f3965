//! How the bytes of a budget are shared out among files of a ranking.

use super::class::{self, FileClass};
use super::goal::Goal;
use super::{RankLimits, Scored};

/// A file that is larger than its share is shown in part, but never less of it than this.
const LEAST: u64 = 1024;

/// A file with less than this part of the best score is left out, unless failing gates or the goal's own words point at it.
const WEAKEST: u64 = 8;

/// The most tests besides those that fail.
const MOST_TESTS: u64 = 2;

/// The most files that are chosen for their history although they share little with the goal, and the points that it takes.
const MOST_FOR_HISTORY: u64 = 2;
const FOR_HISTORY: u64 = 20;

/// What is left of a budget.
pub(super) struct Room {
    pub(super) files: u64,
    bytes: u64,
    whole: u64,
    /// The best score of a source.
    best: u64,
    tests: u64,
    for_history: u64,
}

impl Room {
    pub(super) fn new(limits: &RankLimits, best: u64) -> Self {
        let bytes = limits.max_total_bytes.0;
        Self { files: limits.max_files.0, bytes, whole: bytes, best, tests: MOST_TESTS, for_history: MOST_FOR_HISTORY }
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
                self.is_weak(file) && (self.for_history == 0 || file.parts.history < FOR_HISTORY)
            }
            FileClass::Manifest => false,
        }
    }

    fn is_weak(&self, file: &Scored) -> bool {
        file.parts.relevance().saturating_mul(WEAKEST) < self.best
    }

    /// How many bytes of a file may be shown; nothing where there is no room for it.
    pub(super) fn allowance(&self, file: &Scored) -> Option<u64> {
        let (size, left) = (file.candidate.size, self.bytes);
        let relevance = file.parts.relevance();
        let share = match file.candidate.class {
            _ if file.parts.mentioned >= 1000 => self.whole / 2,
            FileClass::Test if file.parts.evidence > 0 => self.whole / 8,
            FileClass::Test => self.whole / 16,
            FileClass::Document | FileClass::Manifest => self.whole / 16,
            FileClass::Source | FileClass::Generated if class::is_beside(&file.candidate.path) => self.whole / 16,
            FileClass::Source | FileClass::Generated => match relevance {
                _ if relevance.saturating_mul(2) >= self.best => self.whole * 2 / 5,
                _ if relevance.saturating_mul(4) >= self.best => self.whole / 5,
                _ => self.whole / 12,
            },
        };
        let allowance = size.min(share.max(LEAST)).min(left);
        (allowance == size || allowance >= LEAST).then_some(allowance)
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
