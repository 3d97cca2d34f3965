//! `deno test`: a `deno.json` at the top, by its `test` task if it has one.
//!
//! A module that fails while it is loaded is in the output and not in the report.

use super::format::{any_stream, junit};
use super::scripts::script_words;
use super::{
    Call, CommandOutput, ReportContext, Reporting, Runner, RunnerFiles, Tool, TreeView, command,
};
use crate::results::{TestResults, TestStatus};

/// The names of its configuration.
const FILES: [&str; 2] = ["deno.json", "deno.jsonc"];

pub(super) struct Deno;

impl Runner for Deno {
    fn id(&self) -> &'static str {
        "deno-test"
    }

    fn tool(&self) -> Tool {
        Tool {
            program: "deno",
            install: "run `npm install --global deno`",
        }
    }

    fn reads(&self) -> &'static [&'static str] {
        &FILES
    }

    fn detect(&self, view: &TreeView) -> Option<(Vec<String>, String)> {
        let name = view.first(&FILES)?;
        Some(match view.text(name).and_then(test_task) {
            Some(_) => (
                command(&["deno", "task", "test"]),
                format!("{name} has a test task"),
            ),
            None => (
                command(&["deno", "test"]),
                format!("there is a {name} at the top"),
            ),
        })
    }

    fn runs(&self, call: &Call<'_>) -> bool {
        call.program == "deno" && (is_test(call) || is_task(call))
    }

    fn env(&self) -> &'static [(&'static str, &'static str)] {
        &[("NO_COLOR", "1"), ("DENO_NO_UPDATE_CHECK", "1")]
    }

    /// Deno appends the arguments of a task to its command, so only a task that is one call of `deno test` reports.
    fn reporting(&self, call: &Call<'_>, at: &ReportContext<'_>) -> Option<Reporting> {
        let task = || {
            let text = FILES.iter().find_map(|name| (at.read)(name))?;
            let words = script_words(&test_task(&text)?)?;
            let inner = Call::parse(&words)?;
            (inner.program == "deno" && is_test(&inner) && !inner.has("--")).then_some(())
        };
        if is_task(call) && task().is_none() {
            return Some(Reporting::unchanged(call));
        }
        let stops_early = |word: &String| word.starts_with("--fail-fast");
        let args = call.args.iter().filter(|word| !stops_early(word)).cloned();
        let all_tests = call.with_args(args);
        let report = format!("--junit-path={}", at.file);
        Some(Reporting::files(
            Call::parse(&all_tests)?.appended(&[report]),
        ))
    }

    fn results(&self, output: &CommandOutput<'_>) -> Option<TestResults> {
        let name = |case: &junit::Case| {
            let file = case.class.strip_prefix("./").unwrap_or(&case.class);
            format!("{file} > {}", case.name)
        };
        let Some(mut results) = junit::read(output, name) else {
            return any_stream(output);
        };
        for line in output.lines() {
            let module = line
                .strip_prefix("Uncaught error from ")
                .and_then(|rest| rest.strip_suffix(" FAILED"));
            if let Some(module) = module {
                results.add(
                    module.strip_prefix("./").unwrap_or(module).to_owned(),
                    TestStatus::Failed,
                );
            }
        }
        Some(results)
    }

    fn suite(&self) -> &'static str {
        "javascript"
    }

    fn nothing_ran(&self) -> &'static [&'static str] {
        &["error: No test modules found"]
    }

    fn influence(&self) -> RunnerFiles {
        RunnerFiles {
            programs: &["deno"],
            recipes: &FILES,
            ..RunnerFiles::default()
        }
    }

    fn signs(&self) -> &'static [(&'static str, &'static str)] {
        &[
            (
                "error: JSR package manifest for ",
                "download the dependencies first: run `deno install`",
            ),
            (
                "Task not found: ",
                "add the task to deno.json, or name the tests: `crucible run start --test \"COMMAND\"`",
            ),
        ]
    }
}

fn is_test(call: &Call<'_>) -> bool {
    call.subcommand() == Some("test")
}

fn is_task(call: &Call<'_>) -> bool {
    let mut words = call.args.iter().filter(|word| !word.starts_with('-'));
    words.next().is_some_and(|word| word == "task")
        && words.next().is_some_and(|word| word == "test")
}

