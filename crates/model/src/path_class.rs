//! Classifies a path by its name: a test, a manifest, a lock file, a document, a generated file.
//!
//! One table maps each name to its roles. Ranking and patch checks read the same rows, so they cannot
//! disagree. A name with which a patch could influence its own check is classified pessimistically: it gets
//! every role it might have. Case is ignored, because some file systems ignore it. A backslash is read as a
//! character and as a separator, because systems differ. A path may have several roles.

mod table;

use crate::RepoPath;

use PathRole::{Ci, Project, Test};
use table::TABLE;

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PathRole {
    /// Tests and their data.
    Test,
    /// Configures a test runner.
    TestSettings,
    /// Names the project's parts, dependencies and commands.
    Project,
    /// Configures a tool. Like a project file it can run commands or disable checks.
    ToolSettings,
    /// Continuous integration, commit hooks, review rules.
    Ci,
    /// Written by a package manager; decides which foreign code is run.
    Lockfile,
    /// Tells git which files it filters, hides or fetches from elsewhere.
    GitSetting,
    /// Made by a program, minified, vendored or binary.
    Generated,
    /// Text for people.
    Document,
}

/// Every role of one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathRoles(u16);

/// What may not be done in a place of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Denial {
    /// Models never see files in it.
    Shown,
    /// Patches never change files in it.
    Changed,
}

impl PathRoles {
    /// The roles of the file at `path`.
    #[must_use]
    pub fn from_path(path: &RepoPath) -> Self {
        let literal = Self::from_text(path.as_str());
        if !path.has_backslash() {
            return literal;
        }
        Self(literal.0 | Self::from_text(&path.as_str().replace('\\', "/")).0)
    }

    fn from_text(path: &str) -> Self {
        let lower = path.to_ascii_lowercase();
        let (directories, name) = lower.rsplit_once('/').unwrap_or(("", &lower));
        let mut roles = Self(0);
        for row in TABLE {
            let is_listed = |word: &str| row.names.binary_search(&word).is_ok();
            let is_it = match row.part {
                Part::Directory => directories.split('/').any(is_listed),
                Part::DirectoryWord => directories.split(['/', '_', '-', '.']).any(is_listed),
                Part::SpecWord => {
                    !has_no_specs(name) && directories.split(['/', '_', '-', '.']).any(is_listed)
                }
                Part::Beside => is_beside_the_product(directories, name, is_listed),
                Part::Top => directories.split('/').next().is_some_and(is_listed),
                Part::Name => is_listed(name),
                Part::Stem => is_listed(name.split('.').next().unwrap_or(name)),
                Part::Start => row.names.iter().any(|start| name.starts_with(start)),
                Part::End => row.names.iter().any(|end| name.ends_with(end)),
                Part::Extension => name
                    .rsplit_once('.')
                    .is_some_and(|(_, extension)| is_listed(extension)),
            };
            if is_it {
                row.roles.iter().for_each(|role| roles.add(*role));
            }
        }
        if is_marked_test(name) || has_capital_test_word(path) {
            roles.add(Test);
        }
        if is_git_hook(name) || is_judging_script(name) {
            roles.add(Ci);
        }
        if is_listing(name) {
            roles.add(Project);
        }
        roles
    }

    /// Whether this is one of the roles.
    #[must_use]
    pub fn has(self, role: PathRole) -> bool {
        self.0 & (1 << role as u16) != 0
    }

    /// Returns whether the path has no known role, like ordinary source code.
    #[must_use]
    pub(crate) fn has_none(self) -> bool {
        self.0 == 0
    }

    fn add(&mut self, role: PathRole) {
        self.0 |= 1 << role as u16;
    }
}

/// Returns the first component of `path` that is denied in this way. Case is ignored, and a backslash is also read as a
/// separator.
///
/// Only directories are hidden, so a file called `build` is shown; for changes the file's own name counts
/// too.
#[must_use]
pub fn denied_place(path: &RepoPath, denial: Denial) -> Option<&'static str> {
    let separated = || denied_component(path.as_str().split(['/', '\\']), denial);
    denied_component(path.segments(), denial).or_else(separated)
}

fn denied_component<'a>(
    mut segments: impl DoubleEndedIterator<Item = &'a str>,
    denial: Denial,
) -> Option<&'static str> {
    if denial == Denial::Shown {
        segments.next_back();
    }
    let mut is_in_source = false;
    segments.enumerate().find_map(|(depth, segment)| {
        let is_below_source = is_in_source;
        is_in_source |= SOURCE.contains(&segment);
        PLACES.iter().find_map(|(name, shown, changed)| {
            let reach = match denial {
                Denial::Shown => shown,
                Denial::Changed => changed,
            };
            let is_here = match reach {
                Reach::Anywhere => true,
                Reach::OutsideSource => !is_below_source,
                Reach::Top => depth == 0,
                Reach::Nowhere => false,
            };
            (is_here && name.eq_ignore_ascii_case(segment)).then_some(*name)
        })
    })
}

