//! What a path is to the judge of patches: the files with which a patch could grade itself.
//!
//! What a name stands for says the table that all crates share, [`PathRoles`]. A hidden name that it does not know is a setting of some
//! tool, of an editor or of an agent: there are more of them than a table can hold, and many of them run commands.

use crucible_model::{Denial, PathRole, PathRoles, RepoPath, denied_place};

/// Whether the path holds tests, their data or the settings of a test runner: Rust, Python, JavaScript and
/// TypeScript, Go, C and C++, and the common layouts of other languages.
#[must_use]
pub fn is_test_path(path: &RepoPath) -> bool {
    has_one_of(path, &[PathRole::Test, PathRole::TestSettings])
}

/// Whether the path says how the project is built, what it depends on or how its tools behave. Such a file can run
/// commands or switch checks off.
#[must_use]
pub fn is_manifest(path: &RepoPath) -> bool {
    has_one_of(path, &[PathRole::Project, PathRole::ToolSettings]) || is_setting_of_some_tool(path)
}

/// Whether the path belongs to continuous integration, to commit hooks or to review rules.
#[must_use]
pub fn is_ci(path: &RepoPath) -> bool {
    has_one_of(path, &[PathRole::Ci])
}

/// Whether the path is a lock file: what a package manager wrote, and what decides which foreign code is run.
#[must_use]
pub fn is_lockfile(path: &RepoPath) -> bool {
    has_one_of(path, &[PathRole::Lockfile])
}

/// Whether git reads the path as a setting: which files it filters, hides or fetches from elsewhere.
#[must_use]
pub fn is_git_setting(path: &RepoPath) -> bool {
    has_one_of(path, &[PathRole::GitSetting])
}

/// A hidden name of which nobody says anything else.
fn is_setting_of_some_tool(path: &RepoPath) -> bool {
    use PathRole::{Ci, GitSetting, Lockfile, Test, TestSettings};
    path.segments().any(|name| {
        name.starts_with('.') && !HARMLESS.contains(&name.to_ascii_lowercase().as_str())
    }) && denied_place(path, Denial::Changed).is_none()
        && !has_one_of(path, &[Test, TestSettings, Ci, Lockfile, GitSetting])
}

/// Hidden names that no tool takes an order from.
const HARMLESS: [&str; 5] = [
    ".gitkeep",
    ".keep",
    ".nojekyll",
    ".well-known",
    ".env.example",
];

