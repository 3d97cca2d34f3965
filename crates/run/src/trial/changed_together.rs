//! Failing tests that wait for a change, read from git's history: those that one commit of tests changed.

use std::collections::BTreeSet;

use crucible_model::is_source;
use crucible_patch::is_test_path;
use crucible_repo::{Git, Oid};
use crucible_verify::{GateBefore, TestStatus, changed_tests};

/// How many commits are looked at, and how many diffs are read.
const COMMITS: u32 = 50;
const DIFFS: usize = 5;
/// The most test files of a commit. Larger ones move or reformat files.
const FILES: usize = 200;

/// What the last commits before a change say of its failing tests.
#[derive(Debug, Default)]
pub(crate) struct PendingTests {
    /// One set for each commit that changed tests and no source, if most of its tests fail: its author wrote them for a change
    /// still to come.
    pub(crate) commit_sets: Vec<BTreeSet<String>>,
    /// All failing tests that such a commit changed. If the newest commit is one, every failing test may wait for the change:
    /// its lines need not name them.
    pub(crate) all: BTreeSet<String>,
}

/// Returns the failing tests of `gates` that the last commits up to `base` changed. A history that cannot be read gives none.
pub(crate) async fn waiting_tests(git: &Git, base: &Oid, gates: &[GateBefore]) -> PendingTests {
    let mut waiting = PendingTests::default();
    let results = || gates.iter().filter_map(|gate| gate.results.as_ref());
    let failing: BTreeSet<&str> = results()
        .flat_map(|results| results.with_status(TestStatus::Failed))
        .collect();
    if failing.is_empty() {
        return waiting;
    }
    let mut seen = BTreeSet::new();
    let commits = git.history(base, COMMITS).await.unwrap_or_default();
    let of_tests = commits.iter().filter_map(|commit| {
        let tests: Vec<_> = commit
            .paths
            .iter()
            .filter(|path| is_test_path(path))
            .cloned()
            .collect();
        let is_of_tests = (1..=FILES).contains(&tests.len()) && !commit.paths.iter().any(is_source);
        is_of_tests.then_some((&commit.commit, tests))
    });
    if commits
        .first()
        .is_some_and(|commit| of_tests.clone().any(|(oid, _)| *oid == commit.commit))
    {
        waiting.all.extend(failing.iter().map(ToString::to_string));
    }
    for (commit, paths) in of_tests.take(DIFFS) {
        let Ok(diff) = git.whole_diff(commit, &paths).await else {
            continue;
        };
        let others = results()
            .flat_map(|results| results.tests.keys().map(String::as_str))
            .filter(|test| !failing.contains(test));
        let mut changed = changed_tests(&diff, failing.iter().copied().chain(others));
        // A later commit's version of a test counts.
        changed.retain(|test| seen.insert((*test).to_owned()));
        let all = changed.len();
        changed.retain(|test| failing.contains(test));
        // Where most pass, the commit moved or reformatted tests.
        if changed.len() > 1 && changed.len() * 2 >= all {
            let set = changed.iter().map(ToString::to_string);
            waiting.commit_sets.push(set.collect());
        }
        waiting.all.extend(changed.into_iter().map(str::to_owned));
    }
    waiting
}
