//! One test file by itself: the command that runs it, and how its test ended. Pure.
//!
//! Supported are unittest, pytest and `node --test`.

use crucible_model::RepoPath;

use crate::gate::GateRun;
use crate::objections::ObjectionTest;
use crate::results::TestStatus;
use crate::runner::{Call, command, runner_of};

/// Returns the command that runs only the tests of one file, made from the command of a gate; nothing if its runner is not
/// supported, or runs no files of this language.
#[must_use]
pub fn lone_test_command(gate: &[String], path: &RepoPath) -> Option<Vec<String>> {
    let call = Call::parse(gate)?;
    let file = path.as_str().rsplit('/').next()?;
    let is_python = path.extension() == Some("py");
    let args = match runner_of(gate)?.id() {
        "pytest" if is_python => command(&["-q", "-p", "no:cacheprovider", path.as_str()]),
        "unittest" if is_python && call.program == "unittest" => {
            if call.args.first().is_some_and(|first| first == "discover") {
                let mut args = command(&["discover"]);
                for pair in call.args.windows(2) {
                    if matches!(pair[0].as_str(), "-s" | "-t") {
                        args.extend(pair.iter().cloned());
                    }
                }
                args.extend(command(&["-p", file]));
                args
            } else {
                command(&[path.as_str()])
            }
        }
        "node-test" if matches!(path.extension(), Some("js" | "mjs" | "cjs")) => {
            let options = call.args.iter().filter(|word| word.starts_with('-'));
            options.cloned().chain(command(&[path.as_str()])).collect()
        }
        _ => return None,
    };
    Some(call.with_args(args))
}

/// How the test of an objection ended in a run; nothing if it was not collected.
pub(crate) fn status_of_test(run: &GateRun, test: &ObjectionTest) -> Option<TestStatus> {
    let results = run.results.as_ref()?;
    let stem = stem(&test.path);
    let is_it = |name: &str| name.contains(stem) && name.contains(&test.name);
    let mut found = results.tests.iter().filter(|(name, _)| is_it(name));
    found.next().map(|(_, status)| *status)
}

/// The name of a file without its directory and its last ending.
fn stem(path: &RepoPath) -> &str {
    let file = path.as_str().rsplit('/').next().unwrap_or_default();
    file.rsplit_once('.').map_or(file, |(stem, _)| stem)
}

/// Whether a failed test failed by an assertion of its own, as its runner prints it. An assertion inside the tested code does not
/// count.
pub(crate) fn failed_by_assertion(run: &GateRun, test: &ObjectionTest) -> bool {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&run.stdout.bytes), text(&run.stderr.bytes));
    let path = test.path.as_str();
    let file = path.rsplit('/').next().unwrap_or_default();
    match runner_of(&run.command).map(|runner| runner.id()) {
        // `tests/test_a.py:6: AssertionError`
        Some("pytest") => stdout.lines().any(|line| {
            let is_here = line.starts_with(&format!("{path}:"));
            is_here && (line.ends_with(": AssertionError") || line.ends_with(": Failed"))
        }),
        Some("unittest") => {
            let start = format!("FAIL: {} (", test.name);
            let mut lines = stderr.lines();
            let is_there =
                lines.any(|line| line.starts_with(&start) && line.contains(stem(&test.path)));
            let block =
                lines.take_while(|line| !line.starts_with("=====") && !line.starts_with("Ran "));
            let last = block
                .filter(|line| line.trim_start().starts_with("File \""))
                .last();
            is_there && last.is_some_and(|frame| frame.contains(&format!("/{file}\"")))
        }
        Some("node-test") => {
            let mut lines = stdout.lines();
            let is_there = lines.any(|line| line.starts_with("test at ") && line.contains(path));
            let mut block = lines
                .take_while(|line| !line.starts_with("test at "))
                .skip_while(|line| !line.contains("[ERR_ASSERTION]"));
            let frame = block.find(|line| line.trim_start().starts_with("at "));
            is_there && frame.is_some_and(|frame| frame.contains(&format!("/{file}:")))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::GateEnd;
    use crate::judge::tests::run_of;

    fn command(gate: &str, path: &str) -> Option<String> {
        let words: Vec<String> = gate.split(' ').map(str::to_owned).collect();
        Some(lone_test_command(&words, &path.parse().unwrap())?.join(" "))
    }

    #[test]
    fn one_file_runs_with_the_interpreter_of_its_gate() {
        for (gate, path, lone) in [
            (
                ".venv/bin/python -m pytest tests",
                "tests/test_a.py",
                Some(".venv/bin/python -m pytest -q -p no:cacheprovider tests/test_a.py"),
            ),
            (
                "python3 -m unittest discover -s tests -v",
                "tests/test_a.py",
                Some("python3 -m unittest discover -s tests -p test_a.py"),
            ),
            (
                "python3 -m unittest -q",
                "tests/test_a.py",
                Some("python3 -m unittest tests/test_a.py"),
            ),
            (
                "node --test test/b.js",
                "test/a.js",
                Some("node --test test/a.js"),
            ),
            ("node --test", "tests/test_a.py", None),
            ("cargo test", "tests/a.rs", None),
            ("sh check.sh", "tests/test_a.py", None),
            ("python3 manage.py test", "tests/test_a.py", None),
        ] {
            assert_eq!(command(gate, path).as_deref(), lone, "{gate}");
        }
    }

    #[test]
    fn assertion_of_tested_code_is_no_failed_test() {
        let test = ObjectionTest {
            path: "tests/test_a.py".parse().unwrap(),
            name: "test_a".to_owned(),
            text: String::new(),
        };
        let run = |frame: &str| {
            let text = format!("    assert x\nE   AssertionError\n\n{frame}\n");
            run_of("pytest", GateEnd::Exited(1), &text, "")
        };
        assert!(failed_by_assertion(
            &run("tests/test_a.py:3: AssertionError"),
            &test
        ));
        assert!(failed_by_assertion(
            &run("tests/test_a.py:3: Failed"),
            &test
        ));
        for other in [
            "src/a.py:3: AssertionError",
            "tests/test_a.py:3: ValueError",
        ] {
            assert!(!failed_by_assertion(&run(other), &test), "{other}");
        }
    }
}
