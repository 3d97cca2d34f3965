//! The packages of the best-ranked sources: where a goal names no file for certain, the fix may need any source of them.

use std::collections::BTreeMap;

use crucible_model::{RepoPath, SourcePattern, is_source};
use crucible_pack::{area_of, is_beside, is_of_area};

use crate::scope::{Tree, is_unambiguous_name};

/// A place with more sources than this is too large to be opened; a directory in it may be.
const MAX_SOURCES: usize = 400;

/// A repository with more manifests than this is not searched for packages that depend on another.
const MAX_MANIFESTS: usize = 200;

/// What describes a package, and not a tool's work in some directory of it.
const MANIFESTS: [&str; 11] = [
    "Cargo.toml",
    "build.gradle",
    "build.gradle.kts",
    "composer.json",
    "go.mod",
    "mix.exs",
    "package.json",
    "pom.xml",
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
];

/// The sources of the packages that these files, which are sorted, are about: the package of the best one, then those of the other files, then
/// those that depend on the best one in the same repository, since a change of what it offers changes its callers. The packages of the `red` files, which failing gates name, come second. All of them together hold no
/// more than [`MAX_SOURCES`].
///
/// A package's sources are those of the directory below the nearest manifest (`src/**`, `crates/a/src/**`), or else those of the file's own directory,
/// with what lies below it or without where it is the top of the repository or holds too many. A goal that begins with an area, as in
/// `globset: …` or `fix(globset): …`, means the best file in a directory of that name. A place without a source that `is_new` to the scope is left out.
pub(super) fn packages_of(
    goal: &str,
    best: &[RepoPath],
    red: &[RepoPath],
    tree: &Tree<'_>,
    is_new: impl Fn(&RepoPath) -> bool,
) -> Vec<SourcePattern> {
    let sources: Vec<&RepoPath> = best.iter().filter(|path| is_source(path)).collect();
    let of_area = area_of(goal).and_then(|area| {
        let is_in = |path: &&&RepoPath| {
            let directories = path.directory();
            directories.split('/').any(|name| is_of_area(name, area))
        };
        sources.iter().find(is_in)
    });
    // Declarations of types describe a product; they do not count.
    let is_aside = |path: &RepoPath| is_beside(path) || path.as_str().ends_with(".d.ts");
    let of_product = || sources.iter().find(|path| !is_aside(path));
    let Some(first) = of_area.or_else(of_product).or_else(|| sources.first()) else {
        return Vec::new();
    };
    let packages = Packages::new(tree);
    let others = sources.iter().filter(|path| !is_aside(path));
    let others = others.filter_map(|path| packages.place_of(path));
    // In a repository of several packages, that of a failing test.
    let of_red = red
        .iter()
        .filter(|path| packages.home_of(path).is_some_and(|home| !home.is_empty()))
        .filter_map(|path| packages.place_of(path));
    let mut places: Vec<SourcePattern> = Vec::new();
    let mut remaining = MAX_SOURCES;
    for place in packages
        .place_of(first)
        .into_iter()
        .chain(of_red)
        .chain(others)
        .chain(packages.dependents_of(first))
    {
        let inside = || tree.paths.iter().filter(|path| place.contains(path));
        let count = inside().count();
        let is_first = places.is_empty();
        if (is_first || count <= remaining)
            && !places.contains(&place)
            && inside().any(|path| is_new(path))
        {
            remaining = remaining.saturating_sub(count);
            places.push(place);
        }
    }
    places
}

/// The packages of a repository, by the directories of their manifests.
struct Packages<'a> {
    tree: &'a Tree<'a>,
    manifests: BTreeMap<&'a str, &'a RepoPath>,
}

impl<'a> Packages<'a> {
    fn new(tree: &'a Tree<'a>) -> Self {
        let manifests = tree
            .paths
            .iter()
            .filter(|path| MANIFESTS.contains(&path.file_name()))
            .map(|path| (path.directory(), *path))
            .collect();
        Self { tree, manifests }
    }

