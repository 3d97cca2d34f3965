//! A test script of several steps, such as `eslint . && c8 mocha` or `npm run lint && npm run unit`.
//!
//! The steps run one after another, and the first that fails ends the script. So a test that failed before and
//! still fails hides nothing: what would have run after it did not run before either. A script whose steps run
//! at the same time, or go on after a failure, is judged by its exit code. Nothing is expanded or run here.
//!
//! jest and vitest take options only as arguments, which reach the last step at most. A file that Node.js loads
//! first ([`PRELOAD`]) adds the options for a report to the runner's own process.

use super::format::{self, jest_json};
use super::scripts::{obstacle_of_manager, script_words};
use super::{
    Call, CommandOutput, CouldNotRun, ReportAt, Reporting, Runner, Tool, TreeView, ava, mocha,
};
use crate::results::TestResults;

/// The name of the file that Node.js loads first; it is no report.
pub(super) const PRELOAD_NAME: &str = "preload.cjs";

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

/// Most steps of a script.
const MAX_STEPS: usize = 40;
/// How deep scripts may call scripts.
const MAX_DEPTH: usize = 6;

/// Programs that run several commands at the same time, or all of them whatever fails.
const PARALLEL: [&str; 12] = [
    "concurrently",
    "gulp",
    "lerna",
    "make",
    "moon",
    "nx",
    "preconstruct",
    "rush",
    "run-p",
    "turbo",
    "ultra",
    "wireit",
];

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
        jest_json::read(told)
            .filter(is_found)
            .or_else(|| format::any_stream(told))
            .or_else(|| mocha::read_counted(told).filter(is_found))
            .or_else(|| ava::read(told).filter(is_found))
    }

    fn obstacle(&self, told: &CommandOutput<'_>) -> Option<CouldNotRun> {
        obstacle_of_manager(told)
    }
}

/// Returns how a script reports whose steps run one after another; `None` if they may not.
pub(super) fn reporting(
    call: &Call<'_>,
    script: &str,
    manifest: &serde_json::Value,
    at: &ReportAt<'_>,
) -> Option<Reporting> {
    let mut steps = Vec::new();
    add_steps(script, manifest, at.runners, MAX_DEPTH, &mut steps)?;
    let unchanged = Reporting {
        runner: Chain.id(),
        ..Reporting::unchanged(call)
    };
    let started: Vec<&str> = steps
        .iter()
        .filter_map(|words| runner(words, at.runners))
        .collect();
    if started == ["node-test"] {
        let words = steps
            .iter()
            .find(|words| runner(words, at.runners).is_some())?;
        let inner = Call::of(words)?;
        let node = at.runners.iter().find(|known| known.id() == "node-test")?;
        let reporting = node.reporting(&inner, at)?;
        return Some(Reporting {
            runner: node.id(),
            command: call.words.to_vec(),
            ..reporting
        });
    }
    let wants_file = started.iter().any(|id| ["jest", "vitest"].contains(id));
    if !wants_file || at.dir.contains(|c: char| c.is_whitespace() || c == '"') {
        return Some(unchanged);
    }
    Some(Reporting {
        runner: Chain.id(),
        options: vec![(
            "NODE_OPTIONS",
            format!("--require={}/{PRELOAD_NAME}", at.dir),
        )],
        preload: Some(PRELOAD),
        ..Reporting::files(call.words.to_vec())
    })
}

/// Every runner.
type Runners = &'static [&'static dyn Runner];

/// The name of the JavaScript runner that a step starts.
fn runner(words: &[String], runners: Runners) -> Option<&'static str> {
    let call = Call::of(words)?;
    runners
        .iter()
        .find(|known| known.suite() == "javascript" && !known.calls_others() && known.runs(&call))
        .map(|known| known.id())
}

/// Adds the words of each step; `None` if steps may run at the same time or go on after a failure.
fn add_steps(
    script: &str,
    manifest: &serde_json::Value,
    runners: Runners,
    depth: usize,
    steps: &mut Vec<Vec<String>>,
) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    for part in script.split("&&") {
        let words = script_words(part)?;
        let words = direct(&words, manifest, runners);
        if steps.len() >= MAX_STEPS {
            return None;
        }
        match called(words, manifest)? {
            Called::Program => steps.push(words.to_vec()),
            Called::Scripts(names) => {
                for name in names {
                    for name in [format!("pre{name}"), name.clone(), format!("post{name}")] {
                        if let Some(text) = script_of(manifest, &name) {
                            add_steps(text, manifest, runners, depth, steps)?;
                        }
                    }
                }
            }
        }
    }
    Some(())
}

/// What a step calls.
enum Called {
    /// A program.
    Program,
    /// Scripts of the manifest, one after another.
    Scripts(Vec<String>),
}

