//! JUnit XML: one `testcase` per test, with a `failure`, `error` or `skipped` element unless it passed.

use super::xml::{self, Tag};
use crate::results::{TestResults, TestStatus};
use crate::runner::CommandOutput;
use crate::tally::TallyBasis;

/// A test as the report names it.
#[derive(Debug, Default)]
pub(in crate::runner) struct Case {
    /// Its file, if the tool names it.
    pub(in crate::runner) file: String,
    /// Its class, module or suite.
    pub(in crate::runner) class: String,
    /// Its own name.
    pub(in crate::runner) name: String,
}

/// Reads the report of a gate; `name` puts a test's name together.
pub(in crate::runner) fn read(
    output: &CommandOutput<'_>,
    name: impl Fn(&Case) -> String,
) -> Option<TestResults> {
    let mut results = output.new_results();
    let mut open: Option<(Case, TestStatus)> = None;
    let is_complete = xml::read(output.report.as_deref()?, |tag| match tag {
        Tag::Open(element) if element.name == "testcase" => {
            let attribute = |name| element.attribute(name).unwrap_or_default();
            let case = Case {
                file: attribute("file"),
                class: attribute("classname"),
                name: attribute("name"),
            };
            let status = match attribute("status").as_str() {
                "disabled" | "notrun" | "skipped" => TestStatus::Skipped,
                _ => TestStatus::Passed,
            };
            open = Some((case, status));
        }
        Tag::Open(element) => {
            if let Some((_, status)) = &mut open {
                match element.name {
                    "failure" | "error" => *status = TestStatus::Failed,
                    "skipped" => *status = (*status).max(TestStatus::Skipped),
                    _ => {}
                }
            }
        }
        Tag::Close("testcase") => {
            if let Some((case, status)) = open.take() {
                super::add(&mut results, &name(&case), status);
            }
        }
        Tag::Close(_) => {}
    });
    if !is_complete {
        results.basis = TallyBasis::Cut;
    }
    Some(results)
}

/// The class and the name.
pub(in crate::runner) fn class_and_name(case: &Case) -> String {
    match case.class.as_str() {
        "" => case.name.clone(),
        class => format!("{class}::{}", case.name),
    }
}
