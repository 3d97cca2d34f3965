//! The tests: the skill's own, and where everything is verified the project's whole suite as well.
//!
//! The skill's own test has to pass as a whole: at least one test ran, none was skipped or expected to fail, each that was found came to
//! its end, and the module that was imported is the file in the copy. Of the whole suite nothing may fail.

use std::ffi::OsString;
use std::path::Path;

use async_trait::async_trait;
use crucible_host::fs::{create_dir_all, write_atomic};
use crucible_host::random::token;
use crucible_ledger::VerificationLevel;
use crucible_model::{Code, Finding, Verdict};
use crucible_sandbox::{Keep, Stdin};
use serde_json::json;

use super::tool::{ToolCall, ToolRun};
use super::witness::{PLUGIN, TestReport};
use super::{ForgeGate, GateAnswer, GateError, GateSite, SkillGate};
use crate::policy::TEST_EMPTY;

/// What pytest is asked.
const WORDS: [&str; 7] = [
    "-q",
    "--tb=short",
    "--color=no",
    "-p",
    "no:cacheprovider",
    "-p",
    PLUGIN.0,
];

pub(super) struct Pytest;

#[async_trait]
impl ForgeGate for Pytest {
    fn id(&self) -> SkillGate {
        SkillGate::Pytest
    }

    fn runs_tests(&self) -> bool {
        true
    }

    async fn run(&self, site: &GateSite<'_>) -> Result<GateAnswer, GateError> {
        let too_large = site.too_large();
        if !too_large.passes() {
            return Ok(GateAnswer::from_verdict(too_large));
        }
        let (run, report) = tests(site, "pytest", &[site.test.path.as_str()], &[]).await?;
        let mut verdict = judge(
            &run,
            report.as_ref(),
            Part::Skill {
                file: &site.copy.join(site.paths.skill.as_str()),
            },
        );
        let mut answer = run.answer(Verdict::default());
        if let Some(report) = &report {
            answer.facts.insert("tests".to_owned(), counts(report));
        }
        if site.level == VerificationLevel::Full {
            let (run, report) = tests(site, "suite", &[], &[]).await?;
            verdict.merge(judge(&run, report.as_ref(), Part::Suite));
            answer.log.extend_from_slice(b"==> the whole suite\n");
            answer.log.extend(run.log());
            if let Some(report) = &report {
                answer.facts.insert("suite".to_owned(), counts(report));
            }
        }
        answer.verdict = verdict;
        Ok(answer)
    }
}

/// Which tests.
#[derive(Debug, Clone, Copy)]
enum Part<'a> {
    /// The skill's own; its module has to be this file.
    Skill { file: &'a Path },
    /// All there are.
    Suite,
}

/// Runs tests with these variables, and reads the report of the plugin.
pub(super) async fn tests(
    site: &GateSite<'_>,
    scratch: &str,
    files: &[&str],
    variables: &[(&str, &str)],
) -> Result<(ToolRun, Option<TestReport>), GateError> {
    let scratch = site.scratch_for(scratch)?;
    // What is imported first is ours; a test that changes the file later changes nothing.
    let plugin = scratch.join("plugin");
    create_dir_all(&plugin)?;
    let (name, text) = PLUGIN;
    write_atomic(&plugin.join(format!("{name}.py")), text.as_bytes())?;
    let word = format!("crucible-witness-{}", token()?);
    let mut path = plugin.into_os_string();
    path.push(":");
    path.push(site.copy.join("src"));
    let rootdir = format!("--rootdir={}", site.copy.display());
    let words = WORDS
        .into_iter()
        .chain([rootdir.as_str()])
        .chain(files.iter().copied());
    let mut call = ToolCall::new(&site.tools.pytest, words, scratch);
    call.env.push((OsString::from("PYTHONPATH"), path));
    let variables = variables.iter();
    call.env
        .extend(variables.map(|(name, value)| (name.into(), value.into())));
    call.stdin = Stdin::Bytes(format!("{word}\n{}", site.paths.module).into_bytes());
    let mut run = call.run(site, Keep::Tail).await?;
    let report = TestReport::find(&run.stdout().text(), &word);
    run.hide(word);
    Ok((run, report))
}

fn judge(run: &ToolRun, report: Option<&TestReport>, part: Part<'_>) -> Verdict {
    if let Some(ended) = run.abnormal_end() {
        return Verdict::new(vec![ended]);
    }
    let code = run.exit_code().unwrap_or(-1);
    match report {
        // What pytest says of its own command line or settings, or of a plugin that it cannot load.
        None if !matches!(code, 0..=2) => Verdict::new(vec![run.failed(code)]),
        None => Verdict::new(vec![unfinished(&format!(
            "pytest ended with exit code {code} before it was done: something in the tests ended it"
        ))]),
        Some(report) => judge_report(report, code, part),
    }
}

