//! A test script of several steps, such as `eslint . && c8 mocha` or `npm run lint && npm run unit`.
//!
//! The steps are run one after another by a script of ours ([`driver`]), which goes on after a failure and records how each
//! ended. Steps whose tests are not reported count as one test each. So a linter that fails before and after a change, or an
//! integration test that needs a network, does not decide about the tests, and a step behind them is not hidden.
//!
//! jest and vitest take options only as arguments, which do not reach every step. A file that Node.js loads
//! first ([`PRELOAD`]) adds the options for a report to the runner's own process.

use std::collections::BTreeMap;

use crucible_model::Digest;
use crucible_sandbox::Extent;
use serde::Deserialize;

use super::format::{self, jest_json, tap};
use super::scripts::obstacle_of_manager;
use super::steps::{Scripts, Step};
use super::{
    Call, CommandOutput, CouldNotRun, ReportAt, Reporting, Runner, Tool, TreeView, ava, mocha,
};
use crate::gate::GateRun;
use crate::results::{STEP, TestResults, TestStatus};
use crate::text::Normaliser;

/// The name of the file that Node.js loads first.
const PRELOAD_NAME: &str = "preload.cjs";
/// The name of the script that runs the steps.
const DRIVER_NAME: &str = "steps.sh";

/// Adds options for a report to jest and vitest.
const PRELOAD: &str = r#"'use strict';
const words = process.argv;
const program = (words[1] || '').replace(/\\/g, '/');
const isJest = /\/(jest|jest-cli)\/bin\/jest(\.js)?$|\/\.bin\/jest$/.test(program);
const isVitest = /\/vitest\/(dist\/cli(\.js)?|vitest\.mjs)$|\/\.bin\/vitest$/.test(program);
const has = (option) => words.some((word) => word.startsWith(option));
if ((isJest || isVitest) && !has('--outputFile') && !has('--version') && !has('--help')) {
  const file = require('path').join(__dirname, `report-${process.pid}.json`);
  const options = isJest
    ? ['--json', `--outputFile=${file}`]
    : ['--reporter=default', '--reporter=json', `--outputFile.json=${file}`];
  const end = words.indexOf('--');
  words.splice(end < 0 ? words.length : end, 0, ...options);
}
"#;

/// Reads the output of a script whose steps run one after another.
pub(super) struct Chain;

impl Runner for Chain {
    fn id(&self) -> &'static str {
        "script-steps"
    }

    fn tool(&self) -> Tool {
        Tool {
            program: "npm",
            install: "install Node.js, such as `apt install nodejs npm`",
        }
    }

    fn detect(&self, _: &TreeView) -> Option<(Vec<String>, String)> {
        None
    }

    fn runs(&self, _: &Call<'_>) -> bool {
        false
    }

    fn calls_others(&self) -> bool {
        true
    }

    fn suite(&self) -> &'static str {
        "javascript"
    }

    fn results(&self, told: &CommandOutput<'_>) -> Option<TestResults> {
        let is_found = |results: &TestResults| !results.tests.is_empty();
        let in_report = told.report.as_deref().map(|report| tap::read(report, told));
        let tests = jest_json::read(told)
            .filter(is_found)
            .or_else(|| in_report.filter(is_found))
            .or_else(|| format::any_stream(told))
            .or_else(|| mocha::read_counted(told).filter(is_found))
            .or_else(|| ava::read(told).filter(is_found));
        let mut results = tests.unwrap_or_else(|| told.new_results());
        let has_failed = results.with_status(TestStatus::Failed).next().is_some();
        for ended in ended_steps(told.report.as_deref().unwrap_or_default()) {
            let status = if ended.code == 0 {
                TestStatus::Passed
            } else {
                TestStatus::Failed
            };
            // The tests show how a runner's step ended.
            let is_reported = ended.is_runner && (ended.code == 0 || has_failed);
            if !is_reported {
                results.add(format!("{STEP}{}", ended.name), status);
            }
        }
        Some(results)
    }

    fn obstacle(&self, told: &CommandOutput<'_>) -> Option<CouldNotRun> {
        obstacle_of_manager(told)
    }
}

