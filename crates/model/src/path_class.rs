//! What a path is, by its name alone: a test, a manifest, a lock file, text for people, made by a program.
//!
//! One table says for each name what it stands for; who ranks files and who judges patches read the same rows, so they
//! cannot disagree. Names with which a patch could grade itself are doubtful on purpose: such a name is taken for
//! whatever it may be. Case is ignored, because some file systems ignore it. A path may have several roles.

use crate::RepoPath;

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PathRole {
    /// Tests and their data.
    Test,
    /// Tells a test runner what to run.
    TestSettings,
    /// Names the project's parts, dependencies and commands.
    Project,
    /// Tells a tool how to behave. Like a project's own file it can run commands or switch checks off.
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
    /// No model is shown what lies there.
    Shown,
    /// No patch changes what lies there.
    Changed,
}

impl PathRoles {
    /// The roles of the file at `path`.
    #[must_use]
    pub fn of(path: &RepoPath) -> Self {
        let lower = path.as_str().to_ascii_lowercase();
        let (directories, name) = lower.rsplit_once('/').unwrap_or(("", &lower));
        let mut roles = Self(0);
        for row in TABLE {
            let is_it = match row.part {
                Part::Directory => directories.split('/').any(|segment| row.names.contains(&segment)),
                Part::DirectoryWord => {
                    directories.split(['/', '_', '-', '.']).any(|word| row.names.contains(&word))
                }
                Part::Top => directories.split('/').next().is_some_and(|top| row.names.contains(&top)),
                Part::Name => row.names.contains(&name),
                Part::Stem => row.names.contains(&name.split('.').next().unwrap_or(name)),
                Part::Start => row.names.iter().any(|start| name.starts_with(start)),
                Part::End => row.names.iter().any(|end| name.ends_with(end)),
                Part::Extension => {
                    name.rsplit_once('.').is_some_and(|(_, extension)| row.names.contains(&extension))
                }
            };
            if is_it {
                row.roles.iter().for_each(|role| roles.add(*role));
            }
        }
        if is_marked_test(name) || has_capital_test_suffix(path.file_name()) {
            roles.add(Test);
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

    fn add(&mut self, role: PathRole) {
        self.0 |= 1 << role as u16;
    }
}

/// The name of the first place on the way to `path` in which this is denied, if there is one. Case is ignored.
///
/// What is not shown are directories, so a file called `build` is none; what is not changed is the name itself.
#[must_use]
pub fn denied_place(path: &RepoPath, denial: Denial) -> Option<&'static str> {
    let mut segments = path.segments();
    if denial == Denial::Shown {
        segments.next_back();
    }
    segments.enumerate().find_map(|(depth, segment)| {
        PLACES.iter().find_map(|(name, shown, changed)| {
            let reach = match denial {
                Denial::Shown => shown,
                Denial::Changed => changed,
            };
            let is_here = match reach {
                Reach::Anywhere => true,
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
    /// Deeper down the same word names ordinary source.
    Top,
    Nowhere,
}

/// Each place, where it is not shown (seed 003 B.2) and where it is not changed.
const PLACES: [(&str, Reach, Reach); 12] = {
    use Reach::{Anywhere, Nowhere, Top};
    [
        (".github", Nowhere, Anywhere),
        (".gitlab", Nowhere, Anywhere),
        (".crucible", Nowhere, Anywhere),
        (".cargo", Nowhere, Anywhere),
        (".vscode", Nowhere, Anywhere),
        (".venv", Nowhere, Anywhere),
        ("node_modules", Anywhere, Anywhere),
        ("__pycache__", Anywhere, Anywhere),
        ("runs", Anywhere, Top),
        ("build", Anywhere, Top),
        ("dist", Anywhere, Top),
        ("target", Nowhere, Top),
    ]
};

/// Which part of a path the names of a row are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// Any directory on the way.
    Directory,
    /// A word of any directory on the way: `integration_tests` has two.
    DirectoryWord,
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

struct Row {
    part: Part,
    roles: &'static [PathRole],
    names: &'static [&'static str],
}

const fn row(part: Part, roles: &'static [PathRole], names: &'static [&'static str]) -> Row {
    Row { part, roles, names }
}

use PathRole::{Ci, Document, Generated, GitSetting, Lockfile, Project, Test, TestSettings, ToolSettings};

const TABLE: &[Row] = &[
    row(
        Part::DirectoryWord,
        &[Test],
        &[
            "test",
            "tests",
            "testing",
            "unittest",
            "unittests",
            "testutil",
            "testutils",
            "testsuite",
            "testsuites",
            "testcases",
            "testhelper",
            "testhelpers",
            "testdata",
            "fixture",
            "fixtures",
            "spec",
            "specs",
            "e2e",
            "golden",
            "goldens",
            "snapshots",
            "acceptance",
        ],
    ),
    row(Part::Directory, &[Test], &["__mocks__", "cypress", "proptest-regressions", "step_definitions"]),
    row(Part::Top, &[Test], &["t"]),
    row(
        Part::Stem,
        &[Test],
        &[
            "conftest",
            "test",
            "tests",
            "testutil",
            "testutils",
            "testhelper",
            "testhelpers",
            "setuptests",
            "selftest",
        ],
    ),
    row(Part::End, &[Test], &[".phpt", ".t", ".feature", ".bats", ".snap.new", ".test-d.ts"]),
    row(Part::End, &[Test, Generated], &[".snap"]),
    row(
        Part::Name,
        &[TestSettings],
        &[
            "pytest.ini",
            ".pytest.ini",
            "pytest.toml",
            "tox.ini",
            "noxfile.py",
            ".coveragerc",
            "nextest.toml",
            "karma.conf.js",
            "phpunit.xml",
            "phpunit.xml.dist",
            ".rspec",
        ],
    ),
    row(
        Part::Start,
        &[TestSettings],
        &[
            "jest.config.",
            "jest.setup.",
            "vitest.config.",
            "vitest.workspace.",
            "playwright.config.",
            "cypress.config.",
            ".mocharc.",
            "ava.config.",
        ],
    ),
    row(
        Part::Name,
        &[Project],
        &[
            "cargo.toml",
            "pyproject.toml",
            "setup.py",
            "setup.cfg",
            "package.json",
            "tsconfig.json",
            "go.mod",
            "go.work",
            "cmakelists.txt",
            "makefile",
            "meson.build",
            "justfile",
            "pom.xml",
            "build.sbt",
            "package.swift",
            "build.gradle",
            "build.gradle.kts",
            "gemfile",
            "composer.json",
        ],
    ),
    row(Part::Top, &[ToolSettings], &["requirements"]),
    row(Part::Directory, &[ToolSettings], &[".cargo"]),
    row(
        Part::Name,
        &[ToolSettings],
        &[
            "build.rs",
            "rust-toolchain",
            "rust-toolchain.toml",
            "clippy.toml",
            ".clippy.toml",
            "rustfmt.toml",
            ".rustfmt.toml",
            "deny.toml",
            "pipfile",
            "manifest.in",
            "environment.yml",
            "environment.yaml",
            "mypy.ini",
            ".mypy.ini",
            "ruff.toml",
            ".ruff.toml",
            ".pylintrc",
            ".flake8",
            "sitecustomize.py",
            "usercustomize.py",
            ".python-version",
            "pnpm-workspace.yaml",
            ".npmrc",
            ".yarnrc",
            ".yarnrc.yml",
            ".pnpmfile.cjs",
            "lerna.json",
            "nx.json",
            "turbo.json",
            "deno.json",
            "deno.jsonc",
            "bunfig.toml",
            "jsconfig.json",
            ".nvmrc",
            ".node-version",
            ".babelrc",
            ".golangci.yml",
            ".golangci.yaml",
            "cmakepresets.json",
            "gnumakefile",
            "meson_options.txt",
            "meson.options",
            "configure",
            "configure.ac",
            "conanfile.txt",
            "conanfile.py",
            "vcpkg.json",
            "build.bazel",
            "build",
            "workspace",
            "module.bazel",
            ".bazelrc",
            "taskfile.yml",
            "rakefile",
            "gruntfile.js",
            "gulpfile.js",
            "biome.json",
            "mix.exs",
            "dockerfile",
            ".tool-versions",
        ],
    ),
    row(
        Part::Start,
        &[ToolSettings],
        &[
            "tsconfig.",
            ".eslintrc",
            "eslint.config.",
            "vite.config.",
            "webpack.config.",
            "rollup.config.",
            "babel.config.",
            "docker-compose.",
        ],
    ),
    row(
        Part::End,
        &[ToolSettings],
        &[
            ".mk",
            ".cmake",
            ".bzl",
            ".gradle",
            ".gradle.kts",
            ".csproj",
            ".fsproj",
            ".vcxproj",
            ".sln",
            ".gemspec",
            ".cabal",
            ".pth",
            ".nix",
        ],
    ),
    row(
        Part::Directory,
        &[Ci],
        &[
            ".github",
            ".gitlab",
            ".circleci",
            ".buildkite",
            ".woodpecker",
            ".ci",
            ".husky",
            ".githooks",
            ".forgejo",
            ".gitea",
        ],
    ),
    row(Part::Top, &[Ci], &["ci"]),
    row(
        Part::Name,
        &[Ci],
        &[
            ".ci.yml",
            ".gitlab-ci.yml",
            ".gitlab-ci.yaml",
            ".travis.yml",
            "jenkinsfile",
            "azure-pipelines.yml",
            ".drone.yml",
            "bitbucket-pipelines.yml",
            "appveyor.yml",
            ".appveyor.yml",
            ".cirrus.yml",
            ".woodpecker.yml",
            "codecov.yml",
            ".codecov.yml",
            ".pre-commit-config.yaml",
            "lefthook.yml",
            "codeowners",
            "renovate.json",
            "cloudbuild.yaml",
        ],
    ),
    row(
        Part::Name,
        &[Lockfile],
        &[
            "package-lock.json",
            "npm-shrinkwrap.json",
            "pnpm-lock.yaml",
            "pnpm-lock.yml",
            "bun.lockb",
            "go.sum",
            "go.work.sum",
            "package.resolved",
            "packages.lock.json",
            "gradle.lockfile",
            "module.bazel.lock",
            ".terraform.lock.hcl",
        ],
    ),
    row(Part::End, &[Lockfile], &[".lock"]),
    row(
        Part::Name,
        &[GitSetting],
        &[".gitattributes", ".gitmodules", ".gitignore", ".gitconfig", ".mailmap"],
    ),
    row(
        Part::Directory,
        &[Generated],
        &[
            "generated",
            "target",
            "third_party",
            "vendor",
            ".venv",
            "venv",
            ".tox",
            ".mypy_cache",
            ".pytest_cache",
        ],
    ),
    row(
        Part::End,
        &[Generated],
        &[
            ".bundle.js",
            ".g.dart",
            ".generated.cs",
            ".min.css",
            ".min.js",
            ".pb.go",
            "_generated.go",
            "_pb2.py",
            "_pb2_grpc.py",
        ],
    ),
    row(
        Part::Extension,
        &[Generated],
        &[
            "7z", "a", "avif", "bin", "bmp", "bz2", "class", "db", "dll", "dylib", "eot", "exe", "gif", "gz",
            "ico", "jar", "jpeg", "jpg", "map", "mo", "mp3", "mp4", "o", "otf", "parquet", "pdf", "png",
            "pyc", "rlib", "so", "sqlite", "tar", "tgz", "ttf", "wasm", "webm", "webp", "whl", "woff",
            "woff2", "xz", "zip", "zst",
        ],
    ),
    row(Part::Extension, &[Document], &["adoc", "markdown", "md", "rst", "txt"]),
    row(
        Part::Name,
        &[Document],
        &["authors", "changelog", "copying", "license", "licence", "notice", "readme"],
    ),
];

/// `test_a.py`, `a_test.go`, `a.test.ts`, `a-spec.rb`.
fn is_marked_test(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name);
    let marked = |word: &str, mark: char| {
        let ends = ["test", "tests", "spec", "unittest"].iter();
        ends.filter_map(|end| word.strip_suffix(end)).any(|rest| rest.ends_with(mark))
    };
    stem.starts_with("test_")
        || stem.starts_with("test-")
        || marked(stem, '_')
        || marked(stem, '-')
        || name.rsplit_once('.').is_some_and(|(before, _)| marked(before, '.'))
        || [".test.", ".spec."].iter().any(|infix| name.contains(infix))
}

/// `UserTest.java`, `UserTests.cs`, `UserSpec.scala`: a word of its own by its capital, which tells it from `latest`.
fn has_capital_test_suffix(name: &str) -> bool {
    let Some((stem, extension)) = name.rsplit_once('.') else {
        return false;
    };
    matches!(extension, "java" | "kt" | "cs" | "scala" | "swift" | "php" | "groovy")
        && ["Test", "Tests", "Spec", "IT", "TestCase", "TestUtil", "TestUtils"]
            .iter()
            .any(|end| stem.ends_with(end))
}

/// `requirements.txt`, `requirements-dev.txt`, `constraints.in`.
fn is_listing(name: &str) -> bool {
    ["requirements", "constraints"].iter().any(|start| name.starts_with(start))
        && [".txt", ".in"].iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn roles(path: &str) -> PathRoles {
        PathRoles::of(&path.parse().unwrap())
    }

    #[test]
    fn a_name_stands_in_one_row_and_in_lower_case() {
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
    fn a_path_may_have_several_roles_and_most_have_none() {
        assert!(roles("src/snapshots/a.snap").has(Test) && roles("src/snapshots/a.snap").has(Generated));
        assert!(roles("sub/TOX.ini").has(TestSettings) && !roles("tox.ini").has(Test));
        assert!(roles("requirements-dev.txt").has(Project) && roles("requirements-dev.txt").has(Document));
        for path in ["src/lib.rs", "src/contest.py", "src/build/mod.rs", "latest.go"] {
            assert_eq!(roles(path), PathRoles(0), "{path}");
        }
    }

    #[test]
    fn what_tests_are_made_of_counts_as_tests_whatever_its_directory_is_called() {
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
        for path in
            ["src/contests/a.rs", "src/latest/a.rs", "src/t/a.rs", "respect/a.py", "src/inspector/a.js"]
        {
            assert!(!roles(path).has(Test), "{path}");
        }
    }

    #[test]
    fn what_is_not_shown_is_a_directory_and_what_is_not_changed_a_name() {
        let denied = |path: &str, denial| denied_place(&path.parse().unwrap(), denial);
        assert_eq!(denied("a/Build/x.c", Denial::Shown), Some("build"));
        assert_eq!(denied("a/build/x.c", Denial::Changed), None);
        assert_eq!(denied("build", Denial::Shown), None);
        assert_eq!(denied("build", Denial::Changed), Some("build"));
        assert_eq!(denied(".github/workflows/ci.yml", Denial::Shown), None);
        assert_eq!(denied("a/.github/x", Denial::Changed), Some(".github"));
    }
}
