//! Needs for what a model asks for after the first pack: the files that share most with some words, and the lines of a file
//! that are shown where not all of it can be.
//!
//! The same ranking as for the first pack, of fewer files: those that share nothing with the words are never chosen.

use std::collections::HashSet;
use std::path::Path;

use crucible_model::{ByteLimit, FileLimit, RepoPath};
use crucible_pack::{Goal, LineRange, Need, RankLimits, Surroundings, rank_with};
use crucible_repo::TreeReader;

use super::RANK_READ_ALL;
use super::excerpt::{ExcerptReasons, lines_to_show};
use super::pointers::{Pointers, imports_of};
use super::portion::{MAX_MARKS, READ, show_parts};
use super::survey::{ListedFile, survey};

/// The files of one search.
const MAX_FOUND: u64 = 3;

/// The best of `tracked` for these words, in parts where they are larger than their share of `max_bytes`.
pub(crate) fn search(
    top: &Path,
    words: &str,
    tracked: &[&(RepoPath, u64)],
    max_bytes: u64,
) -> Vec<Need> {
    let goal = Goal::new(words);
    let listed: Vec<ListedFile> = tracked
        .iter()
        .map(|(path, size)| ListedFile {
            path: path.clone(),
            size: Some(*size),
        })
        .collect();
    let looks = survey(top, &goal, &listed, RANK_READ_ALL, &HashSet::new());
    let candidates = looks.into_iter().map(|look| look.candidate).collect();
    let limits = RankLimits {
        max_files: FileLimit(MAX_FOUND),
        max_total_bytes: ByteLimit(max_bytes),
        outlines: false,
    };
    let paths: Vec<&RepoPath> = tracked.iter().map(|(path, _)| path).collect();
    let imports = imports_of(top, &paths);
    let around = Surroundings {
        imports: &imports,
        ..Surroundings::default()
    };
    let mut ranking = rank_with(&goal, candidates, &limits, &around);
    ranking
        .chosen
        .retain(|choice| choice.score > choice.parts.manifest);
    for choice in &mut ranking.chosen {
        choice.allowance = choice.allowance.min(max_bytes / MAX_FOUND);
    }
    show_parts(top, &goal, &Pointers::default(), &mut ranking);
    ranking.needs()
}

/// The lines of a file that fit `allowance` bytes, chosen by the words of a goal; none where none fits.
pub(crate) fn fitting_lines(
    top: &Path,
    goal: &Goal,
    path: &RepoPath,
    allowance: u64,
) -> Vec<LineRange> {
    let mut bytes = Vec::new();
    let read = TreeReader::open(top).and_then(|reader| reader.read_prefix(path, READ, &mut bytes));
    if read.is_err() {
        return Vec::new();
    }
    let requested = ExcerptReasons {
        marks: goal.marks(&bytes, MAX_MARKS),
        ..ExcerptReasons::default()
    };
    lines_to_show(
        path,
        &String::from_utf8_lossy(&bytes),
        &requested,
        allowance,
    )
}