/// Where a place is denied.
#[derive(Clone, Copy)]
enum Reach {
    /// Tools look for it in every directory.
    Anywhere,
    /// Below a source directory the same word names ordinary source: `src/build/env.py`.
    OutsideSource,
    /// Deeper down the same word names ordinary source.
    Top,
    Nowhere,
}

/// Each name, where it is hidden and where it is protected.
const PLACES: [(&str, Reach, Reach); 12] = {
    use Reach::{Anywhere, Nowhere, OutsideSource, Top};
    [
        (".github", Nowhere, Anywhere),
        (".gitlab", Nowhere, Anywhere),
        (".crucible", Nowhere, Anywhere),
        (".cargo", Nowhere, Anywhere),
        (".vscode", Nowhere, Anywhere),
        (".venv", Nowhere, Anywhere),
        ("node_modules", Anywhere, Anywhere),
        ("__pycache__", Anywhere, Anywhere),
        ("runs", OutsideSource, Top),
        ("build", OutsideSource, Top),
        ("dist", Anywhere, Top),
        ("target", Nowhere, Top),
    ]
};

/// Which part of a path the names of a row are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// Any directory on the way.
    Directory,
    /// A word in any parent directory's name: `integration_tests` has two.
    DirectoryWord,
    /// A word in a parent directory's name, for files whose language may call its tests specs.
    SpecWord,
    /// A parent directory outside the product's own source; within the source the same word is part of the
    /// product.
    Beside,
    /// The first directory.
    Top,
    /// The last name.
    Name,
    /// The last name up to its first dot.
    Stem,
    /// How the last name begins.
    Start,
    /// How the last name ends.
    End,
    /// What follows the last dot of the last name.
    Extension,
}

/// Whether the language of a file has no tests that are called specs, as those of Ruby and JavaScript are.
fn has_no_specs(name: &str) -> bool {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    matches!(
        extension,
        Some("c" | "cc" | "cpp" | "cxx" | "go" | "h" | "hpp" | "java" | "py" | "pyi" | "rs")
    )
}

/// `test_a.py`, `a_test.go`, `a.test.ts`, `a-spec.rb`.
fn is_marked_test(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name);
    let marked = |word: &str, mark: char| {
        let ends = ["test", "tests", "spec", "unittest"].iter();
        ends.filter_map(|end| word.strip_suffix(end))
            .any(|rest| rest.ends_with(mark))
    };
    stem.starts_with("test_")
        || stem.starts_with("test-")
        || marked(stem, '_')
        || marked(stem, '-')
        || name
            .rsplit_once('.')
            .is_some_and(|(before, _)| marked(before, '.'))
        || [
            ".test.",
            ".spec.",
            ".cy.",
            ".e2e.",
            ".e2e-spec.",
            ".golden.",
            ".expected.",
            ".approved.",
            ".verified.",
        ]
        .iter()
        .any(|infix| name.contains(infix))
}

/// Matches `UserTest.java`, `UserTests.cs`, `UserSpec.scala`, `TestUser.java`, `AppUITests/`: a capitalised
/// word, unlike `latest` and `Testament`.
fn has_capital_test_word(path: &str) -> bool {
    let (directories, name) = path.rsplit_once('/').unwrap_or(("", path));
    let is_of_tests = |directory: &str| {
        let before = ["Tests", "Test", "TestFixtures"]
            .iter()
            .find_map(|end| directory.strip_suffix(end));
        before.is_some_and(|before| before.ends_with(|c: char| c.is_ascii_lowercase() || c == 'I'))
    };
    if directories.split('/').any(is_of_tests) {
        return true;
    }
    let Some((stem, extension)) = name.rsplit_once('.') else {
        return false;
    };
    let ends: &[&str] = match extension {
        "java" | "kt" | "cs" | "fs" | "vb" | "scala" | "swift" | "php" | "groovy" => {
            let begins = stem
                .strip_prefix("Test")
                .is_some_and(|rest| rest.starts_with(char::is_uppercase));
            if begins {
                return true;
            }
            &[
                "Test",
                "Tests",
                "Spec",
                "IT",
                "TestCase",
                "TestUtil",
                "TestUtils",
            ]
        }
        "js" | "jsx" | "ts" | "tsx" | "hs" | "m" | "mm" | "dart" => &["Test", "Tests", "Spec"],
        _ => &[],
    };
    ends.iter().any(|end| stem.ends_with(end))
}

