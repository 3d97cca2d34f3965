//! Classifies the failure of a gate. A simple first version: the exit of the process decides first, then the
//! purpose of its command, then its output.

use serde::{Deserialize, Serialize};

use crate::gate::{GateEnd, GateRun, NotStarted};
use crate::runner::missing_requirement;

/// The kinds of failures reported to a fixer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// It did not fail.
    None,
    /// Its time was over.
    Timeout,
    /// It printed without end.
    OutputLimit,
    /// It exceeded the disk limit.
    DiskLimit,
    /// A signal ended it, or one of its processes.
    Killed,
    /// A program or module that it needs is not installed.
    ToolMissing,
    /// The sandbox could not be set up.
    Sandbox,
    /// The code does not compile, load or type-check.
    CompileError,
    /// A test failed.
    TestFailure,
    /// A linter or formatter complained.
    Lint,
    /// The class cannot be determined.
    Unknown,
}

impl FailureClass {
    /// The class as artifacts spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Timeout => "timeout",
            Self::OutputLimit => "output_limit",
            Self::DiskLimit => "disk_limit",
            Self::Killed => "killed",
            Self::ToolMissing => "tool_missing",
            Self::Sandbox => "sandbox",
            Self::CompileError => "compile_error",
            Self::TestFailure => "test_failure",
            Self::Lint => "lint",
            Self::Unknown => "unknown",
        }
    }
}

/// The class of one gate's end.
#[must_use]
pub fn classify(run: &GateRun) -> FailureClass {
    match &run.end {
        GateEnd::Exited(0) => FailureClass::None,
        GateEnd::TimedOut { .. } => FailureClass::Timeout,
        GateEnd::OutputLimit => FailureClass::OutputLimit,
        GateEnd::DiskLimit { .. } => FailureClass::DiskLimit,
        GateEnd::Signalled(_) => FailureClass::Killed,
        GateEnd::NotStarted {
            why: NotStarted::Sandbox,
            ..
        } => FailureClass::Sandbox,
        // Only the output of its setup is available.
        GateEnd::NotStarted {
            why: NotStarted::Setup,
            ..
        } => by_words(run),
        GateEnd::NotStarted {
            why: NotStarted::EmptyCommand | NotStarted::ToolMissing,
            ..
        } => FailureClass::ToolMissing,
        // Shells, make and npm pass this on from a program that they could not find or run.
        GateEnd::Exited(126 | 127) => FailureClass::ToolMissing,
        // Inside the sandbox a program that a signal ended shows as 128 and the signal.
        GateEnd::Exited(129..=192) => FailureClass::Killed,
        GateEnd::Exited(_) => by_words(run),
    }
}

/// In addition to the runners' own signs ([`crate::Runner::signs`]).
const MISSING: &[&str] = &[
    "error: no such subcommand",
    ": command not found",
    ": not found\n",
    "npm error Missing script",
    "npm ERR! missing script",
];

const TESTS: &[&str] = &[
    "test result: FAILED",
    "panicked at",
    "\n--- FAIL:",
    "AssertionError",
    "= FAILURES =",
    "\nFAILED ",
    "\nnot ok ",
    "Tests failed",
    "test failed",
    " failing\n",
];

const COMPILER: &[&str] = &[
    "\nerror[E",
    "SyntaxError:",
    "IndentationError:",
    "[build failed]",
    "[setup failed]",
    "ERROR collecting",
    "ModuleNotFoundError:",
    "ImportError:",
    "): error TS",
    "error: aborting due to",
    "fatal error:",
];

/// Cargo also prints it when a linter denied a warning, so it counts only without a linter.
const CARGO_COMPILER: &str = "error: could not compile";

fn by_words(run: &GateRun) -> FailureClass {
    let text = format!("\n{}\n{}\n", run.stderr.text(), run.stdout.text());
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let linter = is_linter(&run.command);
    if has(MISSING) || missing_requirement(run).is_some() {
        FailureClass::ToolMissing
    } else if !linter && has(TESTS) && !has(COMPILER) {
        FailureClass::TestFailure
    } else if has(COMPILER)
        || (!linter && text.contains(CARGO_COMPILER))
        || has_go_compile_error(&text)
    {
        FailureClass::CompileError
    } else if linter {
        FailureClass::Lint
    } else if has(TESTS) {
        FailureClass::TestFailure
    } else {
        FailureClass::Unknown
    }
}

/// Whether the command's purpose is to complain about style or types.
fn is_linter(command: &[String]) -> bool {
    const LINTERS: &[&str] = &[
        "clippy",
        "fmt",
        "ruff",
        "flake8",
        "black",
        "isort",
        "pylint",
        "mypy",
        "pyright",
        "eslint",
        "prettier",
        "biome",
        "vet",
        "golangci-lint",
        "gofmt",
        "rustfmt",
        "lint",
        "shellcheck",
    ];
    command.iter().take(4).any(|word| {
        let name = word.rsplit('/').next().unwrap_or(word);
        LINTERS.contains(&name)
    })
}

/// go prints `./file.go:3:5: undefined: x` after a heading `# package`.
fn has_go_compile_error(text: &str) -> bool {
    let mut after_heading = false;
    for line in text.lines() {
        if after_heading && line.contains(".go:") {
            return true;
        }
        after_heading = line.starts_with("# ");
    }
    false
}

