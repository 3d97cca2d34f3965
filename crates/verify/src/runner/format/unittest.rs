//! The output of Python's `unittest` with `-v`.

use crate::results::{TestResults, TestStatus};
use crate::runner::CommandOutput;

/// Parses the output of `-v` on standard error: `test_a (tests.test_x.T.test_a) ... ok`.
pub(in crate::runner) fn read(output: &CommandOutput<'_>) -> TestResults {
    let mut results = output.new_results();
    let mut pending: Option<String> = None;
    for line in output.stderr.lines() {
        if line.starts_with("Ran ") || line.len() >= 70 && line.bytes().all(|byte| byte == b'=') {
            break;
        }
        if let Some((name, rest)) = heading(line) {
            match status(
                rest.rsplit_once(" ... ")
                    .map_or("", |(_, status_text)| status_text),
            ) {
                Some(status) => super::add(&mut results, &name, status),
                // Its docstring or output is between the name and the result.
                None => pending = Some(name),
            }
        } else if let Some(name) = &pending
            && let Some(status) = status(
                line.rsplit_once(" ... ")
                    .map_or(line, |(_, status_text)| status_text),
            )
        {
            super::add(&mut results, name, status);
            pending = None;
        }
    }
    results
}

/// Returns the full name of a test and the rest. A part of a test (`subTest`) counts as the test.
fn heading(line: &str) -> Option<(String, &str)> {
    let (method, rest) = line.trim_start().split_once(" (")?;
    let (class, behind) = rest.split_once(')')?;
    let is_name = |text: &str| {
        !text.is_empty()
            && text
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '<' | '>'))
    };
    if !is_name(method) || !is_name(class) || method.contains('.') {
        return None;
    }
    let class = class
        .strip_prefix("unittest.loader._FailedTest")
        .map_or(class, |rest| rest.trim_start_matches('.'));
    let is_full = class == method
        || class
            .strip_suffix(method)
            .is_some_and(|before| before.ends_with('.'));
    let name = match (is_full, class) {
        (true, _) => class.to_owned(),
        (false, "") => method.to_owned(),
        (false, class) => format!("{class}.{method}"),
    };
    Some((name, behind))
}

fn status(status_text: &str) -> Option<TestStatus> {
    match status_text.trim() {
        "ok" => Some(TestStatus::Passed),
        "FAIL" | "ERROR" | "unexpected success" => Some(TestStatus::Failed),
        "expected failure" => Some(TestStatus::Skipped),
        text if text.starts_with("skipped") => Some(TestStatus::Skipped),
        _ => None,
    }
}