/// Judges what the witness reported.
fn judge_report(report: &TestReport, code: i32, part: Part<'_>) -> Verdict {
    let mut verdict = Verdict::default();
    for complaint in &report.complaints {
        let line = complaint
            .line
            .map(|line| format!(" line {line}"))
            .unwrap_or_default();
        verdict.push(Finding::error(
            Code::new("forge-test-failed"),
            format!("{}{line}", complaint.test),
            complaint.text.clone(),
        ));
    }
    let uncounted = (report.failed + report.errors).saturating_sub(report.complaints.len() as u64);
    if uncounted > 0 {
        let hint = "Fix the reported ones; the log names the rest.";
        verdict.push(Finding::error(
            Code::new("forge-test-failed"),
            format!("{uncounted} more tests"),
            hint,
        ));
    }
    if report.passed + report.failed + report.errors == 0 {
        verdict.push(Finding::error(
            Code::new("forge-test-none"),
            "no test ran",
            "Write functions `test_…` that call the skill; nothing passes by having nothing to check.",
        ));
    }
    if report.finished < report.collected && verdict.passes() {
        let (finished, collected) = (report.finished, report.collected);
        verdict.push(unfinished(&format!(
            "{finished} of {collected} tests came to their end"
        )));
    }
    if let Part::Skill { file } = part {
        let left_out = report.skipped + report.xfailed + report.xpassed;
        if left_out > 0 {
            let named = report.left_out.first().map_or("a test", String::as_str);
            verdict.push(Finding::error(
                Code::new("forge-test-left-out"),
                format!("{left_out}: {named}"),
                "It was skipped, or expected to fail. Let every test of a skill run and pass, or take it out.",
            ));
        }
        match &report.module {
            Some(module) if module == file => {}
            Some(module) => verdict.push(Finding::error(
                Code::new("forge-test-elsewhere"),
                module.display().to_string(),
                "The test imported another file than the one that is verified. Let `pythonpath` of pytest begin with src, and take an installed copy of the package out of the way.",
            )),
            None => verdict.push(Finding::error(
                Code::new("forge-test-elsewhere"),
                "the skill was not imported",
                "Import the skill by its module in the test, and let the tests run in pytest's own process (no -n in addopts).",
            )),
        }
    }
    if matches!(part, Part::Skill { .. }) && report.ran == 0 && verdict.passes() {
        verdict.push(Finding::error(
            TEST_EMPTY,
            "no test ran the skill",
            "Its own `execute` was called by none of them. Call it with an input and compare what it gives.",
        ));
    }
    if (code != 0 || report.exit != Some(0)) && verdict.passes() {
        verdict.push(unfinished(&format!(
            "pytest ended with exit code {code} although no test failed"
        )));
    }
    verdict
}

fn unfinished(what: &str) -> Finding {
    Finding::error(
        Code::new("forge-test-unfinished"),
        what,
        "Take out what ends the process or the run: os._exit, sys.exit, pytest.exit.",
    )
}

fn counts(report: &TestReport) -> serde_json::Value {
    json!({
        "collected": report.collected, "passed": report.passed, "failed": report.failed, "errors": report.errors, "skipped": report.skipped,
        "expected_to_fail": report.xfailed + report.xpassed,
    })
}

#[cfg(test)]
mod tests_of_told {
    use super::*;

    fn good() -> TestReport {
        TestReport {
            collected: 2,
            finished: 2,
            passed: 2,
            ran: 1,
            exit: Some(0),
            module: Some("/c/src/p/skills/a.py".into()),
            ..TestReport::default()
        }
    }

    fn codes(report: &TestReport, code: i32) -> Vec<String> {
        let part = Part::Skill {
            file: Path::new("/c/src/p/skills/a.py"),
        };
        let verdict = judge_report(report, code, part);
        verdict
            .findings()
            .iter()
            .map(|finding| finding.code.to_string())
            .collect()
    }

    #[test]
    fn only_finished_run_with_all_tests_passed_counts() {
        assert!(codes(&good(), 0).is_empty());
        let change = |change: fn(&mut TestReport)| {
            let mut report = good();
            change(&mut report);
            codes(&report, 0)
        };
        assert_eq!(
            change(|test_report| test_report.finished = 1),
            ["forge-test-unfinished"]
        );
        assert_eq!(change(|told| told.exit = None), ["forge-test-unfinished"]);
        assert_eq!(codes(&good(), 1), ["forge-test-unfinished"]);
        assert_eq!(change(|told| told.failed = 1), ["forge-test-failed"]);
        assert_eq!(change(|told| told.passed = 0), ["forge-test-none"]);
        assert_eq!(change(|told| told.skipped = 1), ["forge-test-left-out"]);
        assert_eq!(change(|told| told.xpassed = 1), ["forge-test-left-out"]);
        assert_eq!(change(|told| told.ran = 0), ["forge-test-empty"]);
        assert_eq!(change(|told| told.module = None), ["forge-test-elsewhere"]);
        assert_eq!(
            change(|told| told.module = Some("/site/p/skills/a.py".into())),
            ["forge-test-elsewhere"]
        );
    }

    #[test]
    fn only_report_with_the_runs_token_counts() {
        let line = |word: &str| {
            format!(
                "{word} {{\"collected\":0,\"finished\":0,\"ran\":0,\"exit\":0,\"module\":null,\"complaints\":[],\"left_out\":[],\"passed\":9,\"failed\":0,\"errors\":0,\"skipped\":0,\"xfailed\":0,\"xpassed\":0}}\n"
            )
        };
        assert_eq!(
            TestReport::find(&format!("dots\n{}", line("w-1")), "w-1")
                .unwrap()
                .passed,
            9
        );
        assert_eq!(TestReport::find(&line("w-2"), "w-1"), None);
        assert_eq!(TestReport::find(&(line("w-1") + &line("w-1")), "w-1"), None);
        assert_eq!(TestReport::find("w-1 {}\n", "w-1"), None);
    }
}
