//! TRX, the report of `dotnet test`: a `UnitTestResult` for each test, with its name and its outcome.

use super::xml::{self, Tag};
use crate::results::{TestResults, TestStatus};
use crate::runner::CommandOutput;
use crate::tally::TallyBasis;

/// Parses a gate's TRX report.
pub(in crate::runner) fn read(output: &CommandOutput<'_>) -> Option<TestResults> {
    let mut results = output.new_results();
    let is_complete = xml::read(output.report.as_deref()?, |tag| {
        if let Tag::Open(element) = tag
            && element.name == "UnitTestResult"
            && let Some(name) = element.attribute("testName")
        {
            let status = match element.attribute("outcome").as_deref() {
                Some("Passed" | "PassedButRunAborted" | "Warning") => TestStatus::Passed,
                Some("NotExecuted" | "Inconclusive" | "Pending" | "NotRunnable") => {
                    TestStatus::Skipped
                }
                _ => TestStatus::Failed,
            };
            super::add(&mut results, &name, status);
        }
    });
    if !is_complete {
        results.basis = TallyBasis::Cut;
    }
    Some(results)
}
