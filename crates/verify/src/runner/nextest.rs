//! `cargo nextest run`. Never detected: `cargo test` runs the same tests wherever cargo is installed, and doc
//! tests too.

use super::format::nextest;
use super::{
    Call, CommandOutput, NotRunReason, ReportContext, Reporting, Runner, RunnerFiles, Tool,
    TreeView, cargo,
};
use crate::results::TestResults;
use crate::tally::TestRunner;

pub(super) struct Nextest;

impl Runner for Nextest {
    fn id(&self) -> &'static str {
        "cargo-nextest"
    }

    fn decides_outside(&self) -> bool {
        true
    }

    fn tool(&self) -> Tool {
        Tool {
            program: "cargo-nextest",
            install: "run `cargo install cargo-nextest --locked`",
        }
    }

    fn detect(&self, _: &TreeView) -> Option<(Vec<String>, String)> {
        None
    }

    fn runs(&self, call: &Call<'_>) -> bool {
        let is_run = || {
            call.args
                .iter()
                .any(|word| matches!(word.as_str(), "run" | "r"))
        };
        call.program == "cargo" && call.subcommand() == Some("nextest") && is_run()
    }

    fn env(&self) -> &'static [(&'static str, &'static str)] {
        &[("CARGO_NET_OFFLINE", "true")]
    }

    fn reporting(&self, call: &Call<'_>, _: &ReportContext<'_>) -> Option<Reporting> {
        let given = |option: &str| {
            call.args
                .iter()
                .any(|word| word.split('=').next() == Some(option))
        };
        let mut more = Vec::new();
        if !given("--status-level") {
            more.push("--status-level=all");
        }
        if !["--no-fail-fast", "--fail-fast", "--max-fail"]
            .into_iter()
            .any(given)
        {
            more.push("--no-fail-fast");
        }
        Some(Reporting::lines(call.appended(&more)))
    }

    fn results(&self, output: &CommandOutput<'_>) -> Option<TestResults> {
        Some(nextest::read(output))
    }

    fn suite(&self) -> &'static str {
        "rust"
    }

    fn counts(&self) -> Option<TestRunner> {
        Some(TestRunner::Nextest)
    }

    fn nothing_ran(&self) -> &'static [&'static str] {
        &["Starting 0 tests"]
    }

    fn influence(&self) -> RunnerFiles {
        RunnerFiles {
            programs: &["nextest"],
            settings: &[".config/nextest.toml"],
            ..RunnerFiles::default()
        }
    }

    fn signs(&self) -> &'static [(&'static str, &'static str)] {
        cargo::SIGNS
    }

    fn obstacle(&self, output: &CommandOutput<'_>) -> Option<NotRunReason> {
        cargo::Cargo.obstacle(output)
    }
}
