//! The output of GoogleTest, which other frameworks for C and C++ imitate: `[ RUN      ] A.b`, `[       OK ] A.b (0 ms)`,
//! `[  FAILED  ] A.b (0 ms)`.
//!
//! A test that runs again, such as one of the same name in another program, is numbered. One that was started and did not end has failed:
//! its program was aborted.

use std::collections::BTreeMap;

use crate::results::{TestResults, TestStatus};
use crate::runner::CommandOutput;

/// The marks of results.
const MARKS: [(&str, TestStatus); 3] = [
    ("[       OK ] ", TestStatus::Passed),
    ("[  FAILED  ] ", TestStatus::Failed),
    ("[  SKIPPED ] ", TestStatus::Skipped),
];

/// Reads standard output.
pub(in crate::runner) fn read(output: &CommandOutput<'_>) -> TestResults {
    let mut results = output.new_results();
    let mut runs: BTreeMap<&str, usize> = BTreeMap::new();
    let mut started: Option<(&str, String)> = None;
    for line in output.stdout.lines() {
        if let Some(name) = line.strip_prefix("[ RUN      ] ").map(str::trim_end) {
            let count = runs.entry(name).or_default();
            *count += 1;
            let own = match count {
                1 => name.to_owned(),
                more => format!("{name} #{more}"),
            };
            if let Some((_, aborted)) = started.replace((name, own)) {
                super::add(&mut results, &aborted, TestStatus::Failed);
            }
            continue;
        }
        let mark = MARKS
            .iter()
            .find_map(|(mark, status)| Some((line.strip_prefix(mark)?, *status)));
        if let Some((rest, status)) = mark
            && let Some((name, own)) = started.take()
        {
            let is_its = rest
                .strip_prefix(name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ',']));
            // The list at the end repeats the failed ones.
            if is_its {
                super::add(&mut results, &own, status);
            } else {
                started = Some((name, own));
            }
        }
    }
    if let Some((_, aborted)) = started {
        super::add(&mut results, &aborted, TestStatus::Failed);
    }
    results
}
