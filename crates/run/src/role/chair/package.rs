//! The package of the best-ranked source: where a goal names no file for certain, the fix may need any source of it.

use std::collections::BTreeSet;

use crucible_model::{RepoPath, SourcePlace, is_source};
use crucible_pack::{area_of, is_beside};

use super::is_plain;

/// A place with more sources than this is too large to be opened; a directory in it may be.
const MAX_SOURCES: usize = 400;

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

/// The sources of the package of the best of these files, which are sorted: those of the directory below the nearest manifest
/// (`src/**`, `crates/a/src/**`), or else those of the file's own directory, with what lies below it or without where it is the top of the
/// repository or holds too many. A goal that begins with an area, as in `globset: …` or `fix(globset): …`, means the best file in a
/// directory of that name. Nothing where no source there `is_new` to the scope.
pub(super) fn package_of(
    goal: &str,
    best: &[RepoPath],
    tracked: &[(RepoPath, u64)],
    is_new: impl Fn(&RepoPath) -> bool,
) -> Option<SourcePlace> {
    let mut best = best.iter().filter(|path| is_source(path));
    let of_area = area_of(goal).and_then(|area| {
        let is_in = |path: &&RepoPath| {
            let directories = path.as_str().rsplit_once('/').map_or("", |(directories, _)| directories);
            directories.split('/').any(|name| name.eq_ignore_ascii_case(area))
        };
        best.clone().find(is_in)
    });
    let best = of_area.or_else(|| best.clone().find(|path| !is_beside(path))).or_else(|| best.next())?;
    let directory = |path: &str| {
        let directory: Option<RepoPath> =
            path.rsplit_once('/').map(|(directory, _)| directory.parse()).transpose().ok()?;
        directory.as_ref().is_none_or(is_plain).then_some(directory)
    };
    let own = directory(best.as_str())?;
    let whole = source_root(best, tracked).and_then(|root| root.parse().ok()).filter(is_plain);
    let places = whole.map(SourcePlace::below).into_iter().chain(own.clone().map(SourcePlace::below));
    let place = places
        .filter(|place| tracked.iter().filter(|(path, _)| place.contains(path)).count() <= MAX_SOURCES)
        .chain([SourcePlace::directly_in(own)])
        .next()?;
    let adds = tracked.iter().any(|(path, _)| place.contains(path) && is_new(path));
    adds.then_some(place)
}

/// The directory below that of the nearest manifest on the way to a file; nothing where the file lies beside the manifest.
fn source_root(path: &RepoPath, tracked: &[(RepoPath, u64)]) -> Option<String> {
    let manifests: BTreeSet<&str> = tracked
        .iter()
        .filter(|(path, _)| MANIFESTS.contains(&path.file_name()))
        .map(|(path, _)| path.as_str().rsplit_once('/').map_or("", |(directory, _)| directory))
        .collect();
    let path = path.as_str();
    let mut above = path;
    while let Some((directory, _)) = above.rsplit_once('/') {
        if manifests.contains(directory) {
            let (first, _) = path[directory.len() + 1..].split_once('/')?;
            return Some(format!("{directory}/{first}"));
        }
        above = directory;
    }
    let (first, _) = path.split_once('/')?;
    manifests.contains("").then(|| first.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(best: &[&str], tracked: &[String], is_new: impl Fn(&RepoPath) -> bool) -> String {
        told_for("fix it", best, tracked, is_new)
    }

    fn told_for(goal: &str, best: &[&str], tracked: &[String], is_new: impl Fn(&RepoPath) -> bool) -> String {
        let best: Vec<RepoPath> = best.iter().map(|path| path.parse().unwrap()).collect();
        let tracked: Vec<(RepoPath, u64)> = tracked.iter().map(|path| (path.parse().unwrap(), 1)).collect();
        package_of(goal, &best, &tracked, is_new).map_or_else(String::new, |place| place.to_string())
    }

    #[test]
    fn package_is_the_directory_of_the_best_source_that_is_part_of_the_product() {
        let tracked: Vec<String> =
            ["LICENSE.MIT", "a.py", "b.py", "docs/conf.py", "src/p/a.py", "src/p/deep/b.py", "a,b/c.py"]
                .map(Into::into)
                .into();
        let any = |_: &RepoPath| true;
        assert_eq!(told(&["src/p/a.py", "a.py"], &tracked, any), "src/p/**");
        assert_eq!(told(&["LICENSE.MIT", "docs/conf.py", "src/p/deep/b.py"], &tracked, any), "src/p/deep/**");
        assert_eq!(told(&["docs/conf.py"], &tracked, any), "docs/**");
        assert_eq!(told(&["a.py"], &tracked, any), "*");
        assert_eq!(told(&["a,b/c.py"], &tracked, any), "");
        assert_eq!(told(&[], &tracked, any), "");
        let is_new = |path: &RepoPath| path.as_str() != "src/p/deep/b.py";
        assert_eq!(told(&["src/p/deep/b.py"], &tracked, is_new), "");
        assert_eq!(told(&["src/p/a.py"], &tracked, is_new), "src/p/**");
    }

    #[test]
    fn package_reaches_to_the_directory_below_the_nearest_manifest() {
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
        assert_eq!(told(&["src/services/a.ts"], &tracked, any), "src/**");
        assert_eq!(told(&["crates/a/src/deep/a.rs"], &tracked, any), "crates/a/src/**");
    }

    #[test]
    fn area_that_the_goal_begins_with_decides() {
        let tracked: Vec<String> =
            ["crates/cli/src/a.rs", "crates/globset/src/b.rs", "crates/globset/src/c.rs"]
                .map(Into::into)
                .into();
        let best = ["crates/cli/src/a.rs", "crates/globset/src/b.rs"];
        for goal in ["globset: read dots", "fix(globset): read dots", "feat(Globset)!: x"] {
            assert_eq!(told_for(goal, &best, &tracked, |_| true), "crates/globset/src/**", "{goal}");
        }
        for goal in ["fix: read dots", "note that globset: reads", "other: read", ": x", "(globset"] {
            assert_eq!(told_for(goal, &best, &tracked, |_| true), "crates/cli/src/**", "{goal}");
        }
    }

    #[test]
    fn directory_with_too_much_below_it_is_taken_alone() {
        let mut tracked: Vec<String> = (0..MAX_SOURCES).map(|at| format!("src/deep/{at}.py")).collect();
        tracked.extend(["src/README.md".to_owned(), "src/tests/a.py".to_owned()]);
        assert_eq!(told(&["src/a.py"], &tracked, |_| true), "src/**");
        tracked.extend(["src/a.py".to_owned(), "src/b.py".to_owned()]);
        assert_eq!(told(&["src/a.py"], &tracked, |_| true), "src/*");
        assert_eq!(told(&["src/deep/1.py"], &tracked, |_| true), "src/deep/**");
    }
}
