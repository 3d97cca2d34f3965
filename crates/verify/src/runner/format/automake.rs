//! The lines of Automake's test driver: `PASS: name`, `FAIL: name`, below `Making check in DIRECTORY`, up to `# TOTAL:  2`.

use crate::results::{TestResults, TestStatus};
use crate::runner::CommandOutput;

/// The words before the names.
const MARKS: [(&str, TestStatus); 6] = [
    ("PASS: ", TestStatus::Passed),
    ("FAIL: ", TestStatus::Failed),
    ("ERROR: ", TestStatus::Failed),
    ("XPASS: ", TestStatus::Failed),
    ("XFAIL: ", TestStatus::Skipped),
    ("SKIP: ", TestStatus::Skipped),
];

/// Reads standard output; empty if as many results are not there as the driver counted.
pub(in crate::runner) fn read(output: &CommandOutput<'_>) -> TestResults {
    let mut results = output.new_results();
    let mut directory = "";
    let mut counted = 0;
    for line in output.stdout.lines() {
        if let Some(name) = line.strip_prefix("Making check in ") {
            directory = name.trim();
        } else if let Some(total) = line.strip_prefix("# TOTAL: ") {
            counted += total.trim().parse().unwrap_or(usize::MAX / 2);
        } else if let Some((name, status)) = MARKS
            .iter()
            .find_map(|(mark, status)| Some((line.strip_prefix(mark)?, *status)))
        {
            let name = if matches!(directory, "" | ".") {
                name.to_owned()
            } else {
                format!("{directory}/{name}")
            };
            super::add(&mut results, &name, status);
        }
    }
    if results.tests.len() == counted {
        results
    } else {
        output.new_results()
    }
}