/// Returns whether a listed directory is outside product source: at the top, in a workspace member
/// (`crates/a/qa/`), or beside helpers (`scripts/ci/`). Expected output is data and counts wherever no source
/// directory is above it: `contrib/a/expected/b.out`.
fn is_beside_the_product(directories: &str, name: &str, is_listed: impl Fn(&str) -> bool) -> bool {
    let top = directories.split('/').next().unwrap_or_default();
    let outside = directories
        .split('/')
        .take_while(|directory| !SOURCE.contains(directory));
    outside.enumerate().any(|(depth, directory)| {
        let is_beside = match depth {
            0 => true,
            1 => HELPERS.contains(&top),
            2 => MEMBERS.contains(&top),
            _ => false,
        };
        let is_data = || {
            name.rsplit_once('.')
                .is_some_and(|(_, extension)| DATA.contains(&extension))
        };
        is_listed(directory) && (is_beside || OUTPUT.contains(&directory) && is_data())
    })
}

/// Directories with expected program output.
const OUTPUT: [&str; 4] = ["expected", "expectations", "baselines", "regress"];
/// Directories of several members.
const MEMBERS: [&str; 6] = ["crates", "packages", "apps", "services", "libs", "projects"];
/// Directories with development helpers.
const HELPERS: [&str; 12] = [
    ".", "scripts", "script", "tools", "tool", "build", "dev", "hack", "contrib", "misc", "util",
    "infra",
];
/// Directories of a product's own source.
const SOURCE: [&str; 8] = [
    "src", "lib", "include", "app", "internal", "pkg", "cmd", "source",
];
/// Endings of data.
const DATA: [&str; 17] = [
    "txt", "out", "err", "log", "ok", "diff", "json", "jsonl", "yaml", "yml", "xml", "csv", "tsv",
    "html", "svg", "sql", "dat",
];

/// Returns whether git would run a file of this name from its hooks directory.
fn is_git_hook(name: &str) -> bool {
    let bare = [".sh", ".bash", ".py", ".ps1", ".sample"]
        .iter()
        .find_map(|end| name.strip_suffix(end));
    matches!(
        bare.unwrap_or(name),
        "applypatch-msg"
            | "pre-applypatch"
            | "post-applypatch"
            | "pre-commit"
            | "pre-merge-commit"
            | "prepare-commit-msg"
            | "commit-msg"
            | "post-commit"
            | "pre-rebase"
            | "post-checkout"
            | "post-merge"
            | "pre-push"
            | "pre-receive"
            | "proc-receive"
            | "post-receive"
            | "post-update"
            | "push-to-checkout"
            | "pre-auto-gc"
            | "post-rewrite"
            | "reference-transaction"
            | "sendemail-validate"
            | "fsmonitor-watchman"
            | "post-index-change"
    )
}

/// `ci.sh`, `run-ci.sh`, `ci-lint.ps1`, `check.sh`: scripts of the shell that say whether the work is well.
fn is_judging_script(name: &str) -> bool {
    let Some((stem, extension)) = name.rsplit_once('.') else {
        return false;
    };
    let is_shell = matches!(
        extension,
        "sh" | "bash" | "zsh" | "fish" | "ps1" | "bat" | "cmd"
    );
    is_shell
        && (stem.split(['-', '_', '.']).any(|word| word == "ci")
            || matches!(stem, "check" | "checks" | "lint" | "verify" | "presubmit"))
        || matches!(name, "ci.yml" | "ci.yaml")
}

