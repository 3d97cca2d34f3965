//! The languages of a repository, counted by the extensions of its files.

use std::collections::BTreeMap;

use crate::sample::{FileKind, source_language};

/// Counts files per language: the most frequent first, ties by name. Files without a known extension and
/// files written by a package manager are not counted.
#[must_use]
pub fn count_languages(listing: &[String]) -> Vec<(&'static str, u64)> {
    let mut counts: BTreeMap<&'static str, u64> = BTreeMap::new();
    for path in listing {
        let name = path.rsplit('/').next().unwrap_or(path);
        let is_written = FileKind::from_path(path).is_some_and(|kind| kind != FileKind::Lock);
        if is_written && let Some(language) = source_language(name) {
            *counts.entry(language).or_default() += 1;
        }
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    // The sort is stable, and the names are sorted already.
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_sorted_by_count_then_name() {
        let listing = [
            "a.rs",
            "src/b.rs",
            "x.tsx",
            "y.ts",
            "z.py",
            "w.cc",
            "Makefile",
            ".py",
            "py",
            "LICENSE",
            "yarn.lock",
            "package-lock.json",
        ];
        let listing: Vec<String> = listing.map(str::to_owned).into();
        assert_eq!(
            count_languages(&listing),
            [("Rust", 2), ("TypeScript", 2), ("C++", 1), ("Python", 1)]
        );
        assert_eq!(count_languages(&[]), []);
    }
}