/// Returns the command of the `test` task; `None` without such a task, or if the file has comments.
fn test_task(text: &str) -> Option<String> {
    let manifest: serde_json::Value = serde_json::from_str(text).ok()?;
    let task = manifest.get("tasks")?.get("test")?;
    let command = task.get("command").unwrap_or(task);
    Some(command.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use crucible_sandbox::Extent;

    use super::*;
    use crate::gate::{GateEnd, GateRun, RunnerReport};
    use crate::judge::tests::run_of;
    use crate::results::TestStatus::{Failed, Passed, Skipped};
    use crate::runner::tree_view::view;
    use crate::runner::{could_not_run, runner_of, runners};

    fn detected(files: &[(&str, &str)]) -> Option<String> {
        Deno.detect(&view(files)).map(|(words, _)| words.join(" "))
    }

    fn failed(stdout: &str, report: Option<&str>) -> GateRun {
        let mut run = run_of("deno test", GateEnd::Exited(1), stdout, "");
        run.report = report.map(|text| RunnerReport {
            runner: Deno.id().to_owned(),
            bytes: text.as_bytes().to_vec(),
            extent: Extent::Whole,
        });
        run
    }

    #[test]
    fn configuration_or_its_test_task_is_detected() {
        assert_eq!(detected(&[("main_test.ts", "")]), None);
        assert_eq!(
            detected(&[("deno.jsonc", "// no task\n{}")]).unwrap(),
            "deno test"
        );
        for task in [r#""deno test -A""#, r#"{"command":"deno test -A"}"#] {
            let text = format!(r#"{{"tasks":{{"test":{task}}}}}"#);
            assert_eq!(detected(&[("deno.json", &text)]).unwrap(), "deno task test");
        }
        let runs = |text: &str| {
            runner_of(&command(&text.split(' ').collect::<Vec<_>>())).map(|runner| runner.id())
        };
        for own in ["deno test -A src", "deno task test", "deno -q test"] {
            assert_eq!(runs(own), Some("deno-test"), "{own}");
        }
        for other in ["deno run test.ts", "deno task build", "deno lint"] {
            assert_eq!(runs(other), None, "{other}");
        }
    }

    #[test]
    fn report_is_written_by_plain_tests_only() {
        let reported = |words: &str, manifest: &str| {
            let words = command(&words.split(' ').collect::<Vec<_>>());
            let at = ReportContext {
                file: "/r/report",
                dir: "/r",
                read: &|name| (name == "deno.json").then(|| manifest.to_owned()),
                runners: runners(),
            };
            let reporting = Deno.reporting(&Call::parse(&words).unwrap(), &at).unwrap();
            reporting.command.join(" ")
        };
        assert_eq!(
            reported("deno test --fail-fast -A -- --port 1", ""),
            "deno test -A --junit-path=/r/report -- --port 1"
        );
        assert_eq!(
            reported("deno task test", r#"{"tasks":{"test":"deno test -A"}}"#),
            "deno task test --junit-path=/r/report"
        );
        for other in ["deno lint && deno test", "vitest run", "deno test -- x"] {
            let manifest = serde_json::json!({"tasks": {"test": other}}).to_string();
            assert_eq!(reported("deno task test", &manifest), "deno task test");
        }
    }

    #[test]
    fn recorded_report_and_unloadable_modules_are_read() {
        let report = include_str!("recorded/deno.xml");
        let run = failed("Uncaught error from ./b_test.ts FAILED\n", Some(report));
        let results = TestResults::read(&run).unwrap();
        let tests: Vec<_> = results
            .tests
            .iter()
            .map(|(name, status)| (name.as_str(), *status))
            .collect();
        assert_eq!(
            tests,
            [
                ("a_test.ts > adds", Passed),
                ("a_test.ts > fails", Failed),
                ("a_test.ts > group", Failed),
                ("a_test.ts > group > inner", Passed),
                ("a_test.ts > group > inner > deep", Passed),
                ("a_test.ts > group > one", Passed),
                ("a_test.ts > group > three", Skipped),
                ("a_test.ts > group > two", Failed),
                ("a_test.ts > skips", Skipped),
                ("b_test.ts", Failed),
            ]
        );
        assert_eq!(TestResults::read(&failed("", None)), None);
    }

    #[test]
    fn missing_tests_and_packages_are_no_failures() {
        for output in [
            "error: No test modules found\n",
            "error: JSR package manifest for '@std/assert' failed to load.\n",
            "Task not found: test\n",
        ] {
            assert!(could_not_run(&failed(output, None)).is_some(), "{output}");
        }
        let type_error =
            "TS2307 [ERROR]: Import \"x\" not a dependency\nerror: Type checking failed.\n";
        assert_eq!(could_not_run(&failed(type_error, None)), None);
    }
}
