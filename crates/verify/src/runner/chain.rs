//! A test script of several steps, such as `eslint . && c8 mocha` or `npm run lint && npm run unit`.
//!
//! The steps are run one after another by a script of ours ([`driver`]), which goes on after a failure and records how each
//! ended, behind the reports that it wrote. So a linter that fails before and after a change, or an integration test that
//! needs a network, does not decide about the tests, and a step behind them is not hidden.
//!
//! Every step also counts as one test. A step that failed counts as skipped if it starts one program, and a test in its own
//! report failed: then the tests decide.
//!
//! jest and vitest take options only as arguments, which do not reach every step. A file that Node.js loads
//! first ([`PRELOAD`]) adds the options for a report to the runner's own process.

use std::cell::Cell;
use std::collections::BTreeMap;

use crucible_host::words::shell_word;
use crucible_model::Digest;
use crucible_sandbox::{Captured, Extent};
use serde::Deserialize;

use super::format::{self, jest_json, tap};
use super::scripts::obstacle_of_manager;
use super::steps::{Scripts, Step};
use super::{
    Call, CommandOutput, NotRunReason, ReportContext, Reporting, Runner, Tool, TreeView, ava, mocha,
};
use crate::gate::{GateEnd, GateRun, RunnerReport};
use crate::results::{STEP, TEST_STEP, TestResults, TestStatus, is_step};
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
pub(super) struct ScriptSteps;

impl Runner for ScriptSteps {
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

    fn results(&self, output: &CommandOutput<'_>) -> Option<TestResults> {
        let steps = ended_steps(output.report.as_deref()?);
        let first = steps.iter().position(|step| step.runs_tests);
        let [stdout, stderr] =
            [&output.stdout, &output.stderr].map(|text| outputs(text, steps.len()));
        let mut results = output.new_results();
        for (index, (step, printed)) in steps.iter().zip(stdout.iter().zip(&stderr)).enumerate() {
            let own = own_results(output, step, printed);
            let failed = own.with_status(TestStatus::Failed).next().is_some();
            for (name, status) in own.tests {
                // Two steps may have tests of the same name.
                let name = match first {
                    Some(first) if first != index || is_step(&name) => {
                        format!("{} > {name}", step.name)
                    }
                    _ => name,
                };
                results.add(name, status);
            }
            let status = match (step.code, failed) {
                (0, _) => TestStatus::Passed,
                (_, true) if step.is_one => TestStatus::Skipped,
                _ => TestStatus::Failed,
            };
            results.add(step.test_name(), status);
        }
        Some(results)
    }

    fn obstacle(&self, output: &CommandOutput<'_>) -> Option<NotRunReason> {
        obstacle_of_manager(output)
    }
}

/// Returns the tests of one step.
fn own_results(
    output: &CommandOutput<'_>,
    step: &EndedStep,
    printed: (&Option<String>, &Option<String>),
) -> TestResults {
    let captured = |all: &Captured, text: &Option<String>| {
        let bytes = text.clone().unwrap_or_default().into_bytes();
        Captured {
            total: bytes.len() as u64,
            bytes,
            extent: all.extent,
        }
    };
    let report = output.run.report.as_ref().map(|report| RunnerReport {
        bytes: step.report.as_bytes().to_vec(),
        ..report.clone()
    });
    let run = GateRun {
        id: output.run.id.clone(),
        command: Vec::new(),
        end: GateEnd::Exited(step.code),
        stdout: captured(&output.run.stdout, printed.0),
        stderr: captured(&output.run.stderr, printed.1),
        report,
        isolation: None,
        results: None,
        ..*output.run
    };
    let output = CommandOutput::from_run(&run);
    let is_found = |results: &TestResults| !results.tests.is_empty();
    let in_report = || {
        output
            .report
            .as_deref()
            .map(|report| tap::read(report, &output))
    };
    // What another program prints may look like tests.
    let in_output = || {
        format::any_stream(&output)
            .or_else(|| mocha::read_counted(&output).filter(is_found))
            .or_else(|| ava::read(&output).filter(is_found))
            .filter(|_| step.runs_tests)
    };
    jest_json::read(&output)
        .filter(is_found)
        .or_else(|| in_report().filter(is_found))
        .or_else(in_output)
        .unwrap_or_else(|| output.new_results())
}

