//! The lines of `cargo nextest run`: a status, a duration, the target and the test.

use std::collections::BTreeMap;

use crate::results::{TestResults, TestStatus};
use crate::runner::CommandOutput;

/// Reads the lines of results: `        PASS [   0.006s] (2/6) demo-a tests::zero`. Of several tries the last counts.
pub(in crate::runner) fn read(output: &CommandOutput<'_>) -> TestResults {
    let mut last: BTreeMap<String, TestStatus> = BTreeMap::new();
    for line in output.stderr.lines().chain(output.stdout.lines()) {
        if let Some((name, status)) = result(line) {
            last.insert(name, status);
        }
    }
    let mut results = output.new_results();
    for (name, status) in last {
        super::add(&mut results, &name, status);
    }
    results
}

fn result(line: &str) -> Option<(String, TestStatus)> {
    let (word, rest) = line.split_once(" [")?;
    // Status words end in the same column; output of tests is indented further.
    if word.len() != 12 {
        return None;
    }
    let word = word.trim_start();
    let word = match word
        .strip_prefix("TRY ")
        .and_then(|rest| rest.split_once(' '))
    {
        Some((_, word)) => word,
        None => word.split(' ').next().unwrap_or_default(),
    };
    let status = match word {
        "PASS" | "LEAK" | "FLAKY" => TestStatus::Passed,
        "SKIP" => TestStatus::Skipped,
        "FAIL" | "TIMEOUT" | "ABORT" | "XFAIL" | "LKFAIL" | "TMT" => TestStatus::Failed,
        word if word.starts_with("SIG") => TestStatus::Failed,
        _ => return None,
    };
    let name = rest.split_once("] ")?.1.trim();
    let name = match name
        .strip_prefix('(')
        .and_then(|rest| rest.split_once(") "))
    {
        Some((_, name)) => name.trim(),
        None => name,
    };
    let (target, test) = name.split_once(' ')?;
    Some((format!("{target} {test}"), status))
}