/// `requirements.txt`, `requirements-dev.txt`, `constraints.in`.
fn is_listing(name: &str) -> bool {
    ["requirements", "constraints"]
        .iter()
        .any(|start| name.starts_with(start))
        && [".txt", ".in"].iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::PathRole::{Document, Generated, TestSettings, ToolSettings};

    fn roles(path: &str) -> PathRoles {
        PathRoles::from_path(&path.parse().unwrap())
    }

    #[test]
    fn names_are_lowercase_and_in_one_row() {
        let mut rows: BTreeMap<(Part, &str), usize> = BTreeMap::new();
        for row in TABLE {
            for name in row.names {
                *rows.entry((row.part, *name)).or_default() += 1;
                assert_eq!(*name, name.to_ascii_lowercase());
            }
        }
        let twice: Vec<_> = rows.iter().filter(|(_, count)| **count > 1).collect();
        assert!(twice.is_empty(), "{twice:?}");
    }

    #[test]
    fn rows_are_sorted_for_binary_search() {
        for row in TABLE {
            assert!(row.names.is_sorted(), "{:?}", row.names);
        }
    }

    #[test]
    fn test_word_inside_product_source_is_product() {
        for path in [
            "integration/a.py",
            "qa/run.rb",
            "crates/a/integration/a.rs",
            "tools/qa/a.py",
            "regress/a.sql",
            "contrib/hstore/expected/hstore.out",
            "deep/er/expected/a.json",
        ] {
            assert!(roles(path).has(Test), "{path}");
        }
        for path in [
            "src/qa/mod.rs",
            "src/integration/x.json",
            "shop/integration/client.py",
            "crates/a/src/regression/fit.rs",
            "lib/expected/expected.hpp",
            "models/regression/linear.py",
            "app/qa/page.tsx",
            "services/integration/client.go",
            "components/qa/Form.tsx",
            "crm/integration/defaults.json",
        ] {
            assert_eq!(roles(path), PathRoles(0), "{path}");
        }
    }

    #[test]
    fn files_that_tools_execute_are_settings() {
        for path in [
            "opencode.jsonc",
            "AGENTS.override.md",
            "web/docusaurus.config.ts",
            "ecosystem.config.js",
            "gatsby-node.ts",
            "karma.conf.cjs",
            "gradle/wrapper/gradle-wrapper.jar",
            "subprojects/zlib.wrap",
        ] {
            assert!(roles(path).has(ToolSettings), "{path}");
        }
        for path in [
            "src/app.config.ts",
            "src/config.js",
            "src/gatsby.js",
            "conf.py",
        ] {
            assert!(!roles(path).has(ToolSettings), "{path}");
        }
    }

    #[test]
    fn path_can_have_several_or_no_roles() {
        assert!(
            roles("src/snapshots/a.snap").has(Test) && roles("src/snapshots/a.snap").has(Generated)
        );
        assert!(roles("sub/TOX.ini").has(TestSettings) && !roles("tox.ini").has(Test));
        assert!(
            roles("requirements-dev.txt").has(Project)
                && roles("requirements-dev.txt").has(Document)
        );
        for path in [
            "src/lib.rs",
            "src/contest.py",
            "src/build/mod.rs",
            "latest.go",
        ] {
            assert_eq!(roles(path), PathRoles(0), "{path}");
        }
    }

    #[test]
    fn test_material_in_any_directory_is_test() {
        for path in [
            "test-utils/x.js",
            "test_helpers/x.py",
            "integration_tests/helpers.py",
            "tests-e2e/a.ts",
            "__image_snapshots__/a.txt",
            "src/testutil.rs",
            "src/TestUtil.java",
            "a_unittest.cc",
            "t/basic.sh",
            "setupTests.js",
            "__fixtures__/a.json",
            "unit_tests/a.cpp",
        ] {
            assert!(roles(path).has(Test), "{path}");
        }
        for path in [
            "src/contests/a.rs",
            "src/latest/a.rs",
            "src/t/a.rs",
            "respect/a.py",
            "src/inspector/a.js",
        ] {
            assert!(!roles(path).has(Test), "{path}");
        }
    }

    #[test]
    fn hidden_is_by_directory_protected_by_name() {
        let denied = |path: &str, denial| denied_place(&path.parse().unwrap(), denial);
        assert_eq!(denied("a/Build/x.c", Denial::Shown), Some("build"));
        assert_eq!(denied("a/build/x.c", Denial::Changed), None);
        for path in ["src/build/env.py", "pkg/build/a.go", "a/src/runs/x.ts"] {
            assert_eq!(denied(path, Denial::Shown), None, "{path}");
        }
        assert_eq!(denied("build/src/x.c", Denial::Shown), Some("build"));
        assert_eq!(
            denied("src/node_modules/x.js", Denial::Shown),
            Some("node_modules")
        );
        assert_eq!(denied("build", Denial::Shown), None);
        assert_eq!(denied("build", Denial::Changed), Some("build"));
        assert_eq!(denied(".github/workflows/ci.yml", Denial::Shown), None);
        assert_eq!(denied("a/.github/x", Denial::Changed), Some(".github"));
    }

    #[test]
    fn backslash_counts_in_both_readings() {
        let denied = |path: &str, denial| denied_place(&path.parse().unwrap(), denial);
        assert_eq!(
            denied("a/node_modules\\b.js", Denial::Shown),
            Some("node_modules")
        );
        assert_eq!(
            denied(".github\\workflows\\ci.yml", Denial::Changed),
            Some(".github")
        );
        // As a name, the first component is no source directory.
        assert_eq!(denied("src\\x/build/a.c", Denial::Shown), Some("build"));
        assert_eq!(denied("units/dev-build\\x2d.mount", Denial::Changed), None);
        for path in ["tests\\a.py", "src\\test_a.py", "a\\UserTest.java"] {
            assert!(roles(path).has(Test), "{path}");
        }
        assert!(roles("a\\Cargo.toml").has(Project));
        assert_eq!(roles("units/dev\\x2did.mount"), PathRoles(0));
    }
}