fn has_one_of(path: &RepoPath, requested: &[PathRole]) -> bool {
    let roles = PathRoles::from_path(path);
    requested.iter().any(|role| roles.has(*role))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(paths: &[&str], class: fn(&RepoPath) -> bool) -> Vec<String> {
        paths
            .iter()
            .filter(|path| !class(&path.parse().unwrap()))
            .map(ToString::to_string)
            .collect()
    }

    fn none(paths: &[&str], class: fn(&RepoPath) -> bool) -> Vec<String> {
        paths
            .iter()
            .filter(|path| class(&path.parse().unwrap()))
            .map(ToString::to_string)
            .collect()
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
        "specs/a.rb",
        "lib/testing/harness.go",
        "pkg/test.go",
        "src/a.test.d.ts",
        "contracts/Vault.t.sol",
        "api/users.hurl",
        "web/login.cy.ts",
        "web/login.cy.js",
        "src/TestUser.java",
        "src/main/java/TestMath.kt",
        "a/out.golden",
        "expected/a.txt",
        "integration/a.py",
        "regress/a.sql",
        "qa/a.rb",
        "e2e/a.ts",
        "golden/a.txt",
        "web/app.e2e-spec.ts",
        "AppUITests/Login.swift",
        "Shop.Tests/A.cs",
        "src/androidTest/A.kt",
        "src/UserTest.ts",
        "test/Spec.hs",
        "src/ParserSpec.hs",
        "a.approved.txt",
        "src/a.expected.json",
        "sql/expected/a.out",
        "crates/a/integration/a.rs",
        ".nycrc",
        ".nycrc.json",
        ".nextest/config.toml",
        ".config/nextest.toml",
        "cucumber.yml",
        "x.runsettings",
        "cassettes/a.yaml",
        "smoke/run.sh",
        "runtests.sh",
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
        "src/qa/mod.rs",
        "src/integration/mod.rs",
        "src/expected.rs",
        "src/Testament.java",
        "src/Testable.kt",
        "lib/regression/linear.rb",
        "app/e.ts",
        "src/compose.rs",
        "src/action.ts",
        "src/hooks/useCart.ts",
        "src/post_checkout.py",
        "src/post-checkout.ts",
        "src/ci.rs",
        "src/ci/mod.rs",
        "src/check.rs",
        "src/global.ts",
        "src/workspace.rs",
        "src/agents.rs",
        "src/lint/mod.rs",
        "docs/hooks.md",
        "src/golden_ratio.py",
        "src/expect.rs",
        "src/owners.rs",
        "src/vagrant.py",
        "src/dockerfile_parser.py",
        "src/pods.rs",
        "src/props.ts",
        "src/pipeline/mod.rs",
        "shop/integration/client.py",
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
        "workspace.yaml",
        "mise.toml",
        ".mise.toml",
        ".mise/config.toml",
        "Vagrantfile",
        "compose.yaml",
        "compose.override.yml",
        "docker-compose.yml",
        "docker-compose.dev.yaml",
        "Directory.Build.props",
        "Directory.Build.targets",
        "nuget.config",
        "global.json",
        "stack.yaml",
        "rebar.config",
        "Podfile",
        "Makefile.am",
        "Dockerfile.dev",
        ".claude/settings.json",
        ".mcp.json",
        "CLAUDE.md",
        "CLAUDE.local.md",
        "AGENTS.md",
        "sub/AGENTS.md",
        ".devcontainer/devcontainer.json",
        ".vimrc",
        ".exrc",
        ".envrc",
        ".editor-of-tomorrow/x.json",
        ".idea/workspace.xml",
        "a/.cursor/rules",
        ".config/mise.toml",
        "gradlew",
        ".mvn/jvm.config",
        "build.xml",
        "App.podspec",
        "dune-project",
        "cpanfile",
        "SConstruct",
        "pubspec.yaml",
        "foundry.toml",
        "hardhat.config.ts",
        "uv.toml",
        "Snakefile",
        "config.ru",
        "SKILL.md",
        "magefile.go",
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
        ".tekton/push.yaml",
        "buildspec.yml",
        ".builds/a.yml",
        ".semaphore/semaphore.yml",
        ".teamcity/settings.kts",
        "wercker.yml",
        "Earthfile",
        "dagger.json",
        "action.yml",
        "sub/action.yaml",
        "netlify.toml",
        "vercel.json",
        "scripts/ci.sh",
        "tools/run-ci.sh",
        "scripts/ci/build.py",
        "ci/run.py",
        "sonar-project.properties",
        ".semgrep.yml",
        ".git-hooks/x",
        "hooks/pre-commit",
        "tools/commit-msg",
        "pre-push.sh",
        ".hooks/a",
        "Jenkinsfile.release",
        ".gitlab-ci.deploy.yml",
        "scripts/check.sh",
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
        assert!(
            all(TESTS, is_test_path).is_empty(),
            "{:?}",
            all(TESTS, is_test_path)
        );
        assert!(
            none(SOURCES, is_test_path).is_empty(),
            "{:?}",
            none(SOURCES, is_test_path)
        );
    }

    #[test]
    fn manifests_are_known() {
        assert!(
            all(MANIFESTS, is_manifest).is_empty(),
            "{:?}",
            all(MANIFESTS, is_manifest)
        );
        assert!(
            none(SOURCES, is_manifest).is_empty(),
            "{:?}",
            none(SOURCES, is_manifest)
        );
        assert!(!is_manifest(&"src/requirements.rs".parse().unwrap()));
    }

    #[test]
    fn ci_and_review_rules_are_known() {
        assert!(all(CI, is_ci).is_empty(), "{:?}", all(CI, is_ci));
        assert!(none(SOURCES, is_ci).is_empty());
    }

    #[test]
    fn lock_files_are_known() {
        assert!(
            all(LOCKS, is_lockfile).is_empty(),
            "{:?}",
            all(LOCKS, is_lockfile)
        );
        assert!(none(SOURCES, is_lockfile).is_empty());
        assert!(!is_lockfile(&"src/lock.rs".parse().unwrap()));
    }

    #[test]
    fn unknown_hidden_file_is_a_setting() {
        for path in [
            ".new-tool",
            ".new-tool/run.json",
            "web/.new.yml",
            ".github.bak/x",
        ] {
            assert!(is_manifest(&path.parse().unwrap()), "{path}");
        }
        // These have their own refusals, one of which is enough.
        for path in [
            ".gitignore",
            ".github/x.yml",
            ".husky/a",
            ".nycrc",
            ".crucible/config.toml",
            "a/.gitkeep",
            "docs/.nojekyll",
        ] {
            assert!(!is_manifest(&path.parse().unwrap()), "{path}");
        }
    }

    #[test]
    fn git_settings_are_known_at_any_depth() {
        for path in [
            ".gitattributes",
            "a/.gitattributes",
            ".gitmodules",
            "a/b/.GitIgnore",
        ] {
            assert!(is_git_setting(&path.parse().unwrap()), "{path}");
        }
        assert!(!is_git_setting(&"gitattributes.md".parse().unwrap()));
    }
}
