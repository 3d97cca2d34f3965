//! Classifies a path for ranking, based on the table of [`PathRoles`].

use crucible_model::{PathRole, PathRoles, RepoPath};

/// The kinds of files in a ranking, most useful first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileClass {
    /// Code, and anything that fits no other class.
    Source,
    /// Code that tests other code. Shown so that a model knows what is expected; it must not change it.
    Test,
    /// Declares the project's parts, dependencies and commands, or configures a tool.
    Manifest,
    /// Text for people.
    Document,
    /// Made by a program, locked, minified, vendored or binary.
    Generated,
}

impl FileClass {
    /// The class of the file at `path`.
    #[must_use]
    pub fn from_path(path: &RepoPath) -> Self {
        let roles = PathRoles::from_path(path);
        let is_any = |requested: &[PathRole]| requested.iter().any(|role| roles.has(*role));
        if is_any(&[PathRole::Generated, PathRole::Lockfile]) {
            Self::Generated
        } else if is_any(&[
            PathRole::Project,
            PathRole::ToolSettings,
            PathRole::TestSettings,
        ]) {
            Self::Manifest
        } else if is_any(&[PathRole::Test]) {
            Self::Test
        } else if is_any(&[PathRole::Document]) {
            Self::Document
        } else {
            Self::Source
        }
    }

    /// The class as a word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Test => "test",
            Self::Manifest => "manifest",
            Self::Document => "document",
            Self::Generated => "generated",
        }
    }

    /// How much of its points the file at `path`, which is of this class, keeps, in percent.
    pub(super) fn percent(self, path: &RepoPath) -> u64 {
        match self {
            Self::Source if is_beside(path) => 30,
            Self::Source => 100,
            Self::Test => 60,
            Self::Manifest => 50,
            Self::Document => 25,
            Self::Generated => 5,
        }
    }
}

/// Whether a file shows how the product is used, declared or measured instead of being a part of it.
#[must_use]
pub fn is_beside(path: &RepoPath) -> bool {
    const BESIDE: [&str; 17] = [
        "bench",
        "benches",
        "benchmark",
        "benchmarks",
        "ci",
        "complete",
        "demo",
        "demos",
        "doc",
        "docs",
        "example",
        "examples",
        "fuzz",
        "scripts",
        "site",
        "typing-examples",
        "website",
    ];
    let name = path.file_name();
    if name.ends_with(".d.ts") || name.ends_with(".pyi") || name.ends_with(".1") {
        return true;
    }
    let directories = path.directory();
    directories.split('/').any(|name| {
        BESIDE
            .iter()
            .any(|beside| beside.eq_ignore_ascii_case(name))
    })
}

/// Returns whether a file does not describe how the code works: translations, lists of people, changes or
/// sponsors, editor settings, pictures and recorded data.
#[must_use]
pub fn is_filler(path: &RepoPath) -> bool {
    const EXTENSIONS: [&str; 14] = [
        "adoc", "csv", "eps", "ipynb", "map", "mo", "po", "pot", "snap", "svg", "tape", "tsv",
        "xliff", "xml",
    ];
    const STEMS: [&str; 14] = [
        "authors",
        "changelog",
        "changes",
        "code_of_conduct",
        "codeowners",
        "contributing",
        "contributors",
        "copying",
        "funding",
        "history",
        "licence",
        "license",
        "news",
        "security",
    ];
    let name = path.file_name().to_ascii_lowercase();
    let (stem, extension) = name.rsplit_once('.').unwrap_or((&name, ""));
    name.starts_with('.')
        || path
            .segments()
            .next()
            .is_some_and(|top| top.starts_with('.'))
        || EXTENSIONS.contains(&extension)
        || (matches!(extension, "" | "md" | "rst" | "txt" | "yml" | "yaml")
            && STEMS.iter().any(|known| {
                stem.strip_prefix(known)
                    .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphabetic()))
            }))
}

/// The name of the thing that a file is or tests: `parser` for `src/parser.rs`, `tests/test_parser.py`,
/// `parser_test.go` and `parser.spec.ts`.
#[must_use]
pub fn tested_name(path: &RepoPath) -> String {
    let name = path.file_name().to_ascii_lowercase();
    let stem = name.split('.').next().unwrap_or_default();
    let stem = stem
        .strip_prefix("test_")
        .or_else(|| stem.strip_prefix("test-"))
        .unwrap_or(stem);
    let endings = ["_test", "_tests", "-test", "_spec"];
    let stem = endings
        .iter()
        .find_map(|ending| stem.strip_suffix(ending))
        .unwrap_or(stem);
    stem.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_follow_names_and_directories() {
        let cases = [
            ("src/parser.rs", FileClass::Source),
            ("Dockerfile", FileClass::Manifest),
            ("tox.ini", FileClass::Manifest),
            ("fixtures/a.rs", FileClass::Test),
            ("e2e/login.ts", FileClass::Test),
            ("testdata/a.go", FileClass::Test),
            ("tests/a.rs", FileClass::Test),
            ("pkg/a_test.go", FileClass::Test),
            ("a/test_b.py", FileClass::Test),
            ("ui/button.spec.ts", FileClass::Test),
            ("Cargo.toml", FileClass::Manifest),
            ("sub/Makefile", FileClass::Manifest),
            ("README", FileClass::Document),
            ("docs/a.md", FileClass::Document),
            ("Cargo.lock", FileClass::Generated),
            ("vendor/x/a.go", FileClass::Generated),
            ("a.min.js", FileClass::Generated),
            ("logo.PNG", FileClass::Generated),
            ("contest.py", FileClass::Source),
        ];
        for (path, class) in cases {
            assert_eq!(
                FileClass::from_path(&path.parse().unwrap()),
                class,
                "{path}"
            );
        }
    }

    #[test]
    fn test_shares_name_with_its_source() {
        for path in [
            "src/parser.rs",
            "tests/test_parser.py",
            "parser_test.go",
            "a/parser.spec.ts",
            "tests/parser.rs",
        ] {
            assert_eq!(tested_name(&path.parse().unwrap()), "parser", "{path}");
        }
    }
}
