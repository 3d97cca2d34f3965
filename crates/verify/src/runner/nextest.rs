//! `cargo nextest run`. Never detected: `cargo test` runs the same tests wherever cargo is installed, and doc
//! tests too.

use super::{
    Call, CommandOutput, CouldNotRun, Influence, ReportAt, Reporting, Runner, Tool, TreeView, cargo,
};
use crate::results::{TestResults, TestStatus};
use crate::tally::TestRunner;

use std::collections::BTreeMap;

pub(super) struct Nextest;

impl Runner for Nextest {
    fn id(&self) -> &'static str {
        "cargo-nextest"
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

    fn reporting(&self, call: &Call<'_>, _: &ReportAt<'_>) -> Option<Reporting> {
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

    fn results(&self, told: &CommandOutput<'_>) -> Option<TestResults> {
        Some(read(told))
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

    fn influence(&self) -> Influence {
        Influence {
            programs: &["nextest"],
            settings: &[".config/nextest.toml"],
            ..Influence::default()
        }
    }

    fn signs(&self) -> &'static [(&'static str, &'static str)] {
        cargo::SIGNS
    }

    fn obstacle(&self, told: &CommandOutput<'_>) -> Option<CouldNotRun> {
        cargo::Cargo.obstacle(told)
    }
}

/// Reads the lines of results: `        PASS [   0.006s] (2/6) demo-a tests::zero`. Of several tries the last counts.
pub(super) fn read(told: &CommandOutput<'_>) -> TestResults {
    let mut last: BTreeMap<String, TestStatus> = BTreeMap::new();
    for line in told.stderr.lines().chain(told.stdout.lines()) {
        if let Some((name, status)) = result(line) {
            last.insert(name, status);
        }
    }
    let mut results = told.new_results();
    for (name, status) in last {
        super::format::add(&mut results, &name, status);
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
