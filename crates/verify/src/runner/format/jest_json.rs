//! The JSON report of jest, which vitest writes as well: a list of files, each with its tests.

use serde::Deserialize;

use crate::results::{TestResults, TestStatus};
use crate::runner::CommandOutput;

#[derive(Deserialize)]
struct Report {
    #[serde(rename = "testResults", default)]
    files: Vec<File>,
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    name: String,
    #[serde(default)]
    status: String,
    #[serde(rename = "assertionResults", default)]
    tests: Vec<Test>,
}

#[derive(Deserialize)]
struct Test {
    #[serde(rename = "ancestorTitles", default)]
    groups: Vec<String>,
    #[serde(default)]
    title: String,
    #[serde(default)]
    status: String,
}

/// Reads the report of a gate.
pub(in crate::runner) fn read(output: &CommandOutput<'_>) -> Option<TestResults> {
    let text = output.report.as_deref()?;
    // A script may run several suites.
    let reports: Result<Vec<Report>, _> = serde_json::Deserializer::from_str(text)
        .into_iter()
        .collect();
    let mut results = super::Numbered::new(output.new_results());
    for file in reports.ok()?.into_iter().flat_map(|report| report.files) {
        // A file that cannot be loaded has failed and has no tests.
        if file.status == "failed" && file.tests.iter().all(|test| test.status != "failed") {
            results.add(&file.name, TestStatus::Failed);
        }
        for test in file.tests {
            let status = match test.status.as_str() {
                "passed" => TestStatus::Passed,
                "failed" => TestStatus::Failed,
                _ => TestStatus::Skipped,
            };
            let mut parts = vec![file.name.clone()];
            parts.extend(test.groups);
            parts.push(test.title);
            parts.retain(|part| !part.is_empty());
            results.add(&parts.join(" > "), status);
        }
    }
    Some(results.into_results())
}
