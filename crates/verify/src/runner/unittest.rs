//! Python's `unittest`: test files that use it without any mention of pytest, and Django's `manage.py test`.

use super::call::is_python;
use super::format::unittest;
use super::tree_view::{LONE_TESTS, is_python_test};
use super::{
    Call, CommandOutput, NotRunReason, ReportContext, Reporting, Runner, Tool, TreeView, command,
    python,
};
use crate::results::{TestResults, TestStatus};
use crate::tally::TestRunner;

pub(super) struct Unittest;

impl Runner for Unittest {
    fn id(&self) -> &'static str {
        "unittest"
    }

    fn tool(&self) -> Tool {
        Tool {
            program: "python3",
            install: "install Python 3, such as `apt install python3`",
        }
    }

    fn reads(&self) -> &'static [&'static str] {
        &["pyproject.toml", "setup.cfg", "tox.ini", "manage.py"]
    }

    /// The tree does not show whether pytest is installed, so any mention of pytest selects pytest.
    fn detect(&self, view: &TreeView) -> Option<(Vec<String>, String)> {
        let tests: Vec<&str> = view
            .names
            .iter()
            .map(String::as_str)
            .filter(|name| is_python_test(name))
            .collect();
        let of_pytest = [
            "pytest.ini",
            ".pytest.ini",
            "conftest.py",
            "tests/conftest.py",
            "test/conftest.py",
        ];
        let lone = view.first(&LONE_TESTS).filter(|_| tests.is_empty());
        let speaks = |name: &str| view.text(name).is_some_and(|text| text.contains("pytest"));
        // Settings may name a runner that is not installed; tests that use it need it.
        let is_set = !view.lacks_pytest() && self.reads().iter().any(|name| speaks(name));
        if view.first(&of_pytest).is_some()
            || is_set
            || tests.iter().chain(&lone).any(|name| speaks(name))
        {
            return None;
        }
        if view
            .text("manage.py")
            .is_some_and(|text| text.contains("django"))
        {
            return Some((
                command(&["python3", "manage.py", "test"]),
                "there is a manage.py of Django".to_owned(),
            ));
        }
        let uses = |name: &&str| {
            view.text(name)
                .is_some_and(|text| text.contains("unittest"))
        };
        if let Some(file) = lone.filter(|file| uses(file)) {
            let words = command(&["python3", "-m", "unittest", file]);
            return Some((words, format!("{file} uses unittest")));
        }
        let first = tests.iter().copied().find(uses)?;
        let mut words = command(&["python3", "-m", "unittest", "discover"]);
        let dir = start_dir(view, first);
        if !dir.is_empty() {
            words.extend(command(&["-s", dir]));
            // Tests of a package are imported by its name, from the top.
            if view.has(&format!("{dir}/__init__.py")) {
                words.extend(command(&["-t", "."]));
            }
        }
        if !file_name(first).starts_with("test") {
            words.extend(command(&["-p", "*_test.py"]));
        }
        Some((words, format!("{first} uses unittest")))
    }

    fn runs(&self, call: &Call<'_>) -> bool {
        let is_django = is_python(call.program)
            && matches!(call.args, [script, test, ..] if file_name(script) == "manage.py" && test == "test");
        call.program == "unittest" || is_django
    }

    fn env(&self) -> &'static [(&'static str, &'static str)] {
        &[("PYTHONDONTWRITEBYTECODE", "1")]
    }

    fn reporting(&self, call: &Call<'_>, _: &ReportContext<'_>) -> Option<Reporting> {
        if call.program != "unittest" {
            return Some(Reporting::lines(call.appended(&["-v", "2"])));
        }
        let is_loud = call.has("-v") || call.has("--verbose");
        let quiet = |word: &String| matches!(word.as_str(), "-q" | "--quiet" | "-f" | "--failfast");
        let mut args: Vec<String> = call
            .args
            .iter()
            .filter(|word| !quiet(word))
            .cloned()
            .collect();
        if !is_loud {
            // `discover` is a subcommand and must come first.
            let at = usize::from(args.first().is_some_and(|word| word == "discover"));
            args.insert(at, "-v".to_owned());
        }
        Some(Reporting::lines(call.with_args(args)))
    }

    fn results(&self, output: &CommandOutput<'_>) -> Option<TestResults> {
        Some(unittest::read(output))
    }

    fn suite(&self) -> &'static str {
        "python"
    }

    fn counts(&self) -> Option<TestRunner> {
        Some(TestRunner::Unittest)
    }

    fn nothing_ran(&self) -> &'static [&'static str] {
        &["Ran 0 tests in ", "NO TESTS RAN"]
    }

    fn signs(&self) -> &'static [(&'static str, &'static str)] {
        &[
            (
                "Couldn't import Django",
                "run `python3 -m pip install -r requirements.txt` with the Python that the gate starts",
            ),
            (
                "Start directory is not importable",
                "name the tests: `crucible run start --test \"COMMAND\"`",
            ),
        ]
    }

    fn obstacle(&self, output: &CommandOutput<'_>) -> Option<NotRunReason> {
        let results = unittest::read(output);
        let errors: Vec<_> = python::import_errors(output.lines()).collect();
        // A module that cannot be imported counts as one failed test.
        let is_all = !errors.is_empty() && results.tests.len() <= errors.len();
        let passed = results.with_status(TestStatus::Passed).next().is_some();
        let total = output
            .tally()
            .runners
            .get(&TestRunner::Unittest)
            .map_or(0, |counts| counts.ran());
        let ran_more = total > errors.len() as u64;
        (is_all && !passed && !ran_more)
            .then(|| python::not_importable(&errors))
            .flatten()
    }
}

