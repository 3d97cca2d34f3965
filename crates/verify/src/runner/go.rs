//! `go test`: `go.mod` at the top.
//!
//! Its report is its standard output, one JSON line per event. People see the output without `-json`:
//! failures, and one line per package.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::{
    Call, CommandOutput, ReportContext, ReportPlace, Reporting, Runner, Tool, TreeView, command,
};
use crate::results::{TestResults, TestStatus};
use crate::tally::TestRunner;

const DOWNLOAD: &str = "gates have no network: run `go mod download` once";

pub(super) struct Go;

impl Runner for Go {
    fn id(&self) -> &'static str {
        "go-test"
    }

    fn tool(&self) -> Tool {
        Tool {
            program: "go",
            install: "install Go from https://go.dev/dl, or run `apt install golang-go`",
        }
    }

    fn detect(&self, view: &TreeView) -> Option<(Vec<String>, String)> {
        let is_module = view.has("go.mod");
        is_module.then(|| {
            (
                command(&["go", "test", "./..."]),
                "there is a go.mod at the top".to_owned(),
            )
        })
    }

    fn runs(&self, call: &Call<'_>) -> bool {
        call.program == "go" && call.subcommand() == Some("test")
    }

    fn env(&self) -> &'static [(&'static str, &'static str)] {
        &[("GOPROXY", "off")]
    }

    fn reporting(&self, call: &Call<'_>, _: &ReportContext<'_>) -> Option<Reporting> {
        let mut args = call.args.to_vec();
        if !call.has("-json") {
            let at = args.iter().position(|word| word == "test")? + 1;
            args.insert(at, "-json".to_owned());
        }
        Some(Reporting {
            place: ReportPlace::Stdout,
            ..Reporting::lines(call.with_args(args))
        })
    }

    fn readable_output(&self, stdout: &str) -> Option<String> {
        Some(printed_text(stdout))
    }

    fn results(&self, output: &CommandOutput<'_>) -> Option<TestResults> {
        let mut results = output.new_results();
        let mut with_failures = BTreeSet::new();
        for event in output.report.as_deref()?.lines().filter_map(Event::read) {
            let status = match event.action.as_str() {
                "pass" => TestStatus::Passed,
                "fail" => TestStatus::Failed,
                "skip" => TestStatus::Skipped,
                _ => continue,
            };
            if let Some(test) = &event.test {
                super::format::add(&mut results, &format!("{}.{test}", event.package), status);
                if status == TestStatus::Failed {
                    with_failures.insert(event.package);
                }
            } else if status == TestStatus::Failed && !with_failures.contains(&event.package) {
                // It did not compile, or ended before its tests did.
                super::format::add(&mut results, &event.package, status);
            }
        }
        Some(results)
    }

    fn counts(&self) -> Option<TestRunner> {
        Some(TestRunner::GoPackages)
    }

    fn suite(&self) -> &'static str {
        "go"
    }

    fn signs(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("module lookup disabled by GOPROXY=off", DOWNLOAD),
            ("dial tcp: lookup ", DOWNLOAD),
            ("no required module provides package", DOWNLOAD),
            ("missing go.sum entry", DOWNLOAD),
            (
                "toolchain not available",
                "install the version of Go that go.mod names: run `go mod download` once",
            ),
            (
                "GOTOOLCHAIN=local)",
                "install the version of Go that go.mod names from https://go.dev/dl",
            ),
            (
                "go: go.mod file not found",
                "run the gate in the directory of go.mod, or run `go mod init`",
            ),
            (
                "C compiler \"gcc\" not found",
                "install a C compiler, such as `apt install gcc`",
            ),
        ]
    }
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "Action", default)]
    action: String,
    #[serde(rename = "Package", default)]
    package: String,
    #[serde(rename = "Test")]
    test: Option<String>,
    #[serde(rename = "Output", default)]
    output: String,
}

impl Event {
    fn read(line: &str) -> Option<Self> {
        serde_json::from_str(line)
            .ok()
            .filter(|event: &Self| !event.action.is_empty())
    }
}

/// Returns the output of `go test` without `-json`: output of tests only if they failed.
fn printed_text(stdout: &str) -> String {
    let mut text = String::new();
    let mut waiting: BTreeMap<(String, String), String> = BTreeMap::new();
    for line in stdout.lines() {
        let Some(event) = Event::read(line) else {
            text.push_str(line);
            text.push('\n');
            continue;
        };
        let key = event.test.map(|test| (event.package, test));
        match (event.action.as_str(), key) {
            ("output", Some(key)) if !event.output.starts_with("=== ") => {
                waiting.entry(key).or_default().push_str(&event.output);
            }
            ("output" | "build-output", None) => text.push_str(&event.output),
            ("fail", Some(key)) => text.push_str(&waiting.remove(&key).unwrap_or_default()),
            ("pass" | "skip", Some(key)) => {
                waiting.remove(&key);
            }
            _ => {}
        }
    }
    // These never ended: the last thing that is known of a process that died.
    waiting
        .into_values()
        .for_each(|output| text.push_str(&output));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::tree_view::view;

    #[test]
    fn a_module_is_tested_with_all_its_packages() {
        assert_eq!(
            Go.detect(&view(&[("go.mod", "module x")])).unwrap().0,
            ["go", "test", "./..."]
        );
        assert!(Go.detect(&view(&[("go.sum", "")])).is_none());
    }
}