/// Returns how a script of several steps reports; `None` if its steps cannot be separated.
pub(super) fn reporting(
    call: &Call<'_>,
    script: &str,
    manifest: &serde_json::Value,
    at: &ReportContext<'_>,
) -> Option<Reporting> {
    let manager = call.words.first().map_or("npm", String::as_str);
    // Arguments of the script are for its last command.
    let mut behind = call.args.iter().skip_while(|word| *word != script).skip(1);
    if !behind.all(|word| manager == "npm" && word.starts_with('-') && word != "--") {
        return None;
    }
    let is_new_yarn = || {
        let named = manifest.get("packageManager")?.as_str()?;
        let major = named.strip_prefix("yarn@")?.split('.').next()?;
        Some(major != "1")
    };
    let ignores_scripts = call.has("--ignore-scripts");
    // Settings that change how a package manager runs scripts.
    let is_changed = (at.read)(".npmrc").is_some_and(|text| {
        [
            "script-shell",
            "node-options",
            "ignore-scripts",
            "pre-post-scripts",
        ]
        .iter()
        .any(|setting| text.contains(setting))
    });
    if is_changed || manifest.get("config").is_some() {
        return None;
    }
    let scripts = Scripts {
        manifest,
        manager,
        has_hooks: !ignores_scripts && is_new_yarn() != Some(true),
        runners: at.runners,
        visits: Cell::default(),
    };
    let steps = scripts.steps(script)?;
    let started: Vec<Option<&str>> = steps
        .iter()
        .map(|step| scripts.runner(&step.words))
        .collect();
    let is_plain = match steps.as_slice() {
        [step] => !(step.is_one && scripts.runs_tests(&step.words)) && started == [None],
        steps => steps.is_empty(),
    };
    if is_plain || at.dir.contains(|c: char| c.is_whitespace() || c == '"') {
        return None;
    }
    let mut options = Vec::new();
    let mut needs = Vec::new();
    let node = steps
        .iter()
        .zip(&started)
        .find(|(_, id)| **id == Some("node-test"));
    if let Some((step, _)) = node {
        let runner = at.runners.iter().find(|known| known.id() == "node-test")?;
        let reporting = runner.reporting(&Call::parse(&step.words)?, at)?;
        (options, needs) = (reporting.options, reporting.needs);
    }
    let mut text = variables(script, manifest, ignores_scripts);
    text.push_str(&driver(&scripts, &steps, at.dir));
    needs.insert(0, (DRIVER_NAME, text));
    let by_preload = |id: &&str| ["jest", "vitest"].contains(id);
    if started.iter().flatten().any(by_preload) {
        let option = format!("--require={}/{PRELOAD_NAME}", at.dir);
        options.push(("NODE_OPTIONS", option));
        needs.push((PRELOAD_NAME, PRELOAD.to_owned()));
    }
    Some(Reporting {
        runner: ScriptSteps.id(),
        options,
        needs,
        ..Reporting::files(vec!["sh".to_owned(), format!("{}/{DRIVER_NAME}", at.dir)])
    })
}

/// Returns the lines that set what a package manager sets for a script.
fn variables(script: &str, manifest: &serde_json::Value, ignores_scripts: bool) -> String {
    let of_manifest = |key: &str| manifest.get(key)?.as_str();
    let mut text = String::from(
        "dir=$PWD bins=\n\
         while [ -n \"$dir\" ]; do bins=\"$bins$dir/node_modules/.bin:\" dir=${dir%/*}; done\n\
         export PATH=\"$bins$PATH\" INIT_CWD=\"$PWD\"\n",
    );
    let set = [
        ("npm_lifecycle_event", Some(script)),
        ("npm_package_name", of_manifest("name")),
        ("npm_package_version", of_manifest("version")),
        (
            "npm_config_ignore_scripts",
            ignores_scripts.then_some("true"),
        ),
    ];
    for (name, value) in set {
        if let Some(value) = value {
            text.push_str(&format!("export {name}={}\n", shell_word(value)));
        }
    }
    text
}

