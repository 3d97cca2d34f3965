//! Gates that could not run.

use super::*;

/// Returns why a command with this exit code could not run, as `cause / remedy`.
fn obstacle(command: &str, code: i32, stdout: &str, stderr: &str) -> Option<String> {
    could_not_run(&run_of(command, GateEnd::Exited(code), stdout, stderr))
        .map(|found| format!("{} / {}", found.cause, found.remedy))
}

/// A collection error as pytest prints it.
fn collecting(file: &str, frames: &[&str], error: &str) -> String {
    let frames: String = frames
        .iter()
        .map(|file| format!("{file}:1: in <module>\n    import x\n"))
        .collect();
    format!(
        "_____ ERROR collecting {file} _____\nImportError while importing test module '/w/{file}'.\nHint: x\nTraceback:\n\
         /usr/lib/python3.11/importlib/__init__.py:126: in import_module\n    return x\n{frames}E   {error}\n"
    )
}

#[test]
fn missing_tools_are_reported_with_one_command() {
    let py = "python3 -m pytest -q";
    let wants_numpy = collecting(
        "tests/test_a.py",
        &["tests/test_a.py", "pkg/a.py"],
        "ModuleNotFoundError: No module named 'numpy'",
    );
    let wants_own: String = ["a", "b"]
        .map(|name| format!("tests/test_{name}.py"))
        .iter()
        .map(|file| collecting(file, &[file], "ModuleNotFoundError: No module named 'pkg'"))
        .collect();
    let conftest = "ImportError while loading conftest '/w/tests/conftest.py'.\ntests/conftest.py:1: in <module>\n    import numpy\n\
                    E   ModuleNotFoundError: No module named 'numpy'\n";
    let unittest = "ERROR: test_a (unittest.loader._FailedTest.test_a)\nImportError: Failed to import test module: test_a\nTraceback (most recent call last):\n  \
                    File \"/w/tests/test_a.py\", line 1, in <module>\n    import pkg\n  File \"/w/pkg/__init__.py\", line 1, in <module>\n    import numpy\n\
                    ModuleNotFoundError: No module named 'numpy'\n\nRan 1 test in 0.000s\n\nFAILED (errors=1)\n";
    for (command, code, stdout, stderr, remedy) in [
        (
            "cargo nextest run",
            101,
            "",
            "error: no such command: `nextest`",
            "cargo install cargo-nextest",
        ),
        (
            "cargo test",
            1,
            "",
            "error: toolchain '1.80.0-x' is not installed",
            "rustup toolchain install 1.80.0-x",
        ),
        (
            "cargo test",
            1,
            "",
            "error: rustup could not choose a version of cargo to run",
            "rustup default stable",
        ),
        (
            "cargo test",
            101,
            "",
            "error: no matching package named `x` found\nyou're using offline mode (--offline)",
            "cargo fetch",
        ),
        (
            "cargo test",
            101,
            "",
            "error: failed to download `x v1`",
            "cargo fetch",
        ),
        (
            py,
            1,
            "",
            "/usr/bin/python3: No module named pytest",
            "pip install pytest",
        ),
        (
            "python3 -m mypy .",
            1,
            "",
            "/usr/bin/python3: No module named mypy",
            "pip install mypy",
        ),
        (
            py,
            4,
            "",
            "ERROR: usage: x\n__main__.py: error: unrecognized arguments: --cov=pkg",
            "pip install pytest-cov",
        ),
        (
            py,
            4,
            "",
            "ERROR: Missing required plugins: pytest-asyncio, pytest-mock",
            "pip install pytest-asyncio pytest-mock",
        ),
        (py, 4, "", conftest, "pip install -e ."),
        (
            py,
            2,
            &format!("{wants_numpy}1 error in 0.10s"),
            "",
            "numpy",
        ),
        (py, 2, &format!("{wants_own}2 errors in 0.10s"), "", "pkg"),
        ("python3 -m unittest", 1, "", unittest, "numpy"),
        ("npm test", 127, "", "sh: 1: vitest: not found", "npm ci"),
        (
            "pnpm test",
            127,
            "sh: 1: vitest: not found",
            "",
            "pnpm install --frozen-lockfile",
        ),
        (
            "npm test",
            1,
            "",
            "npm error Missing script: \"test\"",
            "crucible run start --test",
        ),
        (
            "npm test",
            1,
            "Error: Cannot find module 'lodash'\n# tests 1\n# pass 0\n# fail 1\n",
            "",
            "npm ci",
        ),
        (
            "node --test",
            1,
            "Error: Cannot find package 'left-pad' imported from /w/a.js\nℹ tests 1\nℹ pass 0\nℹ fail 1\n",
            "",
            "npm ci",
        ),
        (
            "npx vitest run",
            1,
            "Error: Failed to resolve entry for package \"left-pad\". The package may have incorrect main/module/exports\n",
            "",
            "npm ci",
        ),
        (
            "go test ./...",
            1,
            "FAIL\ta [setup failed]\n",
            "a.go:1:2: no required module provides package example.com/b; to add it:",
            "go mod download",
        ),
        (
            "go test ./...",
            1,
            "",
            "a.go:1:2: missing go.sum entry for module providing package b",
            "go mod download",
        ),
        (
            "go test ./...",
            1,
            "",
            "go: download go1.99.0 for linux/amd64: toolchain not available",
            "go mod download",
        ),
        (
            "make test",
            2,
            "",
            "make: *** No rule to make target 'test'.  Stop.",
            "crucible run start --test",
        ),
        (
            "make test",
            2,
            "",
            "/bin/sh: 1: shellspec: not found\nmake: *** [Makefile:2: test] Error 127",
            "install \"shellspec\"",
        ),
        (
            "make test",
            2,
            "",
            "error: failed to get `x` as a dependency\nmake: *** [Makefile:2: test] Error 101",
            "cargo fetch",
        ),
        (
            "just test",
            127,
            "",
            "sh: 1: bats: not found\nerror: Recipe `test` failed on line 2 with exit code 127",
            "install \"bats\"",
        ),
        (
            "mvn test",
            1,
            "[ERROR] Cannot access central in offline mode and the artifact x has not been downloaded",
            "",
            "mvn dependency:go-offline",
        ),
        (
            "bundle exec rspec",
            7,
            "",
            "Could not find rspec-3.13.0 in locally installed gems",
            "bundle install",
        ),
        (
            "php vendor/bin/phpunit",
            1,
            "Could not open input file: vendor/bin/phpunit",
            "",
            "composer install",
        ),
        (
            "mix test",
            1,
            "",
            "** (Mix) Unchecked dependencies for environment test:",
            "mix deps.get",
        ),
        (
            "dotnet test",
            1,
            "error NU1301: Unable to load the service index",
            "",
            "dotnet restore",
        ),
    ] {
        let found = obstacle(command, code, stdout, stderr);
        assert!(
            found.as_ref().is_some_and(|found| found.contains(remedy)),
            "{command}: {stdout}{stderr}: {found:?}"
        );
    }
}

