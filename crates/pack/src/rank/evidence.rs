//! Ranking points from failing gates: trace frames, failing tests and their imports.

use std::collections::{HashMap, HashSet};

use crucible_model::RepoPath;

use super::class::{FileClass, is_beside, tested_name};

/// The points of a file in which a trace has its innermost frame of the repository; each frame further out has fewer.
const FOR_FRAME: u64 = 700;
const LESS_PER_FRAME: u64 = 100;
const LEAST_FOR_FRAME: u64 = 250;

/// The points of a file that holds a failing test.
const FOR_FAILING: u64 = 300;

/// The points of a source that is named like a failing test file.
const FOR_NAME: u64 = 350;

/// The points of a file that a failing test imports, and of one that it imports through another.
const FOR_IMPORT: [u64; 2] = [200, 70];

/// Test names that do not name what they test.
const EMPTY_NAMES: [&str; 8] = ["", "index", "lib", "main", "mod", "test", "tests", "utils"];

/// What failing gates say about files, in any order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Evidence {
    files: HashMap<RepoPath, Clues>,
}

/// What is known about one file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Clues {
    /// Its distance from the innermost frame of a trace.
    frame: Option<u64>,
    /// Whether it holds a failing test.
    fails: bool,
    /// Number of imports between the file and a failing test, from 0.
    import: Option<usize>,
}

impl Evidence {
    /// A trace has a frame in this file, so far from its innermost one.
    pub fn add_frame(&mut self, path: &RepoPath, depth: u64) {
        let clues = self.files.entry(path.clone()).or_default();
        clues.frame = Some(clues.frame.map_or(depth, |known| known.min(depth)));
    }

    /// This file holds a failing test.
    pub fn add_failing(&mut self, path: &RepoPath) {
        self.files.entry(path.clone()).or_default().fails = true;
    }

    /// A failing test imports this file, through so many others.
    pub fn add_import(&mut self, path: &RepoPath, through: usize) {
        let clues = self.files.entry(path.clone()).or_default();
        clues.import = Some(clues.import.map_or(through, |known| known.min(through)));
    }

    /// The files that hold failing tests, sorted.
    #[must_use]
    pub fn failing(&self) -> Vec<&RepoPath> {
        let mut failing: Vec<&RepoPath> = self
            .files
            .iter()
            .filter(|(_, clues)| clues.fails)
            .map(|(path, _)| path)
            .collect();
        failing.sort_unstable();
        failing
    }

    /// Returns the names of what the failing tests test.
    pub(super) fn tested_names(&self) -> HashSet<String> {
        let names = self.failing().into_iter().map(tested_name);
        names
            .filter(|name| !EMPTY_NAMES.contains(&name.as_str()))
            .collect()
    }

    /// The points of a file, and why it has them.
    pub(super) fn weigh(
        &self,
        path: &RepoPath,
        class: FileClass,
        tested: &HashSet<String>,
    ) -> (u64, Vec<String>) {
        let (mut points, mut reasons) = (0, Vec::new());
        let clues = self.files.get(path).copied().unwrap_or_default();
        // A test is part of every failure trace, which adds no information.
        if clues.fails {
            points += FOR_FAILING;
            reasons.push("holds a failing test".to_owned());
        } else if let Some(depth) = clues.frame {
            points += FOR_FRAME
                .saturating_sub(depth.saturating_mul(LESS_PER_FRAME))
                .max(LEAST_FOR_FRAME);
            reasons.push("is on the way to a failure".to_owned());
        }
        if let Some(more) = clues.import.and_then(|through| FOR_IMPORT.get(through)) {
            points += more;
            reasons.push("is imported by a failing test".to_owned());
        }
        if class == FileClass::Source
            && !tested.is_empty()
            && !is_beside(path)
            && tested.contains(&tested_name(path))
        {
            points += FOR_NAME;
            reasons.push("is named like a failing test".to_owned());
        }
        (points, reasons)
    }
}
