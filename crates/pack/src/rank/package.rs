//! The sources that a change of the best one may need as well: those of its directory and below it, those that failing tests import, and those
//! that share something with the goal.
//!
//! What of them is not worth its bytes is shown as an outline, so that a model knows that it is there and can ask for it. Room for outlines is
//! kept from other files, up to a share of the limits.

use std::collections::{BTreeMap, BTreeSet};

use crucible_model::{Denial, RepoPath, denied_place, is_source};

use super::class::is_beside;
use super::goal::Standing;
use super::shares::Room;
use super::{RankLimits, Scored};

/// The most bytes of one outline.
pub(super) const OUTLINE: u64 = 480;

/// A source of another place with less than this part of the best score is not shown as an outline.
const WEAKEST: u64 = 8;

/// What all outlines together may take of the files, and of the bytes, as one part in so many.
const PART_OF_FILES: u64 = 2;
const PART_OF_BYTES: u64 = 6;

/// The sources that wait for an outline and are not chosen yet.
pub(super) struct Package {
    waiting: BTreeMap<RepoPath, Nearness>,
    /// How many files are kept for outlines, and for how many of them bytes are.
    files: u64,
    most: u64,
}

/// Why a source waits for an outline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nearness {
    /// It lies in the directory of the best source, or below it.
    Inside,
    /// Failing tests or the goal point at it.
    Related,
}

impl Package {
    /// The package of the best of these files, which are sorted; of none where nothing shares anything with the goal, or where
    /// outlines are not asked for.
    pub(super) fn new(scored: &[Scored], limits: &RankLimits, has_outlines: bool) -> Self {
        let most = limits.max_total_bytes.0 / PART_OF_BYTES / OUTLINE;
        let files = limits.max_files.0 / PART_OF_FILES;
        let is_source = |file: &&Scored| {
            let (path, standing) = (&file.candidate.path, file.candidate.standing);
            is_source(path)
                && !is_beside(path)
                && denied_place(path, Denial::Shown).is_none()
                && !matches!(standing, Standing::Withheld(_))
        };
        let best = scored
            .iter()
            .filter(is_source)
            .find(|file| file.parts.relevance() > 0);
        let (Some(best), true) = (best, has_outlines) else {
            return Self {
                waiting: BTreeMap::new(),
                files: 0,
                most: 0,
            };
        };
        let directory = best
            .candidate
            .path
            .as_str()
            .rsplit_once('/')
            .map(|(directory, _)| directory);
        let nearness = |file: &Scored| {
            let path = file.candidate.path.as_str();
            let is_in = match directory {
                None => !path.contains('/'),
                Some(directory) => path
                    .strip_prefix(directory)
                    .is_some_and(|rest| rest.starts_with('/')),
            };
            let relevance = file.parts.relevance().saturating_mul(WEAKEST);
            let is_related = file.parts.evidence > 0 || relevance >= best.parts.relevance();
            let nearness = match (is_in, is_related) {
                (true, _) => Nearness::Inside,
                (false, true) => Nearness::Related,
                (false, false) => return None,
            };
            (file.candidate.standing == Standing::Asked)
                .then(|| (file.candidate.path.clone(), nearness))
        };
        let sources = scored.iter().filter(is_source);
        Self {
            waiting: sources.filter_map(nearness).collect(),
            files,
            most,
        }
    }

    /// Whether a file is one of those that wait.
    fn holds(&self, path: &RepoPath) -> bool {
        self.waiting.contains_key(path)
    }

    /// A file is chosen.
    pub(super) fn chosen(&mut self, path: &RepoPath) {
        self.waiting.remove(path);
    }

    /// Takes the outlines of as many of these files, which are sorted, as there is room for: in turn one inside of the directory and one outside.
    /// Returns their places in the list.
    pub(super) fn outlines<'f>(
        &mut self,
        files: impl Iterator<Item = (&'f RepoPath, u64)>,
        budget: &mut Room,
    ) -> BTreeSet<usize> {
        let (mut inside, mut related) = (Vec::new(), Vec::new());
        for (at, (path, size)) in files.enumerate() {
            match self.waiting.get(path) {
                Some(Nearness::Inside) => inside.push((at, size)),
                Some(Nearness::Related) => related.push((at, size)),
                None => {}
            }
        }
        let mut positions = BTreeSet::new();
        for turn in 0..inside.len().max(related.len()) {
            for (at, size) in [inside.get(turn), related.get(turn)].into_iter().flatten() {
                if self.most > 0 && budget.takes_outline(*size) {
                    self.most -= 1;
                    positions.insert(*at);
                }
            }
        }
        positions
    }

    /// The files and bytes that are kept for what waits beside `path`.
    pub(super) fn reserved_size(&self, path: &RepoPath) -> (u64, u64) {
        let others = self.waiting.len() - usize::from(self.holds(path));
        let outlines = self.most.min(others as u64);
        (outlines.min(self.files), outlines * OUTLINE)
    }
}