#[test]
fn gate_without_tests_could_not_run() {
    for (command, code, output) in [
        (
            "cargo test",
            0,
            "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored\n",
        ),
        ("pytest", 5, "no tests ran in 0.01s"),
        ("go test ./...", 0, "?   \ta\t[no test files]\n"),
        ("python3 -m unittest", 0, "Ran 0 tests in 0.000s\n\nOK\n"),
        (
            "python3 -m unittest",
            5,
            "Ran 0 tests in 0.000s\n\nNO TESTS RAN\n",
        ),
        ("npx jest", 1, "No tests found, exiting with code 1\n"),
        ("npm test", 1, "No test files found, exiting with code 1\n"),
        ("mocha", 0, "\n  0 passing (1ms)\n"),
        ("ctest", 0, "No tests were found!!!\n"),
        (
            "rake test",
            0,
            "0 runs, 0 assertions, 0 failures, 0 errors, 0 skips\n",
        ),
        ("mix test", 0, "There are no tests to run\n"),
        (
            "make test",
            0,
            "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored\n",
        ),
    ] {
        let found = obstacle(command, code, output, "");
        assert!(
            found
                .as_ref()
                .is_some_and(|found| found.contains("ran no test")),
            "{command}: {found:?}"
        );
    }
}

#[test]
fn failure_of_the_repository_is_a_failure() {
    let py = "python3 -m pytest -q";
    let one = |error: &str| collecting("tests/test_a.py", &["tests/test_a.py"], error);
    let two = |error: &str| {
        format!(
            "{}{}",
            one(error),
            collecting("tests/test_b.py", &["tests/test_b.py"], error)
        )
    };
    let own = "ModuleNotFoundError: No module named 'stats'";
    for (command, code, stdout, stderr) in [
        // Missing code that a test needs and the change has to add.
        (
            py,
            2,
            format!(
                "{}1 error in 0.1s",
                one("ImportError: cannot import name 'gone' from 'calc'")
            ),
            "",
        ),
        (
            py,
            2,
            format!(
                "{}2 errors in 0.1s",
                two("ImportError: cannot import name 'gone' from 'calc'")
            ),
            "",
        ),
        (py, 2, format!("{}1 error in 0.1s", one(own)), ""),
        (
            py,
            2,
            format!(
                "{}2 errors in 0.1s",
                two("ModuleNotFoundError: No module named 'pkg.stats'")
            ),
            "",
        ),
        (
            py,
            2,
            format!("{}1 error in 0.1s", one("SyntaxError: invalid syntax")),
            "",
        ),
        // Other tests ran.
        (py, 1, format!("{}2 passed, 2 errors in 0.1s", two(own)), ""),
        (py, 1, format!("{}1 failed, 2 errors in 0.1s", two(own)), ""),
        (
            py,
            1,
            "E   ModuleNotFoundError: No module named 'numpy'\n1 failed in 0.1s".to_owned(),
            "",
        ),
        (
            "cargo test",
            101,
            String::new(),
            "error[E0432]: unresolved import `x`\nerror: could not compile `a`",
        ),
        (
            "cargo test",
            101,
            "running 1 test\ntest result: FAILED. 0 passed; 1 failed; 0 ignored\n".to_owned(),
            "error: no such command: `x`",
        ),
        (
            "node --test",
            1,
            "Error: Cannot find module './gone'\nℹ tests 1\nℹ pass 0\nℹ fail 1\n".to_owned(),
            "",
        ),
        (
            "node --test",
            1,
            "Error: Cannot find module '/w/gone.js'\nℹ tests 1\nℹ pass 0\nℹ fail 1\n".to_owned(),
            "",
        ),
        (
            "node --test",
            1,
            "Error: Cannot find module 'x'\nℹ tests 2\nℹ pass 1\nℹ fail 1\n".to_owned(),
            "",
        ),
        (
            "npm test",
            1,
            "Tests:       1 failed, 1 total\n".to_owned(),
            "",
        ),
        (
            "go test ./...",
            1,
            "FAIL\ta [build failed]\n".to_owned(),
            "# a\n./a.go:3:5: undefined: x",
        ),
        (
            "go test ./...",
            1,
            "ok  \ta\t0.003s\nFAIL\tb [setup failed]\n".to_owned(),
            "no required module provides package x",
        ),
        (
            "make test",
            2,
            String::new(),
            "make: *** [Makefile:2: test] Error 1",
        ),
        (
            "sh check.sh",
            127,
            String::new(),
            "check.sh: 3: helper: not found",
        ),
        (py, 1, "1 failed in 0.1s".to_owned(), ""),
    ] {
        assert_eq!(
            obstacle(command, code, &stdout, stderr),
            None,
            "{command}: {stdout}{stderr}"
        );
    }
    assert_eq!(
        obstacle(
            "cargo test",
            0,
            "running 1 test\ntest result: ok. 1 passed; 0 failed\n",
            ""
        ),
        None
    );
    for end in [GateEnd::Signalled(9), GateEnd::OutputLimit] {
        assert_eq!(
            could_not_run(&run_of(py, end, "", "No module named pytest")),
            None
        );
    }
}

#[test]
fn command_never_started_names_its_tool() {
    let end = |why| GateEnd::NotStarted {
        why,
        message: "program was not found".to_owned(),
    };
    use crate::gate::NotStarted::{Sandbox, ToolMissing};
    let found = could_not_run(&run_of("cargo test", end(ToolMissing), "", "")).unwrap();
    assert!(found.remedy.contains("rustup"), "{found:?}");
    let found = could_not_run(&run_of("./run-tests", end(ToolMissing), "", "")).unwrap();
    assert_eq!(found.remedy, "install \"./run-tests\"");
    let found = could_not_run(&run_of("cargo test", end(Sandbox), "", "")).unwrap();
    assert!(found.remedy.contains("crucible sandbox status"));
}