/// Returns how a script of several steps reports; `None` if its steps cannot be separated.
pub(super) fn reporting(
    call: &Call<'_>,
    script: &str,
    manifest: &serde_json::Value,
    at: &ReportAt<'_>,
) -> Option<Reporting> {
    let scripts = Scripts {
        manifest,
        manager: call.words.first().map_or("npm", String::as_str),
        runners: at.runners,
    };
    let steps = scripts.steps(script)?;
    let started: Vec<Option<&str>> = steps
        .iter()
        .map(|step| scripts.runner(&step.words))
        .collect();
    let is_plain = steps.len() < 2 && started.iter().all(Option::is_none);
    if is_plain || at.dir.contains(|c: char| c.is_whitespace() || c == '"') {
        return None;
    }
    let mut options = Vec::new();
    let mut needs = vec![(DRIVER_NAME, driver(&steps, &started, at.dir))];
    let mut known = started.iter().flatten();
    if let (Some(&"node-test"), None) = (known.next(), known.next()) {
        let step = steps.iter().zip(&started).find(|(_, id)| id.is_some())?.0;
        let node = at.runners.iter().find(|known| known.id() == "node-test")?;
        options = node.reporting(&Call::of(&step.words)?, at)?.options;
    } else if started
        .iter()
        .flatten()
        .any(|id| ["jest", "vitest"].contains(id))
    {
        options.push((
            "NODE_OPTIONS",
            format!("--require={}/{PRELOAD_NAME}", at.dir),
        ));
        needs.push((PRELOAD_NAME, PRELOAD.to_owned()));
    }
    Some(Reporting {
        runner: Chain.id(),
        options,
        needs,
        ..Reporting::files(vec!["sh".to_owned(), format!("{}/{DRIVER_NAME}", at.dir)])
    })
}

/// Returns the script that runs every step, and records its code in `dir`. It fails if one of them did.
fn driver(steps: &[Step], started: &[Option<&str>], dir: &str) -> String {
    let mut text = String::from(
        "PATH=\"$PWD/node_modules/.bin:$PATH\"\nworst=0\nmissing=127\n\
         step() {\n  printf '%s\\n' \"$1\"\n  printf '%s\\n' \"$1\" >&2\n  sh -c \"$2\"\n  code=$?\n\
         \x20 printf '%s%s}}\\n' \"$3\" \"$code\" >> \"$4\"\n\
         \x20 if [ \"$code\" != 0 ]; then worst=1; [ \"$code\" = 127 ] || missing=1; fi\n}\n",
    );
    for (index, (step, runner)) in steps.iter().zip(started).enumerate() {
        let name = serde_json::Value::from(step.text.as_str());
        let record = format!(
            "{{\"step\":{{\"name\":{name},\"is_runner\":{},\"code\":",
            runner.is_some()
        );
        let heading = format!("{HEADING}{} of {}: {}", index + 1, steps.len(), step.text);
        let words = [
            &heading,
            &step.command,
            &record,
            &format!("{dir}/steps.json"),
        ];
        text.push_str("step");
        for word in words {
            text.push_str(&format!(" '{}'", word.replace('\'', r"'\''")));
        }
        text.push('\n');
    }
    text.push_str("[ \"$worst\" = 0 ] || exit \"$missing\"\n");
    text
}

/// What stands in front of each step's output in both streams.
const HEADING: &str = "== step ";

/// A line of the record.
#[derive(Deserialize)]
struct Recorded {
    step: EndedStep,
}

/// A step that has ended.
#[derive(Deserialize)]
struct EndedStep {
    name: String,
    is_runner: bool,
    code: i32,
}

fn ended_steps(report: &str) -> impl Iterator<Item = EndedStep> {
    report
        .lines()
        .filter_map(|line| serde_json::from_str::<Recorded>(line).ok())
        .map(|recorded| recorded.step)
}

impl TestResults {
    /// Returns the digests of the normalised output of each failed step, by its name; empty if some output was lost.
    pub(crate) fn outputs_of_failed_steps(
        run: &GateRun,
        normaliser: &Normaliser,
    ) -> BTreeMap<String, Digest> {
        let Some(report) = run
            .report
            .as_ref()
            .filter(|report| report.runner == Chain.id())
        else {
            return BTreeMap::new();
        };
        if [&run.stdout, &run.stderr]
            .iter()
            .any(|stream| stream.extent == Extent::Cut)
        {
            return BTreeMap::new();
        }
        let streams = [&run.stdout, &run.stderr].map(|stream| normaliser.apply(&stream.bytes));
        let report = String::from_utf8_lossy(&report.bytes);
        let steps: Vec<EndedStep> = ended_steps(&report).collect();
        let mut outputs = BTreeMap::new();
        for (index, step) in steps.iter().enumerate() {
            let parts = streams.each_ref().map(|stream| part(stream, index + 1));
            if step.code != 0
                && let [Some(stdout), Some(stderr)] = parts
            {
                let digest = Digest::of(format!("{stdout}\0{stderr}").as_bytes());
                outputs.insert(format!("{STEP}{}", step.name), digest);
            }
        }
        outputs
    }
}

