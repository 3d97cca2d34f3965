//! Names that some file systems take for one: `src/A.py` and `src/a.py`, or an accent written as part of its letter or behind it.
//!
//! git holds both, and a checkout where they are the same name holds one of them, with the content of either. A patch therefore makes no
//! such pair, among files and directories alike; a pair that stood before is not its doing.

use std::collections::{BTreeMap, BTreeSet};

use crucible_model::{Code, Finding, RepoPath, Verdict};
use icu_normalizer::DecomposingNormalizerBorrowed;

use crate::patch::{Change, Patch};

/// Whether `patch` gives any name that was not there before, so that [`collisions`] has something to judge.
#[must_use]
pub fn adds_paths(patch: &Patch) -> bool {
    created_paths(patch).next().is_some()
}

/// Finds the names that `patch` makes and that meet another one. `standing` are the paths of all files before the patch.
#[must_use]
pub fn collisions<'p>(patch: &Patch, standing: impl IntoIterator<Item = &'p str>) -> Verdict {
    let mut verdict = Verdict::default();
    let lines: BTreeSet<&str> = created_paths(patch).map(RepoPath::as_str).collect();
    if lines.is_empty() {
        return verdict;
    }
    let removed: BTreeSet<&str> = patch
        .files
        .iter()
        .filter_map(removed_path)
        .map(RepoPath::as_str)
        .collect();
    // Every name on the ways to what is made, by what it is taken for.
    let mut taken: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for name in lines.iter().flat_map(|path| path_prefixes(path)) {
        taken.entry(folded(name)).or_default().insert(name);
    }
    let mut stood: BTreeSet<&str> = BTreeSet::new();
    let mut last = "";
    for path in standing {
        let stays = !removed.contains(path);
        // Listings are sorted: what a path shares with the one before it was looked at.
        let shared = shared_directories(last, path);
        for name in path_prefixes(path).filter(|name| name.len() > shared) {
            if let Some(names) = taken.get_mut(&folded(name)) {
                stood.insert(name);
                if stays {
                    names.insert(name);
                }
            }
        }
        last = if stays { path } else { "" };
    }
    for path in lines {
        let other = path_prefixes(path)
            .filter(|name| !stood.contains(name))
            .find_map(|name| {
                let others = taken.get(&folded(name)).into_iter().flatten();
                others.copied().find(|other| *other != name)
            });
        if let Some(other) = other {
            let hint = format!(
                "some systems cannot hold this name beside `{other}`, from which only case or accents tell it apart; \
                 choose another name"
            );
            verdict.push(Finding::error(Code::new("patch-name-collides"), path, hint));
        }
    }
    verdict
}

fn created_paths(patch: &Patch) -> impl Iterator<Item = &RepoPath> {
    let is_new = |change: &Change| !matches!(change, Change::Modify | Change::Delete);
    patch
        .files
        .iter()
        .filter(move |file| is_new(&file.change))
        .map(|file| &file.path)
}

fn removed_path(file: &crate::patch::FilePatch) -> Option<&RepoPath> {
    match &file.change {
        Change::Delete => Some(&file.path),
        Change::Rename { from } => Some(from),
        Change::Create | Change::Modify | Change::Copy { .. } => None,
    }
}

/// The path itself and the directories on the way to it, from the top.
fn path_prefixes(path: &str) -> impl Iterator<Item = &str> {
    let directories = path.match_indices('/').map(|(at, _)| at);
    directories
        .chain([path.len()])
        .map(|end| path.get(..end).unwrap_or_default())
}

/// The length of the last directory that both paths lie in.
fn shared_directories(one: &str, other: &str) -> usize {
    let same = one
        .bytes()
        .zip(other.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let shared = other.as_bytes().get(..same).unwrap_or_default();
    shared.iter().rposition(|byte| *byte == b'/').unwrap_or(0)
}

/// What a name is taken for where neither case nor the form of accents counts.
fn folded(name: &str) -> String {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    let nfd = DecomposingNormalizerBorrowed::new_nfd();
    // By way of upper case, which joins what has several lower cases.
    let lower: String = nfd
        .normalize(name)
        .chars()
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .collect();
    nfd.normalize(&lower).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;

    fn creates(paths: &[&str]) -> String {
        let one = |path: &&str| {
            format!(
                "diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"
            )
        };
        paths.iter().map(one).collect()
    }

    fn found(text: &str, standing: &[&str]) -> Vec<String> {
        let patch = parse(text.as_bytes()).unwrap();
        let verdict = collisions(&patch, standing.iter().copied());
        verdict
            .findings()
            .iter()
            .map(|finding| finding.subject.clone())
            .collect()
    }

    #[test]
    fn names_differing_in_case_or_accents_collide() {
        for (lines, standing, expected) in [
            (&["src/A.py"][..], &["src/a.py"][..], &["src/A.py"][..]),
            (&["Src/b.py"], &["src/a.py"], &["Src/b.py"]),
            (&["a/B"], &["a/b/c"], &["a/B"]),
            (&["caf\u{e9}"], &["cafe\u{301}"], &["caf\u{e9}"]),
            (&["CAF\u{c9}"], &["cafe\u{301}"], &["CAF\u{c9}"]),
            (&["stra\u{df}e"], &["STRASSE"], &["stra\u{df}e"]),
            (&["x/a", "x/A"], &["x/z"], &["x/A", "x/a"]),
            (&["n/a", "N/b"], &[], &["N/b", "n/a"]),
            // Not this patch's doing, or no meeting at all.
            (&["a/new"], &["A/old", "a/old"], &[]),
            (&["a/New"], &["A/old", "a/new", "a/old"], &["a/New"]),
            (&["src/c.py"], &["src/A.py", "src/a.py"], &[]),
            (&["src/b.py"], &["src/a.py", "test/b.py", "srcs/B.py"], &[]),
            (&["cafe"], &["caf\u{e9}"], &[]),
        ] {
            assert_eq!(
                found(&creates(lines), standing),
                expected,
                "{lines:?} beside {standing:?}"
            );
        }
    }

    #[test]
    fn rename_may_change_only_the_case() {
        let renamed = "diff --git a/src/calc.py b/src/Calc.py\nsimilarity index 100%\nrename from src/calc.py\nrename to src/Calc.py\n";
        assert_eq!(found(renamed, &["src/calc.py"]), Vec::<String>::new());
        let copied = renamed.replace("rename", "copy");
        assert_eq!(found(&copied, &["src/calc.py"]), ["src/Calc.py"]);
        let changed = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n";
        assert_eq!(found(changed, &["A", "a"]), Vec::<String>::new());
        assert!(!adds_paths(&parse(changed.as_bytes()).unwrap()));
    }
}
