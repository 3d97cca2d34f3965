//! jest, called by itself; most projects call it from their test script.

use super::format::jest_json;
use super::scripts::{is_bare_dependency, missing_package};
use super::{
    Call, CommandOutput, NotRunReason, ReportContext, Reporting, Runner, RunnerFiles, Tool,
    TreeView, command,
};
use crate::results::TestResults;
use crate::tally::TestRunner;

pub(super) struct Jest;

impl Runner for Jest {
    fn id(&self) -> &'static str {
        "jest"
    }

    fn tool(&self) -> Tool {
        Tool {
            program: "jest",
            install: "install the packages first: run `npm ci`",
        }
    }

    fn reads(&self) -> &'static [&'static str] {
        &["package.json"]
    }

    fn detect(&self, view: &TreeView) -> Option<(Vec<String>, String)> {
        is_bare_dependency(view, "jest").then(|| {
            (
                command(&["npx", "--no-install", "jest"]),
                "package.json depends on jest".to_owned(),
            )
        })
    }

    fn runs(&self, call: &Call<'_>) -> bool {
        call.program == "jest"
    }

    fn reporting(&self, call: &Call<'_>, at: &ReportContext<'_>) -> Option<Reporting> {
        // It writes a single report file.
        if call
            .args
            .iter()
            .any(|word| word.starts_with("--outputFile"))
        {
            return None;
        }
        Some(Reporting::files(
            call.appended(&["--json", &format!("--outputFile={}", at.file)]),
        ))
    }

    fn results(&self, output: &CommandOutput<'_>) -> Option<TestResults> {
        jest_json::read(output)
    }

    fn suite(&self) -> &'static str {
        "javascript"
    }

    fn counts(&self) -> Option<TestRunner> {
        Some(TestRunner::Jest)
    }

    fn nothing_ran(&self) -> &'static [&'static str] {
        &["No tests found, exiting with code"]
    }

    fn influence(&self) -> RunnerFiles {
        let settings: &[&str] = &[
            "jest.config.js",
            "jest.config.ts",
            "jest.config.mjs",
            "jest.config.cjs",
            "jest.config.json",
        ];
        RunnerFiles {
            programs: &["jest"],
            settings,
            ..RunnerFiles::default()
        }
    }

    fn obstacle(&self, output: &CommandOutput<'_>) -> Option<NotRunReason> {
        missing_package(output)
    }
}