/// Returns the script that runs every step, and records its reports and its code in `dir`. It fails if one of them did.
fn driver(scripts: &Scripts<'_>, steps: &[Step], dir: &str) -> String {
    let mut text = format!(
        "records={dir}/steps.json worst=0 missing=127\n\
         step() {{\n  printf '\\n%s\\n' \"$1\"\n  printf '\\n%s\\n' \"$1\" >&2\n  sh -c \"$2\"\n  code=$?\n\
         \x20 for report in {dir}/report*; do\n\
         \x20   [ ! -f \"$report\" ] || {{ cat \"$report\"; echo; }} >> \"$records\"\n\
         \x20   rm -rf \"$report\"\n  done\n\
         \x20 printf '%s%s}}}}\\n' \"$3\" \"$code\" >> \"$records\"\n\
         \x20 [ \"$code\" = 0 ] || worst=1\n  [ \"$code\" = 127 ] || missing=1\n}}\n",
    );
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, step) in steps.iter().enumerate() {
        let count = seen.entry(&step.text).or_default();
        *count += 1;
        let name = match count {
            1 => step.text.clone(),
            count => format!("{} ({count})", step.text),
        };
        let record = format!(
            "{{\"step\":{{\"name\":{},\"runs_tests\":{},\"is_one\":{},\"code\":",
            serde_json::Value::from(name),
            scripts.runs_tests(&step.words),
            step.is_one
        );
        let heading = format!("{HEADING}{} of {}: {}", index + 1, steps.len(), step.text);
        text.push_str("step");
        for word in [&heading, &step.command, &record] {
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
    runs_tests: bool,
    is_one: bool,
    code: i32,
    /// The reports that it wrote.
    #[serde(skip)]
    report: String,
}

impl EndedStep {
    /// The name of the test that it counts as.
    fn test_name(&self) -> String {
        let kind = if self.runs_tests { TEST_STEP } else { STEP };
        format!("{kind}{}", self.name)
    }
}

/// Returns the steps of a record, each with the lines in front of it.
fn ended_steps(record: &str) -> Vec<EndedStep> {
    let mut steps = Vec::new();
    let mut report = String::new();
    for line in record.lines() {
        // Most lines are those of reports.
        let recorded = line
            .starts_with("{\"step\":")
            .then(|| serde_json::from_str::<Recorded>(line).ok());
        if let Some(Recorded { step }) = recorded.flatten() {
            steps.push(EndedStep {
                report: std::mem::take(&mut report),
                ..step
            });
        } else {
            report.push_str(line);
            report.push('\n');
        }
    }
    steps
}

impl TestResults {
    /// Returns the digests of the normalised output of each failed step that printed something, by its name; empty if some
    /// output was lost.
    pub(crate) fn outputs_of_failed_steps(
        run: &GateRun,
        normaliser: &Normaliser,
    ) -> BTreeMap<String, Digest> {
        let Some(report) = run
            .report
            .as_ref()
            .filter(|report| report.runner == ScriptSteps.id())
        else {
            return BTreeMap::new();
        };
        if [&run.stdout, &run.stderr]
            .iter()
            .any(|stream| stream.extent == Extent::Cut)
        {
            return BTreeMap::new();
        }
        let steps = ended_steps(&String::from_utf8_lossy(&report.bytes));
        let [stdout, stderr] = [&run.stdout, &run.stderr]
            .map(|stream| outputs(&normaliser.apply(&stream.bytes), steps.len()));
        let mut digests = BTreeMap::new();
        for (step, printed) in steps.iter().zip(stdout.iter().zip(&stderr)) {
            if step.code != 0
                && let (Some(stdout), Some(stderr)) = printed
                && [stdout, stderr]
                    .into_iter()
                    .any(|text| says_something(text))
            {
                let digest = Digest::compute(format!("{stdout}\0{stderr}").as_bytes());
                digests.insert(step.test_name(), digest);
            }
        }
        digests
    }
}

/// Returns the output of each of `count` steps; `None` for one whose heading does not stand there once.
fn outputs(stream: &str, count: usize) -> Vec<Option<String>> {
    let number = |line: &str| {
        let (number, _) = line.strip_prefix(HEADING)?.split_once(" of ")?;
        number.parse::<usize>().ok()?.checked_sub(1)
    };
    let mut outputs: Vec<Option<String>> = vec![None; count];
    let mut has_two = vec![false; count];
    let mut current = None;
    for line in stream.lines() {
        if let Some(index) = number(line).filter(|index| *index < count) {
            has_two[index] |= outputs[index].replace(String::new()).is_some();
            current = Some(index);
        } else if let Some(output) = current.and_then(|index| outputs[index].as_mut()) {
            output.push_str(line);
            output.push('\n');
        }
    }
    outputs
        .into_iter()
        .zip(has_two)
        .map(|(output, has_two)| output.filter(|_| !has_two))
        .collect()
}

/// Returns whether an output holds more than what package managers print around any script.
fn says_something(output: &str) -> bool {
    const AROUND: [&str; 9] = [
        "> ",
        "$ ",
        "npm ",
        "yarn run ",
        "info Visit ",
        "error Command failed ",
        "error: script ",
        "ELIFECYCLE",
        "ERR_PNPM_",
    ];
    let is_around = |line: &str| {
        let line = line.trim();
        line.is_empty() || AROUND.iter().any(|begin| line.starts_with(begin))
    };
    !output.lines().all(is_around)
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "a test runs the script of the steps"
)]
mod tests {
    use super::*;
    use crate::runner::{command, runners};

