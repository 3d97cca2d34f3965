//! What a path is, by its name alone: test, manifest, CI, lock file, git's own settings.
//!
//! These are the files with which a patch could grade itself, so a doubtful name is taken for what it may be. Case is
//! ignored, because some file systems ignore it. One table for each class; a path may be in several.

use crucible_model::RepoPath;

/// Whether the path holds tests, their data or the settings of a test runner: Rust, Python, JavaScript and
/// TypeScript, Go, C and C++, and the common layouts of other languages.
#[must_use]
pub fn is_test_path(path: &RepoPath) -> bool {
    const DIRECTORIES: [&str; 14] = [
        "test",
        "tests",
        "__tests__",
        "__test__",
        "__mocks__",
        "__snapshots__",
        "testdata",
        "test_data",
        "test-data",
        "fixtures",
        "spec",
        "e2e",
        "cypress",
        "proptest-regressions",
    ];
    const NAMES: [&str; 14] = [
        "test.rs",
        "tests.rs",
        "test.py",
        "tests.py",
        "conftest.py",
        "pytest.ini",
        "tox.ini",
        "noxfile.py",
        ".coveragerc",
        "nextest.toml",
        "test.c",
        "test.js",
        "test.ts",
        "karma.conf.js",
    ];
    const RUNNER_SETTINGS: [&str; 8] = [
        "jest.config.",
        "jest.setup.",
        "vitest.config.",
        "vitest.workspace.",
        "playwright.config.",
        "cypress.config.",
        ".mocharc.",
        "ava.config.",
    ];
    const ENDINGS: [&str; 6] = [".snap", ".snap.new", ".phpt", ".t", ".feature", ".bats"];
    let lower = path.as_str().to_ascii_lowercase();
    let (directories, name) = split(&lower);
    if directories.split('/').any(|segment| DIRECTORIES.contains(&segment))
        || NAMES.contains(&name)
        || RUNNER_SETTINGS.iter().any(|start| name.starts_with(start))
        || ENDINGS.iter().any(|end| name.ends_with(end))
    {
        return true;
    }
    // `test_a.py`, `a_test.go`, `a.test.ts`, `a-spec.rb`; `ATest.java` needs its capital to differ from `latest`.
    let stem = name.split('.').next().unwrap_or(name);
    let marked = |word: &str, mark: char| {
        word.strip_suffix("test")
            .or_else(|| word.strip_suffix("tests"))
            .or_else(|| word.strip_suffix("spec"))
            .is_some_and(|rest| rest.ends_with(mark))
    };
    stem.starts_with("test_")
        || stem.starts_with("test-")
        || marked(stem, '_')
        || marked(stem, '-')
        || name.rsplit_once('.').is_some_and(|(before, _)| marked(before, '.'))
        || has_capital_test_suffix(path.file_name())
}

/// Whether the path says how the project is built, what it depends on or how its tools behave. Such a file can run
/// commands or switch checks off.
#[must_use]
pub fn is_manifest(path: &RepoPath) -> bool {
    const NAMES: [&str; 71] = [
        "cargo.toml",
        "build.rs",
        "rust-toolchain",
        "rust-toolchain.toml",
        "clippy.toml",
        ".clippy.toml",
        "rustfmt.toml",
        ".rustfmt.toml",
        "deny.toml", //
        "pyproject.toml",
        "setup.py",
        "setup.cfg",
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
        ".python-version", //
        "package.json",
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
        ".babelrc", //
        "go.mod",
        "go.work",
        ".golangci.yml",
        ".golangci.yaml", //
        "cmakelists.txt",
        "cmakepresets.json",
        "makefile",
        "gnumakefile",
        "meson.build",
        "meson_options.txt",
        "meson.options",
        "configure",
        "configure.ac",
        "conanfile.txt",
        "conanfile.py",
        "vcpkg.json", //
        "build.bazel",
        "build",
        "workspace",
        "module.bazel",
        ".bazelrc",
        "justfile",
        "taskfile.yml", //
        "pom.xml",
        "gemfile",
        "rakefile",
        "composer.json",
        "mix.exs",
        "dockerfile",
        ".tool-versions",
    ];
    const STARTS: [&str; 10] = [
        "requirements",
        "constraints",
        "tsconfig.",
        ".eslintrc",
        "eslint.config.",
        "vite.config.",
        "webpack.config.",
        "rollup.config.",
        "babel.config.",
        "docker-compose.",
    ];
    const ENDINGS: [&str; 13] = [
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
    ];
    let lower = path.as_str().to_ascii_lowercase();
    let (_, name) = split(&lower);
    let is_listing = ["requirements", "constraints"].iter().any(|start| name.starts_with(start))
        && [".txt", ".in"].iter().any(|end| name.ends_with(end));
    NAMES.contains(&name)
        || is_listing
        || STARTS[2..].iter().any(|start| name.starts_with(start))
        || ENDINGS.iter().any(|end| name.ends_with(end))
        || lower.starts_with(".cargo/")
        || lower.contains("/.cargo/")
        || lower.starts_with("requirements/")
}