    /// The directory of the nearest manifest on the way to a file.
    fn home_of(&self, path: &'a RepoPath) -> Option<&'a str> {
        let mut above = path.as_str();
        while let Some((directory, _)) = above.rsplit_once('/') {
            if self.manifests.contains_key(directory) {
                return Some(directory);
            }
            above = directory;
        }
        self.manifests.contains_key("").then_some("")
    }

    fn place_of(&self, path: &'a RepoPath) -> Option<SourcePattern> {
        let own = path.directory();
        let own: Option<RepoPath> = if own.is_empty() {
            None
        } else {
            Some(own.parse().ok()?)
        };
        if own.as_ref().is_some_and(|own| !is_unambiguous_name(own)) {
            return None;
        }
        let full_path = self.home_of(path).and_then(|home| {
            let below = if home.is_empty() {
                path.as_str()
            } else {
                &path.as_str()[home.len() + 1..]
            };
            let (first, _) = below.split_once('/')?;
            path.as_str()[..path.as_str().len() - below.len() + first.len()]
                .parse()
                .ok()
        });
        let places = full_path
            .filter(is_unambiguous_name)
            .into_iter()
            .chain(own.clone())
            .map(SourcePattern::in_directory);
        let count = |place: &SourcePattern| {
            self.tree
                .paths
                .iter()
                .filter(|path| place.contains(path))
                .count()
        };
        places
            .filter(|place| count(place) <= MAX_SOURCES)
            .chain([SourcePattern::directly_in(own)])
            .next()
    }

    /// The packages whose manifests name the package of a file: by its name, or by a path to its directory.
    fn dependents_of(&self, path: &'a RepoPath) -> Vec<SourcePattern> {
        let Some(home) = self.home_of(path).filter(|home| !home.is_empty()) else {
            return Vec::new();
        };
        if self.manifests.len() > MAX_MANIFESTS {
            return Vec::new();
        }
        let text =
            |manifest: &RepoPath| String::from_utf8_lossy(&self.tree.text(manifest)).into_owned();
        let name = package_name(&text(self.manifests[home]));
        let directory = home.rsplit('/').next().unwrap_or(home);
        let names = |word: &str| {
            name.as_deref() == Some(word)
                || word.starts_with("..")
                    && word.trim_end_matches('/').rsplit('/').next() == Some(directory)
        };
        let depends = |manifest: &RepoPath| words(&text(manifest)).any(names);
        let others = self
            .manifests
            .iter()
            .filter(|(at, _)| **at != home && !at.is_empty());
        let others = others.filter(|(_, manifest)| depends(manifest));
        others
            .filter_map(|(at, _)| at.parse().ok())
            .filter(is_unambiguous_name)
            .map(SourcePattern::in_directory)
            .collect()
    }
}

/// The words of a manifest of any of the formats: what stands between spaces, quotes, brackets and signs.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || "\"'`,:;=()[]{}<>".contains(c))
        .filter(|word| !word.is_empty())
}