    fn at() -> ReportContext<'static> {
        ReportContext {
            file: "/r/report",
            dir: "/r",
            read: &|_| None,
            runners: runners(),
        }
    }

    /// The runner, whether a file is loaded first, and the texts of the steps.
    fn reporting_of(scripts: serde_json::Value) -> Option<(bool, Vec<String>)> {
        let manifest = serde_json::json!({ "scripts": scripts });
        let words = command(&["npm", "test"]);
        let call = Call::parse(&words)?;
        let reporting = reporting(&call, "test", &manifest, &at())?;
        assert_eq!(reporting.runner, "script-steps");
        assert_eq!(reporting.command, ["sh", "/r/steps.sh"]);
        let driver = &reporting.needs[0].1;
        let commands = driver
            .lines()
            .filter_map(|line| line.strip_prefix("step '")?.split("' '").nth(1));
        Some((
            reporting
                .needs
                .iter()
                .any(|(name, _)| *name == PRELOAD_NAME),
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
                &["npm run preunit", "export npm_lifecycle_event=unit; jest"],
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
                &[
                    "export A=1; pnpm run test:lint",
                    "export A=1; pnpm run test:unit",
                ],
            ),
            (
                serde_json::json!({"test": "mocha && npm run e2e -- --slow", "e2e": "jest --ci"}),
                true,
                &["mocha", "npm run e2e -- --slow"],
            ),
            (
                serde_json::json!({"test": "eslint . && npm run unit", "preunit": "tsc", "unit": "cd a; mocha"}),
                false,
                &["eslint .", "npm run unit"],
            ),
            (
                serde_json::json!({"pretest": "tsc || true", "test": "mocha", "posttest": "eslint ."}),
                false,
                &["npm run pretest", "mocha", "npm run posttest"],
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
    fn scripts_that_are_not_step_lists_stay_whole() {
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

    /// What a package manager does with the command.
    fn commands_of(command: &str, more: serde_json::Value) -> Option<Vec<String>> {
        let mut manifest = serde_json::json!({"scripts": {
            "pretest": "tsc", "test": "mocha && eslint .", "posttest": "publint",
        }});
        manifest.as_object_mut()?.extend(more.as_object()?.clone());
        let words = command.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let reporting = reporting(&Call::parse(&words)?, "test", &manifest, &at())?;
        let driver = &reporting.needs[0].1;
        let commands = driver
            .lines()
            .filter_map(|line| line.strip_prefix("step '")?.split("' '").nth(1));
        Some(commands.map(str::to_owned).collect())
    }

    #[test]
    fn options_of_the_manager_are_followed() {
        let all = Some(
            ["npm run pretest", "mocha", "eslint .", "npm run posttest"]
                .map(str::to_owned)
                .to_vec(),
        );
        let own = Some(["mocha", "eslint ."].map(str::to_owned).to_vec());
        let none = serde_json::json!({});
        assert_eq!(commands_of("npm test", none.clone()), all);
        assert_eq!(commands_of("npm test --silent", none.clone()), all);
        assert_eq!(commands_of("npm test --ignore-scripts", none.clone()), own);
        for yarn in ["yarn@1.22.22", "yarn@4.5.0"] {
            let named = serde_json::json!({"packageManager": yarn});
            let has_hooks = commands_of("yarn test", named) != own;
            assert_eq!(has_hooks, yarn == "yarn@1.22.22", "{yarn}");
        }
        for with_arguments in ["npm test -- --grep a", "npm test a", "pnpm test --bail"] {
            assert_eq!(
                commands_of(with_arguments, none.clone()),
                None,
                "{with_arguments}"
            );
        }
    }

    /// Runs the test script of a package with these files, and returns its results.
    fn run_of(test: &str, files: &[(&str, &str)]) -> TestResults {
        let temp_dir = tempfile::tempdir().unwrap();
        let (package, private) = (temp_dir.path().join("a"), temp_dir.path().join("private"));
        for dir in [&package.join("node_modules/.bin"), &private] {
            std::fs::create_dir_all(dir).unwrap();
        }
        for (path, content) in files {
            std::fs::write(package.join(path), content).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(package.join(path), mode).unwrap();
        }
        let words = command(&["npm", "test"]);
        let report = private.join("report");
        let (file, dir) = (report.to_str().unwrap(), private.to_str().unwrap());
        let manifest = serde_json::json!({
            "name": "it's", "scripts": {"test": test, "e2e": "A=1; node e2e.js",
                "both": "node --test unit.test.js; node --test label.test.js"}
        });
        std::fs::write(package.join("package.json"), manifest.to_string()).unwrap();
        let at = ReportContext { file, dir, ..at() };
        let reporting = reporting(&Call::parse(&words).unwrap(), "test", &manifest, &at).unwrap();
        for (name, text) in &reporting.needs {
            std::fs::write(private.join(name), text).unwrap();
        }
        let ran = std::process::Command::new(&reporting.command[0])
            .args(&reporting.command[1..])
            .envs(reporting.options.iter().map(|(name, value)| (*name, value)))
            .env_remove("NODE_TEST_CONTEXT")
            .current_dir(&package)
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let end = GateEnd::Exited(ran.status.code().unwrap());
        let (stdout, stderr) = (text(&ran.stdout), text(&ran.stderr));
        let mut run = crate::judge::tests::run_of("npm test", end, &stdout, &stderr);
        run.report = Some(RunnerReport {
            runner: ScriptSteps.id().to_owned(),
            bytes: std::fs::read_to_string(private.join("steps.json"))
                .unwrap()
                .replace(&format!("{}/", package.display()), "")
                .into_bytes(),
            extent: Extent::Whole,
        });
        let names = Normaliser::new(&package);
        TestResults::of_run(&run, &names).unwrap()
    }

    #[test]
    fn steps_that_run_tests_are_known() {
        for (step, expected) in [
            ("c8 npm run unit", true),
            ("npm run unit -- --bail", true),
            ("uvu test \"\\\\.js$\"", true),
            ("FORCE_COLOR=1 tape test/*.js | tap-spec", true),
            ("node --import tsx test/index.js", true),
            ("sh ./run-tests.sh", true),
            ("./scripts/test.sh", true),
            ("cargo test", true),
            ("make test", true),
            ("npm test --workspaces", true),
            ("eslint test", false),
            ("tsc -p test", false),
            ("node check.js", false),
            ("node scripts/lint.js test", false),
            ("make lint", false),
            ("prettier --check \"test/$A\"", false),
        ] {
            let manifest = serde_json::json!({"scripts": {
                "test": format!("{step} && true"), "unit": "uvu test \"\\.js$\""
            }});
            let words = command(&["npm", "test"]);
            let reporting = reporting(&Call::parse(&words).unwrap(), "test", &manifest, &at());
            let driver = &reporting.unwrap().needs[0].1;
            assert_eq!(driver.contains(r#""runs_tests":true,"#), expected, "{step}");
        }
    }

    const UNIT: (&str, &str) = (
        "unit.test.js",
        "const test = require('node:test'), assert = require('assert'), area = require('./area.js');\n\
         test('old', () => assert.equal(1, 2));\ntest('area', () => assert.equal(area(3, 4), 12));\n",
    );
    const SUM: (&str, &str) = ("area.js", "module.exports = (a, b) => a + b;\n");
    const PRODUCT: (&str, &str) = ("area.js", "module.exports = (a, b) => a * b;\n");

    fn status(results: &TestResults, name: &str) -> Option<TestStatus> {
        results.tests.get(name).copied()
    }

    #[test]
    fn each_step_has_its_own_results() {
        use TestStatus::{Failed, Passed, Skipped};
        let label = "const test = require('node:test'), assert = require('assert');\ntest('old', () => {});\n\
             test('name', () => assert.equal(process.env.npm_package_name, \"it's\"));\n";
        let mocha = "#!/bin/sh\necho '  area'\necho '    1) area'\necho '  0 passing (1ms)'\necho '  1 failing'\nexit 1\n";
        let files = [
            UNIT,
            SUM,
            ("label.test.js", label),
            ("node_modules/.bin/mocha", mocha),
            ("node_modules/.bin/uvu", "#!/bin/sh\nexit 1\n"),
        ];
        let test = "node --test unit.test.js && node --test label.test.js && eslint . && mocha && uvu && npm run e2e -- x && echo $A";
        let results = run_of(test, &files);
        for (name, expected) in [
            ("unit.test.js > old", Failed),
            ("unit.test.js > area", Failed),
            ("node --test label.test.js > label.test.js > old", Passed),
            ("node --test label.test.js > label.test.js > name", Passed),
            ("mocha > area > area", Failed),
            ("script test step: node --test unit.test.js", Skipped),
            ("script test step: node --test label.test.js", Passed),
            ("script test step: mocha", Skipped),
            ("script test step: uvu", Failed),
            ("script step: eslint .", Failed),
            ("script step: npm run e2e -- x", Failed),
            ("script step: echo $A", Passed),
        ] {
            assert_eq!(
                status(&results, name),
                Some(expected),
                "{name} in {:?}",
                results.tests
            );
        }
        assert_eq!(results.tests.len(), 12, "{:?}", results.tests);
        assert!(results.is_whole());
        // A step that prints nothing may fail for any reason.
        let compared: Vec<_> = results.step_outputs.keys().collect();
        assert_eq!(
            compared,
            ["script step: eslint .", "script step: npm run e2e -- x"]
        );
    }

    #[test]
    fn every_process_of_a_step_reports() {
        let label = "const test = require('node:test');\ntest('name', () => {});\n";
        let files = [UNIT, SUM, ("label.test.js", label)];
        let results = run_of("npm run both && true", &files);
        for (name, expected) in [
            ("unit.test.js > old", TestStatus::Failed),
            ("label.test.js > name", TestStatus::Passed),
            // It ended well, whatever its first command did.
            ("script test step: npm run both", TestStatus::Passed),
        ] {
            assert_eq!(
                status(&results, name),
                Some(expected),
                "{name} in {:?}",
                results.tests
            );
        }
    }

    #[test]
    fn scripts_that_call_each_other_often_stay_whole() {
        let mut scripts = serde_json::Map::new();
        for at in 0..6 {
            let name = if at == 0 {
                "test".to_owned()
            } else {
                format!("s{at}")
            };
            let call = format!("c8 npm run s{}", at + 1);
            scripts.insert(name, vec![call; 16].join(" && ").into());
        }
        scripts.insert("s6".to_owned(), "true && true".into());
        assert_eq!(reporting_of(scripts.into()), None);
    }

    #[test]
    fn failed_test_excuses_no_other_step() {
        let e2e = "process.exit(require('./area.js')(0, 1) === 1 ? 0 : 1);\n";
        let mocha = "#!/bin/sh\nexec node e2e.js\n";
        for test in [
            "node --test unit.test.js && mocha",
            "node --test unit.test.js && node e2e.js && true",
        ] {
            let base = [
                UNIT,
                SUM,
                ("e2e.js", e2e),
                ("node_modules/.bin/mocha", mocha),
            ];
            let mut now = base;
            now[1] = PRODUCT;
            let (before, after) = (run_of(test, &base), run_of(test, &now));
            assert_eq!(
                status(&after, "unit.test.js > area"),
                Some(TestStatus::Passed)
            );
            let last = test.split(" && ").nth(1).unwrap();
            let name = if last == "mocha" {
                "script test step: mocha"
            } else {
                "script step: node e2e.js"
            };
            assert_eq!(status(&before, name), Some(TestStatus::Passed));
            assert_eq!(status(&after, name), Some(TestStatus::Failed));
        }
    }
}
