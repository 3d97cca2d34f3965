//! Languages and build systems of a repository, for the choice of a workflow. Pure.

use std::collections::BTreeSet;

use crucible_repo::{
    BuildSystem, ProjectFiles, count_languages, detect_build_system, find_projects,
};

/// What the names of a repository's files reveal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepoFacts {
    /// Its languages, the most frequent first.
    pub languages: Vec<String>,
    /// What builds it or parts of it, in the order of their table; never [`BuildSystem::Unknown`].
    pub build_systems: Vec<BuildSystem>,
}

impl RepoFacts {
    /// Reads the paths of the tracked files, in any order. No file is read, so facts that only a manifest's
    /// content shows are unknown.
    #[must_use]
    pub fn from_paths<'p>(paths: impl IntoIterator<Item = &'p str>) -> Self {
        let mut listing: Vec<String> = paths.into_iter().map(str::to_owned).collect();
        listing.sort_unstable();
        let files = ProjectFiles::new(&listing, []);
        let mut systems = BTreeSet::from([detect_build_system(&files).system]);
        systems.extend(
            find_projects(&files)
                .projects
                .into_iter()
                .map(|(_, system)| system),
        );
        systems.remove(&BuildSystem::Unknown);
        Self {
            languages: count_languages(&listing)
                .into_iter()
                .map(|(name, _)| name.to_owned())
                .collect(),
            build_systems: systems.into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_independent_of_order() {
        let paths = [
            "web/package.json",
            "web/yarn.lock",
            "web/a.ts",
            "core/Cargo.toml",
            "core/src/lib.rs",
            "core/b.rs",
        ];
        let facts = RepoFacts::from_paths(paths);
        assert_eq!(facts.languages[0], "Rust", "the most frequent first");
        assert!(
            facts
                .languages
                .iter()
                .any(|language| language == "TypeScript")
        );
        assert_eq!(
            facts.build_systems,
            [BuildSystem::Cargo, BuildSystem::NodeYarn]
        );
        assert_eq!(RepoFacts::from_paths(paths.into_iter().rev()), facts);
        assert_eq!(RepoFacts::from_paths([]), RepoFacts::default());
    }
}
