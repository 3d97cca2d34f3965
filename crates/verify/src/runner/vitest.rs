//! vitest, called by itself; most projects call it from their test script.

use super::format::jest_json;
use super::scripts::{is_bare_dependency, missing_package};
use super::{
    Call, CommandOutput, NotRunReason, ReportContext, Reporting, Runner, RunnerFiles, Tool,
    TreeView, command,
};
use crate::results::TestResults;
use crate::tally::TestRunner;

pub(super) struct Vitest;

impl Runner for Vitest {
    fn id(&self) -> &'static str {
        "vitest"
    }

    fn tool(&self) -> Tool {
        Tool {
            program: "vitest",
            install: "install the packages first: run `npm ci`",
        }
    }

    fn reads(&self) -> &'static [&'static str] {
        &["package.json"]
    }

    fn detect(&self, view: &TreeView) -> Option<(Vec<String>, String)> {
        let words = ["npx", "--no-install", "vitest", "run"];
        is_bare_dependency(view, "vitest")
            .then(|| (command(&words), "package.json depends on vitest".to_owned()))
    }

    fn runs(&self, call: &Call<'_>) -> bool {
        call.program == "vitest"
    }

    fn reporting(&self, call: &Call<'_>, at: &ReportContext<'_>) -> Option<Reporting> {
        if call
            .args
            .iter()
            .any(|word| word.starts_with("--outputFile"))
        {
            return None;
        }
        let file = format!("--outputFile.json={}", at.file);
        Some(Reporting::files(call.appended(&[
            "--reporter=default",
            "--reporter=json",
            &file,
        ])))
    }

    fn results(&self, output: &CommandOutput<'_>) -> Option<TestResults> {
        jest_json::read(output)
    }

    fn suite(&self) -> &'static str {
        "javascript"
    }

    fn counts(&self) -> Option<TestRunner> {
        Some(TestRunner::Vitest)
    }

    fn nothing_ran(&self) -> &'static [&'static str] {
        &["No test files found, exiting with code"]
    }

    fn influence(&self) -> RunnerFiles {
        let settings: &[&str] = &[
            "vitest.config.ts",
            "vitest.config.js",
            "vitest.config.mts",
            "vitest.config.mjs",
            "vitest.workspace.ts",
            "vitest.workspace.js",
        ];
        RunnerFiles {
            programs: &["vitest"],
            settings,
            ..RunnerFiles::default()
        }
    }

    fn obstacle(&self, output: &CommandOutput<'_>) -> Option<NotRunReason> {
        missing_package(output)
    }
}
