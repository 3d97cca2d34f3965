//! pytest: settings that mention it, or files that it would collect.

use super::format::junit::{self, Case};
use super::tree_view::{LONE_TESTS, is_python_test};
use super::{
    Call, CommandOutput, NotRunReason, ReportContext, Reporting, Runner, RunnerFiles, Tool,
    TreeView, command, python, unittest,
};
use crate::results::TestResults;
use crate::tally::TestRunner;

/// Files other than its own whose settings may mention pytest.
const MANIFESTS: [&str; 3] = ["pyproject.toml", "setup.cfg", "tox.ini"];

pub(super) struct Pytest;

impl Runner for Pytest {
    fn id(&self) -> &'static str {
        "pytest"
    }

    fn tool(&self) -> Tool {
        Tool {
            program: "python3",
            install: "install Python 3, then run `python3 -m pip install pytest`",
        }
    }

    fn reads(&self) -> &'static [&'static str] {
        &MANIFESTS
    }

    fn detect(&self, view: &TreeView) -> Option<(Vec<String>, String)> {
        let speaks = |name: &&&str| view.text(name).is_some_and(|text| text.contains("pytest"));
        if view.lacks_pytest() && unittest::Unittest.detect(view).is_some() {
            return None;
        }
        let why = if let Some(name) = view.first(&["pytest.ini", ".pytest.ini"]) {
            format!("there is a {name} at the top")
        } else if let Some(name) = MANIFESTS.iter().find(speaks) {
            format!("{name} mentions pytest")
        } else if unittest::Unittest.detect(view).is_some() {
            return None;
        } else {
            let file = view.names.iter().find(|name| is_python_test(name))?;
            format!("pytest would collect {file}")
        };
        // Without its cache, pytest writes nothing into the checked tree.
        let mut words = command(&["python3", "-m", "pytest", "-q", "-p", "no:cacheprovider"]);
        words.extend(lone_file(view).map(str::to_owned));
        Some((words, why))
    }

    /// A tool such as nox may run tests of unittest without pytest.
    fn alternatives(&self, view: &TreeView) -> Vec<Vec<String>> {
        vec![unittest::discover(view)]
    }

    fn runs(&self, call: &Call<'_>) -> bool {
        matches!(call.program, "pytest" | "py.test")
    }

    fn env(&self) -> &'static [(&'static str, &'static str)] {
        &[("PYTHONDONTWRITEBYTECODE", "1")]
    }

    /// All tests run, even if one fails or a module cannot be imported: tests that did not run cannot be
    /// compared.
    fn reporting(&self, call: &Call<'_>, at: &ReportContext<'_>) -> Option<Reporting> {
        let report = format!("--junitxml={}", at.file);
        let more = [
            report.as_str(),
            "-o",
            "junit_family=xunit1",
            "--continue-on-collection-errors",
            "--maxfail=0",
        ];
        Some(Reporting::files(call.appended(&more)))
    }

    fn results(&self, output: &CommandOutput<'_>) -> Option<TestResults> {
        junit::read(output, node_id)
    }

    fn suite(&self) -> &'static str {
        "python"
    }

    fn counts(&self) -> Option<TestRunner> {
        Some(TestRunner::Pytest)
    }

    fn nothing_ran(&self) -> &'static [&'static str] {
        &["no tests ran", "collected 0 items"]
    }

    fn influence(&self) -> RunnerFiles {
        let settings: &[&str] = &["pytest.ini", ".pytest.ini"];
        RunnerFiles {
            programs: &["pytest", "py.test"],
            settings,
            ..RunnerFiles::default()
        }
    }

    fn signs(&self) -> &'static [(&'static str, &'static str)] {
        &[
            (
                "No module named pytest",
                "run `python3 -m pip install pytest` with the Python that the gate starts",
            ),
            (
                "file or directory not found: ",
                "name the tests' directory: `crucible run start --test \"pytest DIR\"`",
            ),
            (
                "requires pytest-",
                "run `python3 -m pip install --upgrade pytest`",
            ),
        ]
    }

    fn obstacle(&self, output: &CommandOutput<'_>) -> Option<NotRunReason> {
        plugin(output).or_else(|| {
            let ran = output.lines().filter_map(summary).any(ran_tests);
            let errors: Vec<_> = python::import_errors(output.lines()).collect();
            (!ran && !errors.is_empty())
                .then(|| python::not_importable(&errors))
                .flatten()
        })
    }
}

/// Returns the file at the top that holds the tests, if pytest would collect none by itself.
fn lone_file(view: &TreeView) -> Option<&'static str> {
    let is_set = |name: &&str| {
        view.text(name)
            .is_some_and(|text| text.contains("testpaths") || text.contains("python_files"))
    };
    let settings = MANIFESTS.iter().chain(&["pytest.ini", ".pytest.ini"]);
    let is_collected = view.names.iter().any(|name| is_python_test(name));
    let has_tests = |text: &str| text.contains("def test") || text.contains("unittest");
    view.first(&LONE_TESTS)
        .filter(|_| !is_collected && !settings.clone().any(is_set))
        .filter(|name| view.text(name).is_some_and(has_tests))
}