fn called(words: &[String], manifest: &serde_json::Value) -> Option<Called> {
    let call = Call::of(words)?;
    let operands = || call.args.iter().filter(|word| !word.starts_with('-'));
    let options = || call.args.iter().take_while(|word| *word != "--");
    let has = |names: &[&str]| options().any(|word| names.contains(&word.as_str()));
    if PARALLEL.contains(&call.program) {
        return None;
    }
    let named = |name: Option<&String>| {
        let name = name.filter(|name| script_of(manifest, name).is_some())?;
        Some(Called::Scripts(vec![name.clone()]))
    };
    match call.program {
        "run-s" | "npm-run-all" | "npm-run-all2" => {
            let goes_on = ["-c", "--continue-on-error", "-p", "--parallel"];
            let names: Vec<String> = operands().cloned().collect();
            let is_known = names.iter().all(|name| script_of(manifest, name).is_some());
            (!has(&goes_on) && is_known).then_some(Called::Scripts(names))
        }
        "npm" | "pnpm" | "yarn" | "bun" => {
            // Workspaces run at the same time.
            let elsewhere = [
                "-r",
                "--recursive",
                "-w",
                "-ws",
                "--workspaces",
                "--if-present",
            ];
            let other = |word: &String| {
                ["--filter", "--workspace", "--prefix", "--cwd", "-C"]
                    .iter()
                    .any(|option| word.starts_with(option))
            };
            if has(&elsewhere) || options().any(other) {
                return None;
            }
            let mut operands = operands();
            match operands.next()?.as_str() {
                "run" | "run-script" => named(operands.next()),
                "test" | "t" | "tst" => named(Some(&"test".to_owned())),
                "workspace" | "workspaces" | "recursive" | "multi" | "m" => None,
                name if call.program != "npm" && script_of(manifest, name).is_some() => {
                    named(Some(&name.to_owned()))
                }
                _ => Some(Called::Program),
            }
        }
        _ => Some(Called::Program),
    }
}

/// Returns the words without `pnpm` or `yarn` in front of a program.
fn direct<'w>(words: &'w [String], manifest: &serde_json::Value, runners: Runners) -> &'w [String] {
    match words {
        [manager, rest @ ..] if ["pnpm", "yarn"].contains(&manager.as_str()) => {
            let is_script = |name: &String| script_of(manifest, name).is_some();
            let is_program =
                !rest.first().is_some_and(is_script) && runner(rest, runners).is_some();
            if is_program { rest } else { words }
        }
        _ => words,
    }
}

fn script_of<'m>(manifest: &'m serde_json::Value, name: &str) -> Option<&'m str> {
    manifest.get("scripts")?.get(name)?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::{command, runners};

    fn reporting_of(scripts: serde_json::Value) -> Option<(&'static str, bool)> {
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
        let script = script_of(&manifest, "test")?;
        let reporting = reporting(&call, script, &manifest, &at)?;
        assert_eq!(reporting.command, words);
        Some((reporting.runner, reporting.preload.is_some()))
    }

    #[test]
    fn steps_in_sequence_report_per_test() {
        for scripts in [
            serde_json::json!({"test": "eslint . && jest --ci && tsd"}),
            serde_json::json!({"test": "npm run lint && npm run unit", "lint": "eslint .", "unit": "cross-env A=1 c8 jest"}),
            serde_json::json!({"test": "run-s build unit", "build": "tsc", "unit": "vitest run"}),
            serde_json::json!({"test": "pnpm lint && pnpm vitest run", "lint": "oxlint src"}),
            serde_json::json!({"test": "npm run unit", "preunit": "tsc", "unit": "jest"}),
        ] {
            assert_eq!(
                reporting_of(scripts.clone()),
                Some(("script-steps", true)),
                "{scripts}"
            );
        }
        let mocha = serde_json::json!({"test": "npm-run-all --silent types unit", "types": "tsc", "unit": "mocha test"});
        assert_eq!(reporting_of(mocha), Some(("script-steps", false)));
        let node = serde_json::json!({"test": "npm run lint && node --test", "lint": "eslint ."});
        assert_eq!(reporting_of(node), Some(("node-test", false)));
    }

    #[test]
    fn steps_that_may_hide_each_other_do_not() {
        for scripts in [
            serde_json::json!({"test": "jest; eslint ."}),
            serde_json::json!({"test": "jest || true"}),
            serde_json::json!({"test": "jest & eslint ."}),
            serde_json::json!({"test": "run-p unit lint", "unit": "jest", "lint": "eslint ."}),
            serde_json::json!({"test": "npm-run-all -c unit lint", "unit": "jest", "lint": "eslint ."}),
            serde_json::json!({"test": "npm-run-all --parallel unit lint", "unit": "jest", "lint": "eslint ."}),
            serde_json::json!({"test": "pnpm -r test"}),
            serde_json::json!({"test": "npm test --workspaces"}),
            serde_json::json!({"test": "npm run gone && jest"}),
            serde_json::json!({"test": "npm run test"}),
            serde_json::json!({"test": "turbo run unit && jest"}),
        ] {
            assert_eq!(reporting_of(scripts.clone()), None, "{scripts}");
        }
    }
}
