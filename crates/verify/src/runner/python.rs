//! What Python prints when a module cannot be imported, and whether that is the repository's fault.
//!
//! A module that a test wants and that the change has to bring looks like one that nobody installed. So an import counts as an obstacle only
//! where no test ran at all and the import stands in something else than a single test module: in code, in a `conftest.py`, or in every one of
//! several test modules. `cannot import name` is never one: the module is there.

use super::tree_view::is_python_test;
use super::{CommandOutput, NotRunReason};

/// A module that could not be imported.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ImportFailure<'t> {
    /// The line that says so.
    line: &'t str,
    /// The missing module; `None` if the import failed for another reason.
    missing: Option<&'t str>,
    /// The file whose import failed.
    file: &'t str,
}

/// Finds the imports that failed, by the headings under which pytest and unittest show them, in the order of the lines.
pub(super) fn import_errors<'t>(
    lines: impl Iterator<Item = &'t str>,
) -> impl Iterator<Item = ImportFailure<'t>> {
    let mut inside = false;
    let mut file = "";
    lines.filter_map(move |line| {
        let is_heading = line.starts_with("ImportError while loading conftest")
            || line.starts_with("ImportError while importing test module")
            || line.starts_with("ImportError: Failed to import test module")
            || line.contains("ERROR collecting ");
        if is_heading {
            inside = true;
            file = "";
            return None;
        }
        if !inside {
            return None;
        }
        file = frame(line).unwrap_or(file);
        let error = line.strip_prefix("E   ").unwrap_or(line).trim_end();
        let (kind, _) = error.split_once(": ")?;
        let is_error = !kind.contains(' ') && kind.ends_with("Error");
        if !is_error {
            return None;
        }
        inside = false;
        let missing = error
            .strip_prefix("ModuleNotFoundError: No module named ")
            .map(|name| name.trim_matches('\''));
        Some(ImportFailure {
            line: error,
            missing,
            file,
        })
    })
}

/// The file of a frame: `pkg/a.py:1: in <module>`, `  File "/copy/pkg/a.py", line 1, in <module>`.
fn frame(line: &str) -> Option<&str> {
    if let Some(rest) = line.trim_start().strip_prefix("File \"") {
        return rest.split_once('"').map(|(file, _)| file);
    }
    let (file, rest) = line.split_once(".py:")?;
    let is_frame = rest
        .split_once(": in ")
        .is_some_and(|(number, _)| number.parse::<u32>().is_ok());
    (is_frame && !file.contains(' ')).then(|| &line[..file.len() + 3])
}

/// Returns why nothing could be imported, if the repository is not the cause.
pub(super) fn not_importable(errors: &[ImportFailure<'_>]) -> Option<NotRunReason> {
    let missing: Option<Vec<&str>> = errors.iter().map(|error| error.missing).collect();
    let (missing, first) = (missing?, errors.first()?);
    let in_tests = errors.iter().all(|error| is_python_test(error.file));
    let is_one_test = in_tests && errors.len() == 1;
    // Each test needs something else, which the change may have to add.
    let is_several = in_tests
        && missing
            .iter()
            .any(|name| top_level(name) != top_level(missing.first().unwrap_or(name)));
    if is_one_test || is_several || in_tests && missing.iter().all(|name| name.contains('.')) {
        return None;
    }
    let name = top_level(first.missing?);
    Some(NotRunReason::quoting(
        first.line,
        format!(
            "install what the tests import ({name}) for the Python that the gate starts: run `python3 -m pip install -e .`"
        ),
    ))
}

fn top_level(module: &str) -> &str {
    module.split('.').next().unwrap_or(module)
}

/// A module that the command itself starts and that is not there: `python3: No module named mypy`.
pub(super) fn missing_module_of_command(output: &CommandOutput<'_>) -> Option<NotRunReason> {
    let line = output
        .stderr
        .lines()
        .find(|line| line.contains(": No module named "))?;
    let name = line.split_once(": No module named ")?.1.trim_matches('\'');
    let starts = output
        .run
        .command
        .windows(2)
        .any(|pair| pair[0] == "-m" && top_level(&pair[1]) == top_level(name));
    let remedy =
        format!("run `python3 -m pip install {name}` with the Python that the gate starts");
    starts.then(|| NotRunReason::quoting(line, remedy))
}