/// Whether the path belongs to continuous integration, to commit hooks or to review rules.
#[must_use]
pub fn is_ci(path: &RepoPath) -> bool {
    const DIRECTORIES: [&str; 10] = [
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
    ];
    const NAMES: [&str; 18] = [
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
    ];
    let lower = path.as_str().to_ascii_lowercase();
    let (directories, name) = split(&lower);
    directories.split('/').any(|segment| DIRECTORIES.contains(&segment)) || NAMES.contains(&name)
}

/// Whether the path is a lock file: what a package manager wrote, and what decides which foreign code is run.
#[must_use]
pub fn is_lockfile(path: &RepoPath) -> bool {
    const NAMES: [&str; 12] = [
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
    ];
    let lower = path.as_str().to_ascii_lowercase();
    let (_, name) = split(&lower);
    NAMES.contains(&name) || name.ends_with(".lock")
}

/// Whether git reads the path as a setting: which files it filters, hides or fetches from elsewhere.
#[must_use]
pub fn is_git_setting(path: &RepoPath) -> bool {
    let name = path.file_name().to_ascii_lowercase();
    matches!(name.as_str(), ".gitattributes" | ".gitmodules" | ".gitignore" | ".gitconfig" | ".mailmap")
}

/// The directories and the last name of a path.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// `UserTest.java`, `UserTests.cs`, `UserSpec.scala`: a word of its own by its capital.
fn has_capital_test_suffix(name: &str) -> bool {
    let Some((stem, extension)) = name.rsplit_once('.') else {
        return false;
    };
    matches!(extension, "java" | "kt" | "cs" | "scala" | "swift" | "php" | "groovy")
        && ["Test", "Tests", "Spec", "IT", "TestCase"].iter().any(|end| stem.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(paths: &[&str], class: fn(&RepoPath) -> bool) -> Vec<String> {
        paths.iter().filter(|path| !class(&path.parse().unwrap())).map(ToString::to_string).collect()
    }

    fn none(paths: &[&str], class: fn(&RepoPath) -> bool) -> Vec<String> {
        paths.iter().filter(|path| class(&path.parse().unwrap())).map(ToString::to_string).collect()
    }

    const TESTS: &[&str] = &[
        "tests/it.rs",
        "crates/a/tests/it/main.rs",
        "src/parser/tests.rs",
        "src/parser_test.rs",
        "src/test.rs",
        "proptest-regressions/a.txt",
        "src/snapshots/a.snap",
        ".config/nextest.toml",
        "tests/data/x.json",
        "test_parser.py",
        "pkg/test_parser.py",
        "pkg/parser_test.py",
        "conftest.py",
        "pkg/tests.py",
        "tests/__init__.py",
        "pytest.ini",
        "tox.ini",
        "src/a.test.js",
        "src/a.spec.ts",
        "src/a.test.tsx",
        "src/__tests__/a.js",
        "test/a.mjs",
        "jest.config.js",
        "vitest.config.mts",
        ".mocharc.yml",
        "src/__mocks__/fs.js",
        "e2e/login.ts",
        "pkg/a_test.go",
        "pkg/testdata/in.txt",
        "test_list.c",
        "list_test.cc",
        "lib/list-test.c",
        "spec/a_spec.rb",
        "src/UserTest.java",
        "Tests/A.cs",
        "TEST/a.c",
        "src/a.Spec.Ts",
        "fixtures/in.json",
    ];
    const SOURCES: &[&str] = &[
        "src/lib.rs",
        "src/latest.rs",
        "src/contest.py",
        "src/testing.rs",
        "src/attest/mod.rs",
        "src/protest.go",
        "src/inspect.ts",
        "src/special.c",
        "src/tester.py",
        "README.md",
        "src/Latest.java",
        "src/greatest.js",
        "docs/specs.md",
        "src/aspect.rs",
        "src/t.rs",
        "src/Manifest.kt",
        "src/build/mod.rs",
    ];
    const MANIFESTS: &[&str] = &[
        "Cargo.toml",
        "crates/a/Cargo.toml",
        "build.rs",
        "rust-toolchain.toml",
        ".cargo/config.toml",
        "a/.cargo/config",
        "pyproject.toml",
        "setup.py",
        "requirements.txt",
        "requirements-dev.txt",
        "requirements/base.txt",
        "constraints.txt",
        "Pipfile",
        "package.json",
        "web/package.json",
        "tsconfig.json",
        "tsconfig.build.json",
        ".npmrc",
        "eslint.config.mjs",
        "go.mod",
        "go.work",
        "CMakeLists.txt",
        "Makefile",
        "makefile",
        "rules.mk",
        "meson.build",
        "configure.ac",
        "BUILD.bazel",
        "a/BUILD",
        "build.gradle.kts",
        "App.csproj",
        "x.pth",
        "Dockerfile",
    ];
    const CI: &[&str] = &[
        ".github/workflows/ci.yml",
        ".github/CODEOWNERS",
        ".gitlab-ci.yml",
        ".gitlab/ci/a.yml",
        ".circleci/config.yml",
        "Jenkinsfile",
        ".travis.yml",
        ".pre-commit-config.yaml",
        ".husky/pre-commit",
        ".ci/run",
        ".GitHub/workflows/x.yml",
        "sub/.github/workflows/ci.yml",
        "docs/CODEOWNERS",
    ];
    const LOCKS: &[&str] = &[
        "Cargo.lock",
        "fuzz/Cargo.lock",
        "package-lock.json",
        "yarn.lock",
        "pnpm-lock.yaml",
        "bun.lock",
        "bun.lockb",
        "poetry.lock",
        "uv.lock",
        "Pipfile.lock",
        "go.sum",
        "Gemfile.lock",
        "flake.lock",
        "CARGO.LOCK",
    ];

    #[test]
    fn tests_are_known_in_every_layout() {
        assert!(all(TESTS, is_test_path).is_empty(), "{:?}", all(TESTS, is_test_path));
        assert!(none(SOURCES, is_test_path).is_empty(), "{:?}", none(SOURCES, is_test_path));
    }

    #[test]
    fn manifests_are_known() {
        assert!(all(MANIFESTS, is_manifest).is_empty(), "{:?}", all(MANIFESTS, is_manifest));
        assert!(none(SOURCES, is_manifest).is_empty(), "{:?}", none(SOURCES, is_manifest));
        assert!(!is_manifest(&"src/requirements.rs".parse().unwrap()));
    }

    #[test]
    fn ci_and_review_rules_are_known() {
        assert!(all(CI, is_ci).is_empty(), "{:?}", all(CI, is_ci));
        assert!(none(SOURCES, is_ci).is_empty());
    }

    #[test]
    fn lock_files_are_known() {
        assert!(all(LOCKS, is_lockfile).is_empty(), "{:?}", all(LOCKS, is_lockfile));
        assert!(none(SOURCES, is_lockfile).is_empty());
        assert!(!is_lockfile(&"src/lock.rs".parse().unwrap()));
    }

    #[test]
    fn git_settings_are_known_at_any_depth() {
        for path in [".gitattributes", "a/.gitattributes", ".gitmodules", "a/b/.GitIgnore"] {
            assert!(is_git_setting(&path.parse().unwrap()), "{path}");
        }
        assert!(!is_git_setting(&"gitattributes.md".parse().unwrap()));
    }
}