/// Returns the output of the step with this number; `None` if its heading does not stand there once.
fn part(stream: &str, number: usize) -> Option<String> {
    let begins = |line: &str, number: usize| line.starts_with(&format!("{HEADING}{number} of "));
    if stream.lines().filter(|line| begins(line, number)).count() != 1 {
        return None;
    }
    let lines = stream
        .lines()
        .skip_while(|line| !begins(line, number))
        .skip(1);
    let lines = lines.take_while(|line| !begins(line, number + 1));
    Some(lines.collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::{command, runners};

    /// The runner, whether a file is loaded first, and the texts of the steps.
    fn reporting_of(scripts: serde_json::Value) -> Option<(bool, Vec<String>)> {
        let manifest = serde_json::json!({ "scripts": scripts });
        let words = command(&["npm", "test"]);
        let call = Call::of(&words)?;
        let read = |_: &str| None;
        let at = ReportAt {
            file: "/r/report",
            dir: "/r",
            read: &read,
            runners: runners(),
        };
        let reporting = reporting(&call, "test", &manifest, &at)?;
        assert_eq!(reporting.runner, "script-steps");
        assert_eq!(reporting.command, ["sh", "/r/steps.sh"]);
        let driver = &reporting.needs[0].1;
        let commands = driver
            .lines()
            .filter_map(|line| line.strip_prefix("step '")?.split("' '").nth(1));
        Some((
            reporting.needs.len() > 1,
            commands.map(str::to_owned).collect(),
        ))
    }

    #[test]
    fn steps_are_run_one_by_one() {
        for (scripts, preload, steps) in [
            (
                serde_json::json!({"test": "eslint . && jest --ci && tsd"}),
                true,
                &["eslint .", "jest --ci", "tsd"][..],
            ),
            (
                serde_json::json!({"test": "npm run lint && npm run unit", "lint": "eslint .", "unit": "cross-env A=1 c8 jest"}),
                true,
                &["npm run lint", "npm run unit"],
            ),
            (
                serde_json::json!({"test": "run-s build unit", "build": "tsc", "unit": "vitest run"}),
                true,
                &["npm run build", "npm run unit"],
            ),
            (
                serde_json::json!({"test": "npm run unit", "preunit": "tsc", "unit": "jest"}),
                true,
                &["npm run preunit", "jest"],
            ),
            (
                serde_json::json!({"test": "mocha", "pretest": "npm run build && npm run lint", "build": "run-p build:*", "build:a": "a", "build:b": "b", "lint": "eslint ."}),
                false,
                &[
                    "npm run build:a",
                    "npm run build:b",
                    "npm run lint",
                    "mocha",
                ],
            ),
            (
                serde_json::json!({"test": "npm run lint && node --test", "lint": "eslint ."}),
                false,
                &["npm run lint", "node --test"],
            ),
            (
                serde_json::json!({"test": "run-p unit lint", "unit": "jest", "lint": "eslint ."}),
                true,
                &["npm run unit", "npm run lint"],
            ),
            (
                serde_json::json!({"test": "run-p lint unit", "lint": "eslint . | cat", "unit": "uvu test \"\\.js$\""}),
                false,
                &["npm run lint", "npm run unit"],
            ),
            (
                serde_json::json!({"test": "tsc && c8 npm run unit", "unit": "jest"}),
                true,
                &["tsc", "c8 npm run unit"],
            ),
            (
                serde_json::json!({"test": "turbo run unit && jest"}),
                true,
                &["turbo run unit", "jest"],
            ),
            (
                serde_json::json!({"test": "A=1 pnpm run /^test:/", "test:lint": "eslint .", "test:unit": "uvu test"}),
                false,
                &["A=1 npm run test:lint", "A=1 npm run test:unit"],
            ),
        ] {
            let expected = (steps.len() > 1).then(|| {
                (
                    preload,
                    steps
                        .iter()
                        .map(|step| (*step).to_owned())
                        .collect::<Vec<_>>(),
                )
            });
            assert_eq!(reporting_of(scripts.clone()), expected, "{scripts}");
        }
    }

    #[test]
    fn scripts_that_are_no_list_of_steps_stay_whole() {
        for scripts in [
            serde_json::json!({"test": "jest; eslint ."}),
            serde_json::json!({"test": "jest || true"}),
            serde_json::json!({"test": "jest & eslint ."}),
            serde_json::json!({"test": "cd web && jest"}),
            serde_json::json!({"test": "run-p serve unit", "serve": "node server.js", "unit": "jest"}),
            serde_json::json!({"test": "npm test --workspaces"}),
            serde_json::json!({"test": "npm run gone && jest"}),
            serde_json::json!({"test": "npm run test"}),
            serde_json::json!({"test": "./run-tests"}),
        ] {
            assert_eq!(reporting_of(scripts.clone()), None, "{scripts}");
        }
    }
}