/// Returns pytest's id of a test: `tests/test_a.py::TestB::test_c[1]`. A module that cannot be collected has
/// the name of its file.
fn node_id(case: &Case) -> String {
    if case.file.is_empty() {
        return junit::class_and_name(case);
    }
    if case.class.is_empty() {
        return case.file.clone();
    }
    let module = case
        .file
        .strip_suffix(".py")
        .unwrap_or(&case.file)
        .replace('/', ".");
    let classes = case.class.strip_prefix(&module).unwrap_or_default();
    let classes = classes.split('.').filter(|part| !part.is_empty());
    let parts: Vec<&str> = [case.file.as_str()]
        .into_iter()
        .chain(classes)
        .chain([case.name.as_str()])
        .collect();
    parts.join("::")
}

/// The tallies of the last line: `1 failed, 2 passed` of `1 failed, 2 passed in 0.12s`.
fn summary(line: &str) -> Option<&str> {
    let (tallies, time) = line.trim_matches(['=', ' ']).rsplit_once(" in ")?;
    time.split(' ')
        .next()?
        .strip_suffix('s')?
        .parse::<f64>()
        .ok()?;
    Some(tallies)
}

fn ran_tests(tallies: &str) -> bool {
    ["passed", "failed", "xfailed", "xpassed"]
        .iter()
        .any(|word| {
            tallies
                .split(", ")
                .any(|part| part.split(' ').nth(1) == Some(*word))
        })
}

/// A plugin that the settings want and that is not installed.
fn plugin(output: &CommandOutput<'_>) -> Option<NotRunReason> {
    const OPTIONS: [(&str, &str); 9] = [
        ("--cov", "pytest-cov"),
        ("--no-cov", "pytest-cov"),
        ("--timeout", "pytest-timeout"),
        ("--asyncio", "pytest-asyncio"),
        ("--benchmark", "pytest-benchmark"),
        ("--reruns", "pytest-rerunfailures"),
        ("--dist", "pytest-xdist"),
        ("--numprocesses", "pytest-xdist"),
        ("-n", "pytest-xdist"),
    ];
    let install = |names: &str| {
        format!("run `python3 -m pip install {names}` with the Python that the gate starts")
    };
    if let Some(line) = output.line_with("Missing required plugins: ") {
        let names = line.split_once("plugins: ")?.1.replace(", ", " ");
        return Some(NotRunReason::quoting(line, install(&names)));
    }
    if let Some(line) = output.line_with("error: unrecognized arguments: ") {
        let words = line.split_once("arguments: ")?.1;
        let known = |word: &str| {
            OPTIONS
                .iter()
                .find(|(option, _)| word.starts_with(option))
                .map(|(_, name)| *name)
        };
        let remedy = match words.split_whitespace().find_map(known) {
            Some(name) => install(name),
            None => {
                "install the plugins of the project: run `python3 -m pip install -e .`".to_owned()
            }
        };
        return Some(NotRunReason::quoting(line, remedy));
    }
    let line = output.line_with("Error importing plugin \"")?;
    Some(NotRunReason::quoting(
        line,
        install(line.split('"').nth(1)?),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::tree_view::view;

    #[test]
    fn file_that_pytest_would_not_collect_is_named() {
        let words = |files: &[(&str, &str)]| Pytest.detect(&view(files)).unwrap().0.join(" ");
        let (lone, tox) = (("test.py", "def test_a(): pass"), ("tox.ini", "pytest"));
        assert!(words(&[lone, tox]).ends_with(" test.py"));
        for other in [
            ("tests/test_a.py", ""),
            ("setup.cfg", "python_files = test.py"),
        ] {
            assert!(
                !words(&[lone, tox, other]).ends_with(" test.py"),
                "{other:?}"
            );
        }
    }

    #[test]
    fn settings_or_test_files_give_pytest_away() {
        let found = |name, text| Pytest.detect(&view(&[(name, text)])).map(|(_, why)| why);
        assert!(found("pytest.ini", "").is_some());
        assert!(found("pyproject.toml", "[tool.pytest.ini_options]").is_some());
        assert!(found("setup.cfg", "[tool:pytest]").is_some());
        assert_eq!(
            found("tests/test_a.py", "").unwrap(),
            "pytest would collect tests/test_a.py"
        );
        assert!(found("a_test.py", "").is_some());
        assert!(found("pkg/tests/test_a.py", "import pytest").is_some());
        for (name, text) in [
            ("pyproject.toml", "[project]"),
            ("tests/data.py", ""),
            ("test_a.rs", ""),
            ("latest_.py", ""),
        ] {
            assert_eq!(found(name, text), None, "{name}");
        }
    }
}