/// The directory from which all tests are found: that of the first file, without directories below a test directory.
fn start_dir<'n>(view: &TreeView, first: &'n str) -> &'n str {
    let dir = first.rsplit_once('/').map_or("", |(dir, _)| dir);
    match dir.split_once('/') {
        Some((top, _))
            if ["tests", "test"].contains(&top) && view.has(&format!("{dir}/__init__.py")) =>
        {
            top
        }
        _ => dir,
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns the command that runs every test of unittest; in the directory in which tox would run it.
pub(super) fn discover(view: &TreeView) -> Vec<String> {
    let mut words = command(&["python3", "-m", "unittest", "discover"]);
    let settings = view.text("tox.ini").unwrap_or_default();
    let directory = settings.lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
        let value = value.trim().trim_start_matches("{toxinidir}/");
        let is_inside = value.chars().all(is_plain) && !value.starts_with(['/', '-']);
        (name.trim() == "changedir" && is_inside && !value.contains("..")).then_some(value)
    });
    if let Some(directory) = directory.filter(|directory| !directory.is_empty()) {
        words.extend(command(&["-s", directory]));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::tree_view::view;

    fn found(files: &[(&str, &str)]) -> Option<String> {
        Unittest
            .detect(&view(files))
            .map(|(words, _)| words.join(" "))
    }

    #[test]
    fn unittest_is_detected_without_pytest() {
        let uses = "import unittest\n";
        let discover = "python3 -m unittest discover";
        assert_eq!(
            found(&[("tests/test_a.py", uses)]).unwrap(),
            format!("{discover} -s tests")
        );
        assert_eq!(found(&[("test_a.py", uses)]).unwrap(), discover);
        assert_eq!(
            found(&[
                ("tests/unit/test_a.py", uses),
                ("tests/unit/__init__.py", ""),
                ("tests/__init__.py", "")
            ])
            .unwrap(),
            format!("{discover} -s tests -t .")
        );
        assert_eq!(
            found(&[("tests/a_test.py", uses)]).unwrap(),
            format!("{discover} -s tests -p *_test.py")
        );
        assert_eq!(
            found(&[
                ("manage.py", "import django"),
                ("app/tests/test_a.py", uses)
            ])
            .unwrap(),
            "python3 manage.py test"
        );
        for other in [
            ("tox.ini", "pytest"),
            ("tests/conftest.py", ""),
            ("tests/test_b.py", "import pytest"),
        ] {
            assert_eq!(
                found(&[("tests/test_a.py", uses), other]),
                None,
                "{other:?}"
            );
        }
        assert_eq!(found(&[("tests/test_a.py", "def test_a(): pass")]), None);
        assert_eq!(
            found(&[("test.py", uses)]).unwrap(),
            "python3 -m unittest test.py"
        );
    }

    #[test]
    fn environment_without_pytest_uses_unittest() {
        let python = (".venv/bin/python", "");
        let gates = |files: &[(&str, &str)]| view(files).gates().remove(0).command.join(" ");
        let test = ("tests/test_a.py", "import unittest\n");
        let settings = ("pyproject.toml", "[tool.pytest.ini_options]");
        let discover = "python3 -m unittest discover -s tests";
        assert_eq!(gates(&[test, settings, python]), discover);
        // Where pytest is there, where nobody knows, and where the tests need it, it runs.
        for files in [
            &[test, settings][..],
            &[test, settings, python, (".venv/bin/pytest", "")],
            &[test, settings, python, ("tests/conftest.py", "")],
            &[test, settings, python, ("tests/test_b.py", "import pytest")],
        ] {
            assert!(gates(files).contains("-m pytest"), "{files:?}");
        }
    }
}
