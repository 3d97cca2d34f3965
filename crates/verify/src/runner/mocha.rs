//! mocha, called directly; most projects call it from their test script. Its results are parsed from the
//! `spec` reporter, because a JSON report would replace the output for people.

use super::format::Numbered;
use super::scripts::{is_bare_dependency, missing_package};
use super::{
    Call, CommandOutput, NotRunReason, ReportContext, Reporting, Runner, RunnerFiles, Tool,
    TreeView, command,
};
use crate::results::{TestResults, TestStatus};
use crate::tally::TestRunner;

/// The deepest nesting of groups that is distinguished.
const MAX_DEPTH: usize = 50;

pub(super) struct Mocha;

impl Runner for Mocha {
    fn id(&self) -> &'static str {
        "mocha"
    }

    fn tool(&self) -> Tool {
        Tool {
            program: "mocha",
            install: "install the packages first: run `npm ci`",
        }
    }

    fn reads(&self) -> &'static [&'static str] {
        &["package.json"]
    }

    fn detect(&self, view: &TreeView) -> Option<(Vec<String>, String)> {
        is_bare_dependency(view, "mocha").then(|| {
            (
                command(&["npx", "--no-install", "mocha"]),
                "package.json depends on mocha".to_owned(),
            )
        })
    }

    fn runs(&self, call: &Call<'_>) -> bool {
        matches!(call.program, "mocha" | "_mocha")
    }

    fn reporting(&self, call: &Call<'_>, _: &ReportContext<'_>) -> Option<Reporting> {
        Some(Reporting::lines(call.appended(&["--reporter=spec"])))
    }

    fn results(&self, output: &CommandOutput<'_>) -> Option<TestResults> {
        Some(read(output))
    }

    fn suite(&self) -> &'static str {
        "javascript"
    }

    fn counts(&self) -> Option<TestRunner> {
        Some(TestRunner::Mocha)
    }

    fn nothing_ran(&self) -> &'static [&'static str] {
        &["Error: No test files found"]
    }

    fn influence(&self) -> RunnerFiles {
        let settings: &[&str] = &[
            ".mocharc.js",
            ".mocharc.cjs",
            ".mocharc.json",
            ".mocharc.yml",
            ".mocharc.yaml",
        ];
        RunnerFiles {
            programs: &["mocha", "_mocha"],
            settings,
            ..RunnerFiles::default()
        }
    }

    fn obstacle(&self, output: &CommandOutput<'_>) -> Option<NotRunReason> {
        missing_package(output)
    }
}

/// Groups and tests by their indentation: `✔ one (12ms)`, `1) two`, `- three`, up to `3 passing (5ms)`.
fn read(output: &CommandOutput<'_>) -> TestResults {
    let mut results = Numbered::new(output.new_results());
    let mut groups: Vec<(usize, &str)> = Vec::new();
    for line in output.stdout.lines() {
        let content = line.trim_start_matches(' ').trim_end();
        let indent = line.len() - line.trim_start_matches(' ').len();
        if content.contains(" passing (") && content.ends_with(')') {
            break;
        }
        // Output of tests is not indented.
        if content.is_empty() || indent < 2 {
            continue;
        }
        while groups.last().is_some_and(|(at, _)| *at >= indent) {
            groups.pop();
        }
        match test(content) {
            Some((name, status)) => {
                let parts: Vec<&str> = groups.iter().map(|(_, name)| *name).chain([name]).collect();
                results.add(&parts.join(" > "), status);
            }
            None if groups.len() < MAX_DEPTH => groups.push((indent, content)),
            None => {}
        }
    }
    results.into_results()
}

/// Reads the same from the output of a script that calls mocha, if its counts show that every test is there.
pub(super) fn read_counted(output: &CommandOutput<'_>) -> Option<TestResults> {
    let number = |word: &str| {
        let mut found = output.stdout.lines().filter_map(|line| {
            let (count, rest) = line.trim().split_once(' ')?;
            let is_it = rest == word
                || rest
                    .strip_prefix(word)
                    .is_some_and(|rest| rest.starts_with(" ("));
            is_it.then(|| count.parse::<usize>().ok())?
        });
        (found.next(), found.next().is_none())
    };
    let ((passing, is_one), (failing, _), (pending, _)) =
        (number("passing"), number("failing"), number("pending"));
    let results = read(output);
    let count = passing? + failing.unwrap_or_default() + pending.unwrap_or_default();
    (is_one && results.tests.len() == count).then_some(results)
}

fn test(content: &str) -> Option<(&str, TestStatus)> {
    if let Some(name) = content
        .strip_prefix("✔ ")
        .or_else(|| content.strip_prefix("✓ "))
    {
        return Some((without_time(name), TestStatus::Passed));
    }
    if let Some(name) = content.strip_prefix("- ") {
        return Some((name, TestStatus::Skipped));
    }
    let (number, name) = content.split_once(") ")?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some((name, TestStatus::Failed))
}

/// The name without ` (12ms)`, which slow tests have.
fn without_time(name: &str) -> &str {
    let time = name
        .strip_suffix("ms)")
        .and_then(|rest| rest.rsplit_once(" ("));
    match time {
        Some((name, digits))
            if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            name
        }
        _ => name,
    }
}