/// The name that a manifest gives its package: the word after the first `name`, `module` or `artifactId` that begins a line.
fn package_name(manifest: &str) -> Option<String> {
    manifest.lines().find_map(|line| {
        let mut words = words(line);
        let is_key = matches!(words.next(), Some("name" | "module" | "artifactId"));
        is_key.then(|| words.next().map(str::to_owned)).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package_text(
        best: &[&str],
        tracked: &[String],
        is_new: impl Fn(&RepoPath) -> bool,
    ) -> String {
        told_for("fix it", best, tracked, is_new)
    }

    fn told_for(
        goal: &str,
        best: &[&str],
        tracked: &[String],
        is_new: impl Fn(&RepoPath) -> bool,
    ) -> String {
        places(goal, best, tracked, &|_| Vec::new(), is_new)
    }

    fn places(
        goal: &str,
        best: &[&str],
        tracked: &[String],
        text: &dyn Fn(&RepoPath) -> Vec<u8>,
        is_new: impl Fn(&RepoPath) -> bool,
    ) -> String {
        let best: Vec<RepoPath> = best.iter().map(|path| path.parse().unwrap()).collect();
        let tracked: Vec<RepoPath> = tracked.iter().map(|path| path.parse().unwrap()).collect();
        let red: Vec<RepoPath> = tracked
            .iter()
            .filter(|path| path.as_str().contains("red"))
            .cloned()
            .collect();
        let found = packages_of(goal, &best, &red, &Tree::new(&tracked, text), is_new);
        found
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn dependents_of_best_package_are_open() {
        let tracked: Vec<String> = [
            "Cargo.toml",
            "src/root.rs",
            "a/Cargo.toml",
            "a/src/a.rs",
            "b/Cargo.toml",
            "b/src/b.rs",
            "c/package.json",
            "c/index.js",
            "d/Cargo.toml",
            "d/src/d.rs",
        ]
        .map(Into::into)
        .into();
        let text = |path: &RepoPath| -> Vec<u8> {
            match path.as_str() {
                "Cargo.toml" => "[workspace]\nmembers = [\"a\", \"b\"]\n",
                "a/Cargo.toml" => "[package]\nname = \"the-a\"\n",
                "b/Cargo.toml" => {
                    "[package]\nname = \"b\"\n[dependencies]\nx = { path = \"../a\" }\n"
                }
                "c/package.json" => "{\"dependencies\": {\"the-a\": \"workspace:*\"}}",
                "d/Cargo.toml" => "[package]\nname = \"d\"\ndescription = \"not a\"\n",
                _ => "",
            }
            .into()
        };
        let any = |_: &RepoPath| true;
        assert_eq!(
            places("fix it", &["a/src/a.rs"], &tracked, &text, any),
            "a/src/** b/** c/**"
        );
        assert_eq!(
            places(
                "fix it",
                &["d/src/d.rs", "a/src/a.rs", "a/src/b.rs"],
                &tracked,
                &text,
                any
            ),
            "d/src/** a/src/**"
        );
        let is_new = |path: &RepoPath| path.as_str() != "b/src/b.rs";
        assert_eq!(
            places("fix it", &["a/src/a.rs"], &tracked, &text, is_new),
            "a/src/** c/**"
        );
    }

    #[test]
    fn package_of_failing_test_is_open() {
        let tracked: Vec<String> = [
            "package.json",
            "packages/a/package.json",
            "packages/a/src/index.ts",
            "packages/a/types/a.d.ts",
            "packages/b/package.json",
            "packages/b/src/index.ts",
            "packages/b/src/red.test.ts",
            "test/red.test.ts",
        ]
        .map(Into::into)
        .into();
        let any = |_: &RepoPath| true;
        assert_eq!(
            package_text(
                &["packages/a/types/a.d.ts", "packages/a/src/index.ts"],
                &tracked,
                any
            ),
            "packages/a/src/** packages/b/src/**"
        );
        let only = ["packages/a/types/a.d.ts"];
        assert_eq!(
            package_text(&only, &tracked, any),
            "packages/a/types/** packages/b/src/**"
        );
    }

    #[test]
    fn packages_exceeding_limit_are_not_all_opened() {
        let mut tracked: Vec<String> = (0..MAX_SOURCES - 1)
            .map(|at| format!("a/src/{at}.rs"))
            .collect();
        tracked.extend(
            [
                "a/Cargo.toml",
                "b/Cargo.toml",
                "b/one.rs",
                "b/two.rs",
                "c/Cargo.toml",
                "c/one.rs",
            ]
            .map(Into::into),
        );
        let text = |path: &RepoPath| -> Vec<u8> {
            if path.as_str() == "a/Cargo.toml" {
                "name = \"a\""
            } else {
                "a = 1"
            }
            .into()
        };
        assert_eq!(
            places("fix it", &["a/src/0.rs"], &tracked, &text, |_| true),
            "a/src/** c/**"
        );
    }

    #[test]
    fn package_is_directory_of_best_product_source() {
        let tracked: Vec<String> = [
            "LICENSE.MIT",
            "a.py",
            "b.py",
            "docs/conf.py",
            "src/p/a.py",
            "src/p/deep/b.py",
            "a,b/c.py",
        ]
        .map(Into::into)
        .into();
        let any = |_: &RepoPath| true;
        assert_eq!(
            package_text(&["src/p/a.py", "a.py"], &tracked, any),
            "src/p/** *"
        );
        assert_eq!(
            package_text(
                &["LICENSE.MIT", "docs/conf.py", "src/p/deep/b.py"],
                &tracked,
                any
            ),
            "src/p/deep/**"
        );
        assert_eq!(package_text(&["docs/conf.py"], &tracked, any), "docs/**");
        assert_eq!(package_text(&["a.py"], &tracked, any), "*");
        assert_eq!(package_text(&["a,b/c.py"], &tracked, any), "");
        assert_eq!(package_text(&[], &tracked, any), "");
        let is_new = |path: &RepoPath| path.as_str() != "src/p/deep/b.py";
        assert_eq!(package_text(&["src/p/deep/b.py"], &tracked, is_new), "");
        assert_eq!(package_text(&["src/p/a.py"], &tracked, is_new), "src/p/**");
    }

    #[test]
    fn package_reaches_directory_below_nearest_manifest() {
        let tracked: Vec<String> = [
            "package.json",
            "src/tsconfig.json",
            "src/services/a.ts",
            "src/parser/b.ts",
            "crates/a/Cargo.toml",
            "crates/a/src/deep/a.rs",
            "crates/a/src/b.rs",
        ]
        .map(Into::into)
        .into();
        let any = |_: &RepoPath| true;
        assert_eq!(
            package_text(&["src/services/a.ts"], &tracked, any),
            "src/**"
        );
        assert_eq!(
            package_text(&["crates/a/src/deep/a.rs"], &tracked, any),
            "crates/a/src/**"
        );
    }

    #[test]
    fn area_that_the_goal_begins_with_comes_first() {
        let tracked: Vec<String> = [
            "crates/cli/src/a.rs",
            "crates/globset/src/b.rs",
            "crates/globset/src/c.rs",
        ]
        .map(Into::into)
        .into();
        let best = ["crates/cli/src/a.rs", "crates/globset/src/b.rs"];
        for goal in [
            "globset: read dots",
            "fix(globset): read dots",
            "feat(Globset)!: x",
        ] {
            assert_eq!(
                told_for(goal, &best, &tracked, |_| true),
                "crates/globset/src/** crates/cli/src/**",
                "{goal}"
            );
        }
        for goal in [
            "fix: read dots",
            "note that globset: reads",
            "other: read",
            ": x",
            "(globset",
        ] {
            assert_eq!(
                told_for(goal, &best, &tracked, |_| true),
                "crates/cli/src/** crates/globset/src/**",
                "{goal}"
            );
        }
    }

    #[test]
    fn directory_with_too_many_files_is_not_recursive() {
        let mut tracked: Vec<String> = (0..MAX_SOURCES)
            .map(|at| format!("src/deep/{at}.py"))
            .collect();
        tracked.extend(["src/README.md".to_owned(), "src/tests/a.py".to_owned()]);
        assert_eq!(package_text(&["src/a.py"], &tracked, |_| true), "src/**");
        tracked.extend(["src/a.py".to_owned(), "src/b.py".to_owned()]);
        assert_eq!(package_text(&["src/a.py"], &tracked, |_| true), "src/*");
        assert_eq!(
            package_text(&["src/deep/1.py"], &tracked, |_| true),
            "src/deep/**"
        );
    }
}
