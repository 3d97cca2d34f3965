//! Ranking points from earlier commits, a small part of the score.
//!
//! A commit whose message shares words with the goal points to the files it changed. Files that changed
//! together with the best ones are likely to matter again. Both weigh less for larger commits. Together they
//! never outweigh a file whose name has a word of the goal.

use std::collections::HashMap;

use crucible_model::{RepoPath, counted};

use super::class::FileClass;
use super::goal::Goal;
use super::{Scored, key};

/// The most points that a file gets for its history.
pub(super) const LIMIT: u64 = 100;

/// The points of a commit of one file, for each pattern that its message shares.
const FOR_MESSAGE: u64 = 12;

/// The points of a commit of two files for the one that was changed together with a good one.
const FOR_COMPANY: u64 = 24;

/// Commits with more files are ignored.
const MAX_FILES: usize = 50;

/// How many patterns of one message count.
const MAX_SHARED: u64 = 3;

/// In the company of how many of the best files a file counts.
const BEST: usize = 3;

/// Earlier commits in any fixed order. The first commit of a history and merges do not belong here, because
/// they say nothing about single files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// The commits with their files.
    pub commits: Vec<PastChange>,
}

/// One commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastChange {
    /// Its message, or the beginning of it.
    pub message: String,
    /// The files that it changed; those that are not candidates do no harm.
    pub paths: Vec<RepoPath>,
}

/// Adds the points for history to each file; generated files get none, because they change with everything.
pub(super) fn weigh(goal: &Goal, history: &History, scored: &mut [Scored]) {
    let relevant_commits: Vec<&PastChange> = history
        .commits
        .iter()
        .filter(|commit| (1..=MAX_FILES).contains(&commit.paths.len()))
        .collect();
    if relevant_commits.is_empty() {
        return;
    }
    let best = best_of(scored);
    let places: HashMap<&str, usize> = scored
        .iter()
        .enumerate()
        .filter(|(_, file)| file.candidate.class != FileClass::Generated)
        .map(|(place, file)| (file.candidate.path.as_str(), place))
        .collect();
    let mut points: HashMap<usize, Past> = HashMap::new();
    for commit in relevant_commits {
        let shared = goal.shared_with_message(&commit.message).min(MAX_SHARED);
        let changed: Vec<usize> = commit
            .paths
            .iter()
            .filter_map(|path| places.get(path.as_str()).copied())
            .collect();
        let count = commit.paths.len() as u64;
        let company = best.iter().find(|good| changed.contains(good));
        for place in changed {
            let past = points.entry(place).or_default();
            if shared > 0 {
                past.points += FOR_MESSAGE * shared * 2 / (count + 1);
                past.mention_count += 1;
            }
            if let Some(good) = company.filter(|good| **good != place) {
                past.points += FOR_COMPANY * 2 / count;
                past.with
                    .entry(*good)
                    .and_modify(|times| *times += 1)
                    .or_insert(1);
            }
        }
    }
    drop(places);
    for (place, past) in points {
        let shares = past.reasons(scored);
        let file = &mut scored[place];
        file.parts.history = past.points.min(LIMIT);
        if file.parts.history > 0 {
            file.reasons = shares;
        }
    }
}

/// What a file's history comes to.
#[derive(Default)]
struct Past {
    points: u64,
    /// Number of commits whose message shares something with the goal.
    mention_count: u64,
    /// In how many commits together with which of the best.
    with: HashMap<usize, u64>,
}

impl Past {
    fn reasons(&self, scored: &[Scored]) -> Vec<String> {
        let mut reasons = Vec::new();
        if self.mention_count > 0 {
            reasons.push(format!(
                "mentioned in {}",
                counted(self.mention_count, "commit message")
            ));
        }
        let mut with: Vec<(&u64, &str)> = self
            .with
            .iter()
            .map(|(place, times)| (times, scored[*place].candidate.path.as_str()))
            .collect();
        with.sort_unstable_by(|a, b| b.0.cmp(a.0).then(a.1.cmp(b.1)));
        if let Some((times, path)) = with.first() {
            let times = if **times == 1 {
                "once".to_owned()
            } else {
                format!("{times} times")
            };
            reasons.push(format!("changed together with `{path}` {times}"));
        }
        reasons
    }
}

/// The places of the files that share most with the goal, the best first.
fn best_of(scored: &[Scored]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..scored.len())
        .filter(|place| {
            let file = &scored[*place];
            file.parts.score() > 0 && file.candidate.class != FileClass::Generated
        })
        .collect();
    places.sort_unstable_by(|a, b| key(&scored[*a]).cmp(&key(&scored[*b])));
    places.truncate(BEST);
    places
}
