//! A directory whose sources may change: `src/a/**`, `src/a/*` without subdirectories, or `*` for the top.
//!
//! A source is program text: by its name it is not a test, a setting, generated, a document or hidden.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Denial, PathPrefix, PathRoles, RepoPath, RepoPathError, denied_place};

/// File extensions of programming languages. Shell scripts do not count: they usually build or test the product.
const LANGUAGES: [&str; 54] = [
    "adb", "ads", "c", "cc", "cjs", "clj", "cljs", "cpp", "cr", "cs", "cts", "cxx", "d", "dart",
    "elm", "erl", "ex", "f90", "fs", "go", "groovy", "h", "hh", "hpp", "hrl", "hs", "hxx", "java",
    "jl", "js", "jsx", "kt", "lua", "m", "mjs", "ml", "mm", "mts", "nim", "php", "pl", "pm", "py",
    "pyi", "pyx", "rb", "rs", "scala", "svelte", "swift", "ts", "tsx", "vue", "zig",
];

/// The sources of a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SourcePattern {
    /// The directory; [`PathPrefix::ALL`] is the top.
    directory: PathPrefix,
    /// Whether subdirectories are included.
    is_deep: bool,
}

/// Why a text is not a source pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourcePatternError {
    /// It ends neither with `/**` nor with `/*`.
    #[error("write the sources of a directory as `src/**`, or as `src/*` without subdirectories")]
    NoPattern,
    /// It matches every source.
    #[error("name a directory; `**` is every source of the repository")]
    Everything,
    /// The directory is not a valid path.
    #[error(transparent)]
    Path(#[from] RepoPathError),
}

impl SourcePattern {
    /// Creates the pattern for the sources of a directory and all its subdirectories.
    #[must_use]
    pub fn in_directory(directory: RepoPath) -> Self {
        Self {
            directory: directory.into(),
            is_deep: true,
        }
    }

    /// Creates the pattern for the sources directly in a directory; `None` is the top.
    #[must_use]
    pub fn directly_in(directory: Option<RepoPath>) -> Self {
        Self {
            directory: directory.map_or(PathPrefix::ALL, PathPrefix::from),
            is_deep: false,
        }
    }

    /// Whether `path` is one of these sources.
    #[must_use]
    pub fn contains(&self, path: &RepoPath) -> bool {
        self.directory.contains(path)
            && (self.is_deep || self.is_parent_of(path))
            && is_source(path)
    }

    fn is_parent_of(&self, path: &RepoPath) -> bool {
        let parent = path.as_str().rsplit_once('/').map(|(parent, _)| parent);
        match parent {
            None => self.directory.is_everything(),
            Some(parent) => !self.directory.is_everything() && self.directory.to_string() == parent,
        }
    }
}

/// Returns whether a path is program text by its name: not a test, setting, generated, hidden or denied file.
#[must_use]
pub fn is_source(path: &RepoPath) -> bool {
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    LANGUAGES.contains(&extension.as_str())
        && PathRoles::from_path(path).has_none()
        && !path.segments().any(|name| name.starts_with('.'))
        && denied_place(path, Denial::Changed).is_none()
}

impl FromStr for SourcePattern {
    type Err = SourcePatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "*" => return Ok(Self::directly_in(None)),
            "**" => return Err(SourcePatternError::Everything),
            _ => {}
        }
        if let Some(directory) = text.strip_suffix("/**") {
            return Ok(Self::in_directory(directory.parse()?));
        }
        let directory = text
            .strip_suffix("/*")
            .ok_or(SourcePatternError::NoPattern)?;
        Ok(Self::directly_in(Some(directory.parse()?)))
    }
}

impl TryFrom<String> for SourcePattern {
    type Error = SourcePatternError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<SourcePattern> for String {
    fn from(place: SourcePattern) -> Self {
        place.to_string()
    }
}

impl fmt::Display for SourcePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.directory.is_everything() {
            write!(f, "{}/", self.directory)?;
        }
        f.write_str(if self.is_deep { "**" } else { "*" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(place: &str, path: &str) -> bool {
        place
            .parse::<SourcePattern>()
            .unwrap()
            .contains(&path.parse().unwrap())
    }

    #[test]
    fn pattern_matches_sources_of_its_directory() {
        for (place, path) in [
            ("src/a/**", "src/a/b.py"),
            ("src/a/**", "src/a/deep/er/b.rs"),
            ("src/a/**", "src/a/Main.java"),
            ("src/a/*", "src/a/b.py"),
            ("*", "main.go"),
        ] {
            assert!(holds(place, path), "{place} {path}");
        }
        for (place, path) in [
            ("src/a/**", "src/ab/c.py"),
            ("src/a/**", "src/b.py"),
            ("src/a/*", "src/a/deep/b.py"),
            ("*", "src/a.py"),
        ] {
            assert!(!holds(place, path), "{place} {path}");
        }
    }

    #[test]
    fn pattern_excludes_tests_builds_and_hidden_files() {
        for name in [
            "test_a.py",
            "a_test.go",
            "a.spec.ts",
            "tests/helper.py",
            "conftest.py",
            "noxfile.py",
            "jest.config.js",
            "setup.py",
            "build.rs",
            "sitecustomize.py",
            "Makefile",
            "CMakeLists.txt",
            "Dockerfile",
            "Cargo.lock",
            "check.sh",
            "run.sh",
            ".hidden/a.py",
            ".pylintrc.py",
            ".github/workflows/a.py",
            ".gitattributes",
            "vendor/b.py",
            "b_pb2.py",
            "a.min.js",
            "LICENSE",
            "README.md",
            "words.txt",
            "expected.csv",
            "data.json",
            "fixtures/b.py",
        ] {
            assert!(!holds("src/a/**", &format!("src/a/{name}")), "{name}");
        }
        assert!(!holds("dist/**", "dist/a.js") && !holds("*", "setup.py"));
    }

    #[test]
    fn patterns_round_trip_and_invalid_ones_fail() {
        for text in ["src/a/**", "src/a/*", "*", "a b, c/**"] {
            assert_eq!(text.parse::<SourcePattern>().unwrap().to_string(), text);
        }
        for text in [
            "**", "src", "src/", "src/a.py", "", "/**", "../**", "src//**", "./*", ".git/**",
        ] {
            assert!(text.parse::<SourcePattern>().is_err(), "{text:?}");
        }
    }
}
