//! The lines of ava's usual reporter: `✔ name`, `✘ [fail]: name`, `- name`, up to a line `─` and the counts.

use super::CommandOutput;
use crate::results::{TestResults, TestStatus};

/// The marks of results; of two that fit, the first counts.
const MARKS: [(&str, TestStatus); 4] = [
    ("✔ [expected fail] ", TestStatus::Skipped),
    ("✔ ", TestStatus::Passed),
    ("✘ [fail]: ", TestStatus::Failed),
    ("- [skip] ", TestStatus::Skipped),
];

/// Reads standard output; `None` if the counts at its end say otherwise.
pub(super) fn read(output: &CommandOutput<'_>) -> Option<TestResults> {
    let mut results = output.new_results();
    // A line parts the tests from the messages of those that failed, and another one these from the counts.
    let lines = output.stdout.lines().map(str::trim);
    let mut ends = lines
        .enumerate()
        .filter(|(_, line)| *line == "─")
        .map(|(at, _)| at);
    let end = ends.next()?;
    let counts = ends.next().unwrap_or(end);
    let is_count = |line: &str| {
        ["failed", "passed"].iter().any(|word| {
            line.ends_with(&format!(" test {word}")) || line.ends_with(&format!(" tests {word}"))
        })
    };
    let mut between = output.stdout.lines().take(counts).skip(end).map(str::trim);
    // A second run follows.
    if ends.next().is_some() || between.any(is_count) {
        return None;
    }
    for line in output.stdout.lines().take(end) {
        let Some(content) = line.strip_prefix("  ").map(str::trim_end) else {
            continue;
        };
        let found = MARKS
            .iter()
            .find_map(|(mark, status)| Some((content.strip_prefix(mark)?, *status)));
        if let Some((name, status)) = found {
            super::format::add(&mut results, without_time(name), status);
        }
    }
    let counted = |words: &[&str]| {
        output.stdout.lines().skip(counts).find_map(|line| {
            let (count, rest) = line.trim().split_once(' ')?;
            words.contains(&rest).then(|| count.parse::<usize>().ok())?
        })
    };
    let number = |status| results.with_status(status).count();
    let failed = counted(&["test failed", "tests failed"]).unwrap_or_default();
    let passed = counted(&["test passed", "tests passed"]);
    let is_whole = number(TestStatus::Failed) == failed
        && (failed > 0 || passed.is_some())
        && passed.is_none_or(|passed| number(TestStatus::Passed) == passed)
        && !output
            .stdout
            .lines()
            .skip(end)
            .any(|line| line.contains("uncaught exception"));
    is_whole.then_some(results)
}

/// The name without ` (1.2s)`, which slow tests have.
fn without_time(name: &str) -> &str {
    let time = name
        .strip_suffix("s)")
        .and_then(|rest| rest.rsplit_once(" ("));
    match time {
        Some((name, time))
            if time
                .bytes()
                .all(|byte| byte.is_ascii_digit() || b".m ".contains(&byte)) =>
        {
            name
        }
        _ => name,
    }
}