#[cfg(test)]
mod tests {
    use crate::gate::GateEnd;
    use crate::judge::tests::run_of;

    use super::*;

    fn class(command: &str, code: i32, stdout: &str, stderr: &str) -> FailureClass {
        classify(&run_of(command, GateEnd::Exited(code), stdout, stderr))
    }

    #[test]
    fn process_end_decides_failure_class_first() {
        let ends = [
            (GateEnd::Exited(0), FailureClass::None),
            (
                GateEnd::TimedOut {
                    after: std::time::Duration::from_secs(1),
                },
                FailureClass::Timeout,
            ),
            (GateEnd::Signalled(9), FailureClass::Killed),
            (GateEnd::Exited(137), FailureClass::Killed),
            (GateEnd::Exited(127), FailureClass::ToolMissing),
            (GateEnd::OutputLimit, FailureClass::OutputLimit),
            (
                GateEnd::DiskLimit {
                    most: crucible_model::ByteLimit(1),
                },
                FailureClass::DiskLimit,
            ),
            (
                GateEnd::NotStarted {
                    why: NotStarted::ToolMissing,
                    message: String::new(),
                },
                FailureClass::ToolMissing,
            ),
            (
                GateEnd::NotStarted {
                    why: NotStarted::Sandbox,
                    message: String::new(),
                },
                FailureClass::Sandbox,
            ),
        ];
        for (end, expected) in ends {
            assert_eq!(
                classify(&run_of("cargo test", end, "panicked at", "error[E0425]")),
                expected
            );
        }
    }

    #[test]
    fn missing_tool_is_classified_with_remedy() {
        let missing_tool = |command: &str, code: i32, stderr: &str| {
            missing_requirement(&run_of(command, GateEnd::Exited(code), "", stderr))
        };
        let cargo = "error: no matching package named `x` found\nAs a reminder, you're using offline mode (--offline) which";
        assert!(
            missing_tool("cargo test", 101, cargo)
                .unwrap()
                .remedy
                .contains("cargo fetch")
        );
        let pytest = missing_tool(
            "python3 -m pytest",
            1,
            "/usr/bin/python3: No module named pytest",
        )
        .unwrap();
        assert!(
            pytest.cause.contains("No module named pytest"),
            "{pytest:?}"
        );
        assert!(pytest.remedy.contains("install pytest"), "{pytest:?}");
        assert!(
            missing_tool("npm test", 127, "sh: 1: jest: not found")
                .unwrap()
                .remedy
                .contains("npm ci")
        );
        assert_eq!(
            missing_tool("sh check.sh", 127, "check.sh: 3: helper: not found"),
            None
        );
        assert_eq!(
            missing_tool("python3 -m pytest", 0, "No module named pytest"),
            None
        );
        assert_eq!(
            missing_tool("cargo test", 101, "thread 'a' panicked at x"),
            None
        );
    }

    #[test]
    fn words_tell_the_rest() {
        let cases = [
            (
                "cargo test",
                101,
                "test result: FAILED. 0 passed",
                "thread 'a' panicked at x",
                FailureClass::TestFailure,
            ),
            (
                "cargo test",
                101,
                "",
                "error[E0425]: cannot find\nerror: could not compile `a`",
                FailureClass::CompileError,
            ),
            (
                "cargo test",
                101,
                "",
                "error: expected `;`\nerror: could not compile `a`",
                FailureClass::CompileError,
            ),
            (
                "cargo clippy",
                101,
                "",
                "error: used `unwrap()`\nerror: could not compile `a`",
                FailureClass::Lint,
            ),
            (
                "cargo clippy",
                101,
                "",
                "error[E0425]: cannot find value",
                FailureClass::CompileError,
            ),
            (
                "cargo fmt --check",
                1,
                "Diff in a.rs",
                "",
                FailureClass::Lint,
            ),
            (
                "cargo nextest run",
                101,
                "",
                "error: no such command: `nextest`",
                FailureClass::ToolMissing,
            ),
            (
                "python -m pytest",
                1,
                "",
                "/usr/bin/python: No module named pytest",
                FailureClass::ToolMissing,
            ),
            (
                "pytest",
                1,
                "E   AssertionError: assert 1 == 2\nFAILED a.py::t",
                "",
                FailureClass::TestFailure,
            ),
            (
                "pytest",
                2,
                "ERROR collecting test_a.py\nE   SyntaxError: invalid",
                "",
                FailureClass::CompileError,
            ),
            (
                "go test ./...",
                1,
                "--- FAIL: TestA (0.00s)\nFAIL",
                "",
                FailureClass::TestFailure,
            ),
            (
                "go test ./...",
                1,
                "FAIL a [build failed]",
                "# a\n./a.go:3:5: undefined: x",
                FailureClass::CompileError,
            ),
            (
                "npm test",
                1,
                "not ok 1 - adds",
                "",
                FailureClass::TestFailure,
            ),
            (
                "npm test",
                1,
                "",
                "npm error Missing script: \"test\"",
                FailureClass::ToolMissing,
            ),
            (
                "make check",
                2,
                "",
                "make: *** [check] Error 1",
                FailureClass::Unknown,
            ),
        ];
        for (command, code, stdout, stderr, expected) in cases {
            assert_eq!(
                class(command, code, stdout, stderr),
                expected,
                "{command}: {stdout}{stderr}"
            );
        }
    }
}
